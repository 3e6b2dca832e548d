/**
 * The dialog in which the owner decides: a preset with the sentence that says what it removes, or a grant of their own making.
 * @module
 */
import { scopeWords } from "./apps.js";
import { byId, el } from "./dom.js";

const SCOPES = ["areas", "fixations", "saccades", "events", "tile", "counter", "samples"];
const ENDS = /** @type {[string, number][]} */ ([["never, until I revoke it", 0], ["after one hour", 3600], ["after one day", 86400], ["after one week", 604800]]);

/**
 * Rules as text, "kaleido:epsilon<=1,w>=60" in one line each, as the policy's own parts; a line may end in "unproved".
 * @param {string} text
 * @returns {{name: string, parameters: Record<string, [string, string]>, unproved: boolean}[]}
 */
export function rulesFrom(text) {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((whole) => {
    const unproved = / unproved$/.test(whole);
    const line = whole.replace(/ unproved$/, "");
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon).trim();
    /** @type {Record<string, [string, string]>} */
    const parameters = {};
    for (const part of (colon < 0 ? "" : line.slice(colon + 1)).split(",").map((p) => p.trim()).filter(Boolean)) {
      const found = /^([A-Za-z_]\w*)\s*(<=|>=|=|any|in )\s*(\S*)$/.exec(part);
      if (!found) throw new RangeError(`Write a rule as name:parameter<=number,parameter>=number. "${part}" is not a rule.`);
      parameters[found[1]] = [found[2].trim(), found[3]];
    }
    return { name, parameters, unproved };
  });
}

/**
 * @param {object} options
 * @param {string} options.app
 * @param {any[]} options.presets
 * @param {string|null} [options.wanted] the preset the app asks for or has
 * @param {any} [options.ask] what the app asks for, to begin a custom grant with
 * @param {(body: object) => Promise<any>} options.onGrant rejects with a sentence to show
 * @param {() => void} options.onDone after it is granted and the dialog is closed
 */
export function openGrant({ app, presets, wanted = null, ask = null, onGrant, onDone }) {
  const dialog = byId("grant-dialog");
  const known = presets.some((preset) => preset.name === wanted);
  const first = known ? wanted : ask && !ask.preset ? "" : presets[0]?.name ?? "";
  const problem = el("p", { class: "problem", role: "alert" });
  const custom = customFields(ask);
  const choice = (/** @type {string} */ value, /** @type {string} */ name, /** @type {string} */ means, /** @type {string} */ badge) => el("label", { class: "choice" },
    el("input", { type: "radio", name: "preset", value, checked: value === first, onchange: () => { custom.hidden = !form.elements.custom.checked; } , id: value === "" ? "custom" : false }),
    el("span", {}, el("strong", {}, name), " ", badge ? el("span", { class: "badge info" }, badge) : null),
    el("span", { class: "means" }, means));
  const submit = el("button", { type: "submit", class: "primary" }, "Grant");
  const form = el("form", { method: "dialog" },
    el("h2", { id: "grant-title" }, "What may ", el("q", {}, app), " get?"),
    el("fieldset", {}, el("legend", { class: "quiet" }, "Every choice can be taken back at any time."),
      ...presets.map((preset) => choice(preset.name, preset.name, preset.means, preset.platform ? `as Android XR ${preset.platform}` : "")),
      choice("", "Custom", "Choose scopes, mechanisms and budgets yourself.", "")),
    custom,
    el("div", { class: "pair" },
      el("label", { class: "field" }, el("span", {}, "It ends"), el("select", { name: "ends" }, ...ENDS.map(([words, seconds]) => el("option", { value: seconds }, words)))),
      amount("epsilon", "Budget ε", "e.g. 10 or 3/2"),
      amount("rho", "Budget ρ", "e.g. 1/2"),
      el("label", { class: "field" }, el("span", {}, "The budget holds"), el("select", { name: "per" }, el("option", { value: "" }, "as the preset says"), el("option", { value: "day" }, "for a day"), el("option", { value: "session" }, "for a session"), el("option", { value: "ever" }, "for ever")))),
    el("p", { class: "quiet facts" }, "Leave the budgets empty for those of the preset; a custom grant without a budget gets nothing that has a price."),
    problem,
    el("div", { class: "buttons" }, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), submit));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.textContent = "";
    submit.disabled = true;
    try {
      await onGrant(bodyFrom(form));
      dialog.close();
      onDone();
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
    } finally {
      submit.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  custom.hidden = first !== "";
  dialog.showModal();
  form.querySelector("input[name=preset]:checked")?.focus();
}

/** A field for an exact number. */
function amount(name, words, example) {
  return el("label", { class: "field" }, el("span", {}, words), el("input", { name, inputmode: "decimal", autocomplete: "off", pattern: "\\d+(\\.\\d+|/[1-9]\\d*)?", placeholder: example }));
}

function customFields(ask) {
  return el("div", { class: "stack" },
    el("fieldset", {}, el("legend", {}, "Scopes"),
      el("div", { class: "checks" }, ...SCOPES.map((scope) => el("label", {}, el("input", { type: "checkbox", name: "scope", value: scope, checked: ask?.scopes?.includes(scope) ?? false }), scopeWords(scope))))),
    el("label", { class: "field" }, el("span", {}, "Mechanisms for samples, one rule in a line"),
      el("textarea", { name: "mechanisms", rows: 3, class: "mono", spellcheck: "false", placeholder: "kaleido:epsilon<=1,w>=60,r_deg>=3" }, (ask?.mechanisms ?? []).join("\n"))),
    el("div", { class: "pair" },
      el("label", { class: "field" }, el("span", {}, "Most areas"), el("input", { name: "areas", type: "number", min: 0, max: 1000, value: 16 })),
      el("label", { class: "field" }, el("span", {}, "Calls a minute"), el("input", { name: "calls", type: "number", min: 0, max: 100000, value: 600 })),
      el("label", { class: "field" }, el("span", {}, "Streams at once"), el("input", { name: "streams", type: "number", min: 0, max: 1000, value: 1 }))));
}

/** @param {HTMLFormElement} form */
function bodyFrom(form) {
  const data = new FormData(form);
  const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
  const seconds = Number(text("ends"));
  // Whole seconds, so that nanoseconds stay whole numbers in JSON.
  const expires_ns = seconds ? (Math.floor(Date.now() / 1000) + seconds) * 1e9 : null;
  const priced = ["epsilon", "rho"].filter((currency) => text(currency)).map((currency) => [currency, text(currency)]);
  const budgets = priced.length ? Object.fromEntries(priced) : null;
  const preset = text("preset");
  if (preset) return { preset, ...(budgets && { budgets }), ...(text("per") && { per: text("per") }), ...(expires_ns && { expires_ns }) };
  const grant = {
    scopes: data.getAll("scope").map(String), mechanisms: rulesFrom(text("mechanisms")), areas: Number(text("areas")), calls_per_minute: Number(text("calls")),
    streams: Number(text("streams")), budgets: budgets ?? {}, per: text("per") || "day", expires_ns,
  };
  return { grant };
}
