/**
 * The page's own words for what the service says in codes. Only words from here and from the service's closed lists are shown as the
 * system's; an app's name is the one text of an app's own that is shown, and it is always quoted and in mono.
 * @module
 */
import { el } from "./dom.js";

/** What an app may be allowed, least first, with a title. */
const WANTS = /** @type {Record<string, string>} */ ({
  choose: "Choose by looking", count: "Count looks", follow: "Move an avatar's eyes", study: "Take part in a study",
});

const SCOPE_WORDS = /** @type {Record<string, string>} */ ({
  select: "which thing you chose", areas: "looks at its parts", fixations: "each look at its parts", saccades: "when a look at its parts begins", events: "how your eyes move", region: "which way your eyes look", tile: "which large part of the view you look at", samples: "your gaze with noise",
});

/** How long a grant lasts, least first: code, name, what it means. */
export const LASTS = /** @type {[string, string, string][]} */ ([
  ["visit", "This visit", "Ends two minutes after you leave it."],
  ["until-stopped", "Until I stop it", "Ends when you press Stop."],
]);

const STATES = /** @type {Record<string, [string, string]>} */ ({
  granted: ["Allowed", "good"], spent: ["Used up", "warn"], revoked: ["Stopped", "bad"], expired: ["Ended", "warn"], none: ["Not allowed", ""],
});

const KINDS = /** @type {Record<string, string>} */ ({
  answer: "answered", denied: "refused", grant: "granted", revoke: "taken back", consent: "sharing", policy: "policy changed", drop: "app deleted", wearer: "wearer changed", dismiss: "question refused", unblock: "unblocked", ask: "asked", ended: "ended", opened: "opened",
});

const IN_USE = /** @type {Record<string, string>} */ ({
  select: "your next choice", samples: "your gaze with noise", fixation: "where your eyes rest", saccade: "where your eyes jump", pursuit: "what your eyes follow", tile: "which large part of the view you look at", region: "which way your eyes look", events: "how your eyes move", areas: "looks at its parts", metrics: "looks at its parts", fixations: "each look at its parts", saccades: "when a look at its parts begins"
});

/** @param {string} want @returns {string} */
export const wantTitle = (want) => WANTS[want] ?? want;

/** @param {any[]} presets @returns {any[]} least first */
export function leastFirst(presets) {
  const order = Object.keys(WANTS);
  const place = (/** @type {any} */ preset) => (order.includes(preset.name) ? order.indexOf(preset.name) : order.length);
  return [...presets].sort((a, b) => place(a) - place(b));
}

/** What the wearer is told of a preset. @param {any} preset with its `sentence`, and whether a person could be recognised by it @returns {string} */
export const meaning = ({ sentence: told, recognise }) => `${told}${recognise ? " It could recognise you by it." : ""}`;

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

/** The name of an app that is a web page: scheme, host and port of its origin, joined by dots. An address of numbers has four of them. */
const ORIGIN = /^(https?)\.((?:\d+\.){3}\d+|.*?[^.\d][^.]*)(?:\.(\d+))?$/;

/** How an app is called: a web page by its address, a program by its name. @param {string} app @returns {string} */
export function plainName(app) {
  const [, scheme, host, port] = ORIGIN.exec(app) ?? [];
  return scheme ? `${scheme === "https" ? "" : "http://"}${host}${port ? `:${port}` : ""}` : app;
}

/** The name an app gave itself or was given: shown as that, never as words of the page. @param {string} app @returns {HTMLElement} */
export const appName = (app) => el("q", { class: "app-name" }, plainName(app));

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
