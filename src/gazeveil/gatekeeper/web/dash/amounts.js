/**
 * Numbers and times in words.
 * @module
 */

/** @param {string|number|null} text "3/2", "10" or "0.5" @returns {number} */
export function toNumber(text) {
  if (text === null || text === undefined) return Infinity;
  const [above, below = "1"] = String(text).split("/");
  return Number(above) / Number(below);
}

/** @param {number|string} t_ns nanoseconds since 1970 */
export function clock(t_ns) {
  const date = new Date(Number(t_ns) / 1e6);
  return date.toLocaleString("en-GB", { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
