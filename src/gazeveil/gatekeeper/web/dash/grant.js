/**
 * The dialog in which the wearer decides without being asked, or decides anew: what the app gets, and how long.
 * @module
 */
import { byId, el } from "./dom.js";
import { LASTS, appName, leastFirst, meaning, sentence, wantTitle } from "./words.js";

/**
 * @param {object} options
 * @param {string} options.app
 * @param {any[]} options.presets
 * @param {any} [options.grant] the grant in force, where there is one
 * @param {(body: object) => Promise<any>} options.onGrant rejects with a sentence to show
 * @param {() => void} options.onDone after it is granted and the dialog is closed
 */
export function openGrant({ app, presets, grant = null, onGrant, onDone }) {
  const dialog = byId("grant-dialog");
  const ordered = leastFirst(presets);
  const first = grant?.preset ?? ordered[0]?.name;
  const problem = el("p", { class: "problem", role: "alert" });
  const choice = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ title, /** @type {string} */ means, /** @type {boolean} */ checked) => el("label", { class: "choice" },
    el("input", { type: "radio", name, value, checked }), el("span", {}, el("strong", {}, title)), el("span", { class: "means" }, means));
  const submit = el("button", { type: "submit", class: "primary" }, "Allow");
  const form = el("form", { method: "dialog" },
    el("h2", { id: "grant-title" }, "What may ", appName(app), " get?"),
    el("div", { class: "dialog-body columns" },
      el("fieldset", { class: "what" }, el("legend", {}, "What it gets"),
        ...ordered.map((preset) => choice("preset", preset.name, wantTitle(preset.name), meaning(preset), preset.name === first))),
      el("div", { class: "stack" },
        el("fieldset", { class: "lasts" }, el("legend", {}, "How long"), ...LASTS.map(([code, title, means], i) => choice("lasts", code, title, means, i === 0))),
        problem)),
    el("div", { class: "buttons" }, el("span", { class: "quiet facts grow" }, "You can stop it at any time."), el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    submit.disabled = true;
    try {
      await onGrant(Object.fromEntries(new FormData(form)));
      dialog.close();
      onDone();
    } catch (error) {
      problem.textContent = sentence(error);
      problem.scrollIntoView({ block: "nearest" });
    } finally {
      submit.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
  form.querySelector("input[name=preset]:checked")?.focus();
}
