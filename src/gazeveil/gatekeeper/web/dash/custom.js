/**
 * A grant of the owner's own making: scopes, mechanisms, limits and budgets.
 * @module
 */
import { el } from "./dom.js";
import { SCOPES, scopeWords } from "./words.js";

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
    // Commas in brackets belong to the stages of a chain.
    for (const part of (colon < 0 ? "" : line.slice(colon + 1)).split(/,(?![^()]*\))/).map((p) => p.trim()).filter(Boolean)) {
      const found = /^([A-Za-z_]\w*)\s*(<=|>=|=|any|in )\s*(\S*)$/.exec(part);
      if (!found) throw new RangeError(`Write a rule as name:parameter<=number,parameter>=number. "${part}" is not a rule.`);
      parameters[found[1]] = [found[2].trim(), found[3]];
    }
    return { name, parameters, unproved };
  });
}

/** A field for an exact number. */
function amount(name, words, example) {
  return el("label", { class: "field" }, el("span", {}, words), el("input", { name, inputmode: "decimal", autocomplete: "off", pattern: "\\d+(\\.\\d+|/[1-9]\\d*)?", title: "A number such as 10, 0.5 or 3/2", placeholder: example }));
}

const count = (name, words, value, most) => el("label", { class: "field" }, el("span", {}, words), el("input", { name, type: "number", min: 0, max: most, value }));

/** Scopes, mechanisms and limits. @param {any} given what to begin with: an ask, or a grant that is in force */
export function customFields(given) {
  return el("div", { class: "stack" },
    el("fieldset", {}, el("legend", {}, "It may get"),
      el("div", { class: "checks" }, ...SCOPES.map((scope) => el("label", {}, el("input", { type: "checkbox", name: "scope", value: scope, checked: given?.scopes?.includes(scope) ?? false }), scopeWords(scope))))),
    el("label", { class: "field" }, el("span", {}, "Mechanisms for samples, one rule in a line"),
      el("textarea", { name: "mechanisms", rows: 3, class: "mono", spellcheck: "false", placeholder: "kaleido:epsilon<=1,w>=60,r_deg>=5" }, (given?.mechanisms ?? []).join("\n"))),
    el("div", { class: "pair" }, count("areas", "Most areas", 16, 1000), count("calls", "Calls a minute", 600, 100000), count("streams", "Streams at once", 1, 1000)));
}

/** Budgets, folded: whoever leaves them alone gets those of the preset. */
export function budgetFields() {
  return el("details", { class: "budgets" }, el("summary", {}, "Budgets"),
    el("div", { class: "pair" },
      amount("epsilon", "Budget ε", "e.g. 10 or 3/2"),
      amount("rho", "Budget ρ", "e.g. 1/2"),
      el("label", { class: "field" }, el("span", {}, "The budget holds"), el("select", { name: "per" }, el("option", { value: "" }, "as the preset says"), el("option", { value: "day" }, "for a day"), el("option", { value: "session" }, "for a session"), el("option", { value: "ever" }, "for ever")))),
    el("p", { class: "quiet facts" }, "Empty fields: the preset's own budgets. A custom grant gets nothing of a kind that it has no budget for."));
}

/**
 * What is sent to the service.
 * @param {HTMLFormElement} form
 * @returns {object}
 */
export function bodyFrom(form) {
  const data = new FormData(form);
  const text = (/** @type {string} */ name) => String(data.get(name) ?? "").trim();
  const priced = ["epsilon", "rho"].filter((currency) => text(currency)).map((currency) => [currency, text(currency)]);
  const budgets = priced.length ? Object.fromEntries(priced) : null;
  const lasts = text("lasts");
  const preset = text("preset");
  if (preset) return { preset, lasts, ...(budgets && { budgets }), ...(text("per") && { per: text("per") }) };
  const grant = {
    scopes: data.getAll("scope").map(String), mechanisms: rulesFrom(text("mechanisms")), areas: Number(text("areas")), calls_per_minute: Number(text("calls")),
    streams: Number(text("streams")), budgets: budgets ?? {}, per: text("per") || "day",
  };
  return { grant, lasts };
}
