/**
 * Budgets as time left, with a bar.
 * @module
 */
import { toNumber } from "./amounts.js";
import { el } from "./dom.js";

/**
 * @typedef {{app: string|null, currency: string, limit: string, spent: string, remaining: string, seconds_left: number|null, limit_s: number|null, words: string}} Budget
 */

/** Share that is used up. @param {Budget} b */
const share = (b) => Math.min(1, toNumber(b.spent) / Math.max(1e-12, toNumber(b.limit)));

/** The budget that ends first: fewest seconds, or the largest share used where no time is known. @param {Budget[]} budgets @returns {Budget|null} */
function tightest(budgets) {
  // A budget that was never used says nothing about how long what is used goes on.
  const used = budgets.filter((b) => share(b) > 0);
  const limited = used.length ? used : [...budgets];
  const seconds = (/** @type {Budget} */ b) => b.seconds_left ?? Infinity;
  return limited.sort((a, b) => seconds(a) - seconds(b) || share(b) - share(a))[0] ?? null;
}

/** How much is left, as time, and a bar. @param {Budget[]} budgets @returns {HTMLElement|null} */
export function timeLeft(budgets) {
  const first = tightest(budgets);
  if (!first) return null;
  const used = share(first);
  const words = `${first.words[0].toUpperCase()}${first.words.slice(1)}`;
  const spent = el("div", { class: "spent" });
  spent.style.width = `${100 * used}%`; // Through the style object: the page allows no style attributes.
  return el("div", { class: "budget" },
    el("p", { class: "left" }, words),
    el("div", { class: used > 0.9 ? "bar low" : "bar", role: "meter", "aria-label": "Used up", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * used), "aria-valuetext": words }, spent));
}

/** @param {HTMLElement} list @param {Budget[]} budgets */
export function showDevice(list, budgets) {
  const state = JSON.stringify(budgets);
  if (list.dataset.state === state) return;
  list.dataset.state = state;
  list.replaceChildren(timeLeft(budgets) ?? el("p", { class: "quiet" }, budgets.length ? "No limit is set." : "No samples have been given."));
}
