/**
 * Budgets as bars with their exact numbers.
 * @module
 */
import { exactly, period, shown, sign, toNumber } from "./amounts.js";
import { el } from "./dom.js";

/**
 * @typedef {{account: string, app: string|null, currency: string, per: string, limit: string|null, spent: string, reserved: string, remaining: string|null}} Budget
 */

/** @param {Budget} budget @returns {HTMLElement} */
export function bar(budget) {
  const limit = toNumber(budget.limit);
  const spent = toNumber(budget.spent);
  const held = toNumber(budget.reserved ?? "0");
  const used = spent + held;
  const share = Number.isFinite(limit) && limit > 0 ? Math.min(1, used / limit) : 0;
  const amount = `${exactly(budget.spent)}${budget.limit === null ? "" : ` of ${shown(budget.limit)}`}`;
  const words = `${amount} ${sign(budget.currency)} spent ${period(budget.per)}`;
  const track = el("div", {
    class: share > 0.9 ? "bar low" : "bar", role: "meter", "aria-label": `${budget.currency} budget`, "aria-valuemin": 0, "aria-valuemax": Number.isFinite(limit) ? limit : used || 1,
    "aria-valuenow": used, "aria-valuetext": words,
  });
  if (Number.isFinite(limit) && limit > 0) {
    // Widths go through the style object: the page allows no style attributes.
    const spentPart = el("div", { class: "spent" });
    spentPart.style.width = `${Math.min(100, (100 * spent) / limit)}%`;
    const heldPart = el("div", { class: "held" });
    heldPart.style.width = `${Math.min(100, (100 * held) / limit)}%`;
    track.append(spentPart, heldPart);
  }
  const left = budget.remaining === null ? "no limit is set" : `${shown(budget.remaining, "down")} left${held > 0 ? `, ${shown(budget.reserved)} reserved` : ""}`;
  return el("div", { class: "budget" }, el("div", { class: "line" }, el("span", {}, words), el("span", { class: "quiet" }, left)), budget.limit === null ? null : track);
}

/** @param {HTMLElement} list @param {Budget[]} budgets */
export function showDevice(list, budgets) {
  const state = JSON.stringify(budgets);
  if (list.dataset.state === state) return;
  list.dataset.state = state;
  const none = el("p", { class: "quiet" }, "The policy sets no limit for the device, and nothing with a price has been sent.");
  list.replaceChildren(...(budgets.length ? budgets.map(bar) : [none]));
}
