/**
 * Budgets: time left in words, with a bar; the exact numbers are one press away.
 * @module
 */
import { exactly, period, shown, sign, toNumber } from "./amounts.js";
import { el } from "./dom.js";

/**
 * @typedef {{account: string, app: string|null, currency: string, per: string, limit: string|null, spent: string, reserved: string, remaining: string|null, seconds_left?: number|null, words?: string}} Budget
 */

/** @param {Budget} budget */
const spentWords = (budget) => `${exactly(budget.spent)}${budget.limit === null ? "" : ` of ${shown(budget.limit)}`} ${sign(budget.currency)} spent ${period(budget.per)}`;

/** @param {Budget} budget */
function leftWords(budget) {
  const held = toNumber(budget.reserved ?? "0");
  return budget.remaining === null ? "no limit is set" : `${shown(budget.remaining, "down")} left${held > 0 ? `, ${shown(budget.reserved)} reserved` : ""}`;
}

/** A budget's exact numbers. @param {Budget} budget @returns {HTMLElement} */
export function budgetLines(budget) {
  return el("div", { class: "line" }, el("span", {}, spentWords(budget)), el("span", { class: "quiet" }, leftWords(budget)));
}

/** @param {Budget} budget @returns {HTMLElement} */
function bar(budget) {
  const limit = toNumber(budget.limit);
  const spent = toNumber(budget.spent);
  const held = toNumber(budget.reserved ?? "0");
  const used = spent + held;
  const share = Number.isFinite(limit) && limit > 0 ? Math.min(1, used / limit) : 0;
  const track = el("div", {
    class: share > 0.9 ? "bar low" : "bar", role: "meter", "aria-label": `${budget.currency} budget`, "aria-valuemin": 0, "aria-valuemax": Number.isFinite(limit) ? limit : used || 1,
    "aria-valuenow": used, "aria-valuetext": spentWords(budget),
  });
  if (Number.isFinite(limit) && limit > 0) {
    // Widths go through the style object: the page allows no style attributes.
    const spentPart = el("div", { class: "spent" });
    spentPart.style.width = `${Math.min(100, (100 * spent) / limit)}%`;
    const heldPart = el("div", { class: "held" });
    heldPart.style.width = `${Math.min(100, (100 * held) / limit)}%`;
    track.append(spentPart, heldPart);
  }
  return track;
}

/** The budget that ends first: fewest seconds, or the largest share used where no time is known. @param {Budget[]} budgets @returns {Budget|null} */
function tightest(budgets) {
  const used = (/** @type {Budget} */ b) => toNumber(b.spent) + toNumber(b.reserved ?? "0") > 0;
  const all = budgets.filter((budget) => budget.limit !== null);
  // A currency that was never used says nothing about how long what is used goes on.
  const limited = all.some(used) ? all.filter(used) : all;
  const share = (/** @type {Budget} */ b) => (toNumber(b.spent) + toNumber(b.reserved ?? "0")) / Math.max(1e-12, toNumber(b.limit));
  const seconds = (/** @type {Budget} */ b) => b.seconds_left ?? Infinity;
  return limited.sort((a, b) => seconds(a) - seconds(b) || share(b) - share(a))[0] ?? null;
}

/** How much is left, as time where the service knows it, and a bar. @param {Budget[]} budgets @returns {HTMLElement|null} */
export function timeLeft(budgets) {
  const first = tightest(budgets);
  return first && el("div", { class: "budget" }, el("p", { class: "left" }, first.words ? `${first.words[0].toUpperCase()}${first.words.slice(1)}` : leftWords(first)), bar(first));
}

/** @param {HTMLElement} list @param {Budget[]} budgets */
export function showDevice(list, budgets) {
  const state = JSON.stringify(budgets);
  if (list.dataset.state === state) return;
  list.dataset.state = state;
  const open = list.querySelector("details")?.open ?? false;
  const focused = document.activeElement?.tagName === "SUMMARY" && list.contains(document.activeElement);
  const left = timeLeft(budgets);
  list.replaceChildren(
    left ?? el("p", { class: "quiet" }, budgets.length ? "No limit is set." : "Nothing with a price has been sent."),
    ...(budgets.length ? [el("details", { open }, el("summary", {}, "Details"), el("div", { class: "stack" }, ...budgets.map((budget) => budgetLines(budget))))] : []));
  if (focused) list.querySelector("summary").focus();
}
