/**
 * The page's own words for what the service says in codes. Only words from here and from the service's closed lists are shown as the
 * system's; an app's name is the one text of an app's own that is shown, and it is always quoted and in mono.
 * @module
 */
import { el } from "./dom.js";

/** Presets in order of how little they give; one that is not listed comes last. */
const PRESET_TITLES = /** @type {Record<string, string>} */ ({
  select: "Choices only", "aoi-analytics": "Looks at areas", avatar: "Eyes of an avatar", research: "Research study",
});

const SCOPE_WORDS = /** @type {Record<string, string>} */ ({
  select: "which thing you chose", areas: "registers areas", fixations: "fixations in its areas", saccades: "saccades into its areas", events: "movements as they end", tile: "the tile looked at", counter: "noisy counts", samples: "protected samples",
});

/** All scopes, in order of how little they give. */
export const SCOPES = Object.keys(SCOPE_WORDS);

/** How long a grant lasts, least first: code, name, what it means. */
export const LASTS = /** @type {[string, string, string][]} */ ([
  ["once", "Once", "Ends when the app closes its connection, or ten minutes after its first question."],
  ["in-use", "While in use", "Ends after five minutes without use, and when the device restarts."],
  ["tonight", "Until tonight", "Ends at midnight."],
  ["for-good", "For good", "Ends when you take it back."],
]);

const STATES = /** @type {Record<string, [string, string]>} */ ({
  granted: ["Granted", "good"], spent: ["Spent", "warn"], revoked: ["Revoked", "bad"], expired: ["Expired", "warn"], none: ["No grant", ""],
});

const KINDS = /** @type {Record<string, string>} */ ({
  answer: "answered", denied: "refused", grant: "granted", revoke: "taken back", consent: "sharing", policy: "policy changed", drop: "app deleted", wearer: "wearer changed", dismiss: "ask dismissed", ask: "asked", ended: "ended", opened: "opened",
});

const IN_USE = /** @type {Record<string, string>} */ ({
  select: "your next choice", samples: "protected samples", fixation: "fixations", saccade: "saccades", pursuit: "pursuits", tile: "the tile you look at", events: "movements", areas: "numbers of its areas", metrics: "numbers of its areas", fixations: "fixations in its areas", saccades: "saccades into its areas", counter: "noisy counts",
});

/** @param {string} name @returns {string} */
export const presetTitle = (name) => PRESET_TITLES[name] ?? name;

/** @param {any[]} presets @returns {any[]} least first */
export function leastFirst(presets) {
  const order = Object.keys(PRESET_TITLES);
  const place = (/** @type {any} */ preset) => (order.includes(preset.name) ? order.indexOf(preset.name) : order.length);
  return [...presets].sort((a, b) => place(a) - place(b));
}

/** @param {string} scope */
export const scopeWords = (scope) => SCOPE_WORDS[scope] ?? scope;

/** @param {string} what a scope or a kind of subscription */
export const useWords = (what) => IN_USE[what] ?? what;

/** @param {string} code */
export const lastsTitle = (code) => LASTS.find(([known]) => known === code)?.[1] ?? code;

/** @param {string} state @returns {[string, string]} the badge's text and tone */
export const stateWords = (state) => STATES[state] ?? [state, ""];

/** @param {string} kind of an audit row */
export const kindWords = (kind) => KINDS[kind] ?? kind.replaceAll("-", " ");

/** A rule of the policy for people: "kaleido:epsilon<=1,w>=60" is "kaleido with epsilon ≤ 1, w ≥ 60". @param {string} rule */
export const ruleWords = (rule) => rule.replace(":", " with ").replaceAll(",", ", ").replaceAll(/\s*<=\s*/g, "\u00a0≤\u00a0").replaceAll(/\s*>=\s*/g, "\u00a0≥\u00a0").replaceAll(/(\w)=(?=\w)/g, "$1\u00a0=\u00a0");

/** The name an app gave itself or was given: shown as that, never as words of the page. @param {string} name @returns {HTMLElement} */
export const appName = (name) => el("q", { class: "app-name" }, name);

const BY_CODE = /** @type {Record<string, string>} */ ({
  value: "The device does not take this entry. Look at what was typed, then try again.",
  rate: "There were too many requests at once. Wait a minute, then try again.",
  slow: "The service is slow to answer. Wait a moment, then try again.",
  ledger: "The database does not answer. Nothing is given while it is silent.",
});

/** One plain sentence for whatever went wrong. @param {any} error @returns {string} */
export function sentence(error) {
  if (BY_CODE[error?.code]) return BY_CODE[error.code];
  const said = error instanceof Error ? error.message : "";
  // A status or a name from the code is no sentence for a wearer.
  return !said || /\bstatus \d{3}\b/.test(said) || (error.name !== "GazeError" && error.name !== "RangeError") ? "That did not work. Try again; if it stays so, restart the service." : said;
}
