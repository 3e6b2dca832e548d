/**
 * Exact numbers and times in words. Budgets are rationals written "3/2"; a decimal beside them is rounded against the owner.
 * @module
 */

/** @param {string|number|null} text "3/2", "10" or "0.5" @returns {number} */
export function toNumber(text) {
  if (text === null || text === undefined) return Infinity;
  const [above, below = "1"] = String(text).split("/");
  return Number(above) / Number(below);
}

/** @param {string|number|null} text @param {"up"|"down"} [round] @returns {string} at most three decimals, ≈ where they are not exact */
export function shown(text, round = "up") {
  const value = toNumber(text);
  if (!Number.isFinite(value)) return "no limit";
  const scaled = value * 1000;
  const near = Math.round(scaled);
  const exact = Math.abs(scaled - near) < 1e-9 * Math.max(1, Math.abs(scaled));
  const kept = exact ? near : round === "up" ? Math.ceil(scaled) : Math.floor(scaled);
  return `${exact ? "" : "≈ "}${(kept / 1000).toLocaleString("en", { maximumFractionDigits: 3 })}`;
}

/** The exact fraction where the decimal does not say it all. @param {string|null} text */
export function exactly(text) {
  return text !== null && shown(text).startsWith("≈") ? `${shown(text)} (exactly ${text})` : shown(text);
}

const SIGNS = { epsilon: "ε", rho: "ρ", samples: "samples" };

/** @param {string} currency */
export const sign = (currency) => SIGNS[/** @type {"epsilon"} */ (currency)] ?? currency;

/** @param {string} per */
export const period = (per) => ({ day: "today", session: "this session", ever: "in all", hour: "this hour" })[per] ?? `per ${per}`;

/** @param {number|string} t_ns nanoseconds since 1970 */
export function clock(t_ns) {
  const date = new Date(Number(t_ns) / 1e6);
  return date.toLocaleString("en-GB", { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
