/**
 * The dialog in which the owner decides: what the app gets, with the sentence that says what is removed, and how long.
 *
 * What is shown is frozen: the dialog carries the number of the ask that was read, and the service refuses the grant where the app has
 * asked for something else since.
 * @module
 */
import { bodyFrom, budgetFields, customFields } from "./custom.js";
import { byId, el, say } from "./dom.js";
import { LASTS, appName, leastFirst, presetTitle, sentence } from "./words.js";

const SWAPPED = "What the app asks has changed since you read it. Nothing was granted. Read it again.";

/**
 * @param {object} options
 * @param {string} options.app
 * @param {any[]} options.presets
 * @param {any} [options.ask] the ask that was read, where there is one
 * @param {any} [options.grant] the grant in force, where there is one
 * @param {(body: object) => Promise<any>} options.onGrant rejects with a sentence to show
 * @param {() => void} options.onDone after it is granted and the dialog is closed
 */
export function openGrant({ app, presets, ask = null, grant = null, onGrant, onDone }) {
  const dialog = byId("grant-dialog");
  const ordered = leastFirst(presets);
  const from = ask ?? grant;
  const wanted = ordered.some((preset) => preset.name === from?.preset) ? from.preset : null;
  const first = wanted ?? (from?.scopes?.length ? "" : ordered[0]?.name ?? "");
  const problem = el("p", { class: "problem", role: "alert" });
  const custom = customFields(from);
  const choice = (/** @type {string} */ value, /** @type {string} */ means) => el("label", { class: "choice" },
    el("input", { type: "radio", name: "preset", value, checked: value === first, id: value === "" ? "custom" : false, onchange: () => { custom.hidden = !form.elements.custom.checked; } }),
    el("span", {}, el("strong", {}, value === "" ? "Custom" : presetTitle(value)), " ", ask && value === wanted ? el("span", { class: "badge warn" }, "asked for") : null),
    el("span", { class: "means" }, means));
  const submit = el("button", { type: "submit", class: "primary" }, "Grant");
  const form = el("form", { method: "dialog" },
    el("h2", { id: "grant-title" }, "What may ", appName(app), " get?"),
    el("div", { class: "dialog-body columns" },
      el("fieldset", { class: "what" }, el("legend", {}, "What it gets"),
        ...ordered.map((preset) => choice(preset.name, preset.means)),
        choice("", "Choose yourself what it may get, through which mechanisms and with which limits.")),
      el("div", { class: "stack" }, howLong(grant), custom, budgetFields(), problem)),
    el("div", { class: "buttons" }, el("span", { class: "quiet facts grow" }, "You can take every grant back at any time."), el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    submit.disabled = true;
    try {
      await onGrant({ ...bodyFrom(form), ...(ask && { ask: ask.id }) });
      dialog.close();
      onDone();
    } catch (error) {
      if (error.code === "changed") {
        dialog.close();
        say(SWAPPED);
        onDone();
      } else {
        problem.textContent = sentence(error);
        problem.scrollIntoView({ block: "nearest" });
      }
    } finally {
      submit.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  custom.hidden = first !== "";
  dialog.showModal();
  form.querySelector("input[name=preset]:checked")?.focus();
}

/** How long, least first; the least is chosen, also where a longer grant is in force. */
function howLong(grant) {
  return el("fieldset", { class: "lasts" }, el("legend", {}, "How long"),
    ...LASTS.map(([code, title, means], i) => el("label", { class: "choice" },
      el("input", { type: "radio", name: "lasts", value: code, checked: i === 0 }),
      el("span", {}, el("strong", {}, title), " ", grant?.lasts === code ? el("span", { class: "badge info" }, "now") : null),
      el("span", { class: "means" }, means))));
}
