/**
 * Who is asking for what, and what each app may do now.
 * @module
 */
import { clock } from "./amounts.js";
import { budgetLines, timeLeft } from "./budgets.js";
import { el } from "./dom.js";
import { appName, lastsTitle, presetTitle, ruleWords, scopeWords, stateWords } from "./words.js";

/** @param {string[]} scopes */
function tags(scopes) {
  return scopes.length ? el("ul", { class: "tags", "aria-label": "What it may get" }, ...scopes.map((scope) => el("li", {}, scopeWords(scope)))) : null;
}

/** A preset, or the scopes of a grant without one, in the system's words. */
function wanted(ask, preset) {
  if (preset) return el("p", {}, el("strong", {}, `${presetTitle(preset.name)}. `), preset.means);
  return tags(ask.scopes ?? []) ?? el("p", {}, "It did not say what it needs.");
}

/**
 * What an app asks, in the system's words alone: the app's part of it is its name.
 * @param {any} ask
 * @param {{preset: any, purpose: {means: string}|undefined}} known what the ask's codes mean
 * @param {{onGrant: (ask: any) => void, onDismiss: (ask: any) => void}} actions
 */
export function askCard(ask, { preset, purpose }, { onGrant, onDismiss }) {
  return el("article", { class: "card ask", "aria-label": `${ask.app} asks` },
    el("div", { class: "row" }, el("h3", {}, appName(ask.app)), el("span", { class: "badge warn" }, "asks"), el("span", { class: "grow" }), el("span", { class: "quiet facts" }, clock(ask.t_ns))),
    el("dl", { class: "facts-list" },
      el("dt", {}, "It would get"), el("dd", {}, wanted(ask, preset)),
      purpose ? el("dt", {}, "It says why") : null, purpose ? el("dd", {}, purpose.means, " ", el("span", { class: "quiet" }, "Nobody has checked this.")) : null),
    el("div", { class: "row actions" },
      el("button", { type: "button", class: "primary", "data-name": "grant", "aria-label": `Decide on ${ask.app}`, onclick: () => onGrant(ask) }, "Decide…"),
      el("button", { type: "button", "data-name": "dismiss", "aria-label": `Dismiss what ${ask.app} asks`, onclick: () => onDismiss(ask) }, "Dismiss")));
}

/** The technical part of a grant, one press away. */
function details(app, grant) {
  const lines = [
    ...(grant?.mechanisms ?? []).map((rule) => el("li", {}, `samples through ${ruleWords(rule)}`)),
    ...app.budgets.map((budget) => el("li", {}, budgetLines(budget))),
    app.origins?.length ? el("li", {}, `web pages: ${app.origins.join(", ")}`) : null,
  ].filter(Boolean);
  if (!lines.length) return null;
  return el("details", {}, el("summary", { "data-name": "details" }, "Details"), el("ul", { class: "plain-list facts quiet" }, ...lines));
}

/** How long a grant still holds. */
function ends(grant) {
  const lasts = grant.lasts && !(grant.lasts === "for-good" && grant.expires_ns) ? `Lasts: ${lastsTitle(grant.lasts).toLowerCase()}. ` : "";
  return `${lasts}${grant.expires_ns ? `Ends ${clock(grant.expires_ns)}.` : ""}`.trim();
}

/** @param {any} app @returns {[string, string]} */
function badge(app) {
  if (!app.known) return ["Not known", ""];
  if (app.blocked && app.state !== "granted" && app.state !== "spent") return ["Blocked", "bad"];
  return app.state === "granted" && !app.consent ? ["Granted, sharing is off", ""] : stateWords(app.state);
}

/**
 * @param {any} app an entry of /v1/apps with its `budgets`, the `consent` of the device and whether its state is `known` now
 * @param {{onGrant: (app: any) => void, onRevoke: (app: any) => void, onToken: (app: any) => void, onDelete: (app: any) => void, onUnblock: (app: any) => void}} actions
 */
export function appCard(app, { onGrant, onRevoke, onToken, onDelete, onUnblock }) {
  const [word, tone] = badge(app);
  const grant = app.grant;
  const active = app.state === "granted" || app.state === "spent";
  const streams = app.streams ?? [];
  const button = (/** @type {string} */ name, /** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ press, look = "") => el("button", { type: "button", class: look, "data-name": name, "aria-label": `${label} ${app.app}`, onclick: press }, text);
  return el("article", { class: "card app", "data-app": app.app, "aria-label": app.app },
    el("div", { class: "row" }, el("h3", {}, appName(app.app)), el("span", { class: "grow" }), el("span", { class: `badge ${tone}` }, word)),
    active && grant?.preset ? el("p", {}, el("strong", {}, `${presetTitle(grant.preset)}. `), grant.means ?? "") : null,
    active && grant && !grant.preset ? el("p", {}, el("strong", {}, "Custom grant.")) : null,
    active && grant ? (grant.preset ? null : tags(grant.scopes ?? [])) : el("p", { class: "quiet" }, app.blocked ? "Its asks were dismissed three times. It can ask no more until you unblock it." : "It gets nothing."),
    app.state === "spent" ? el("p", { class: "warn-text" }, "Its budget is used up. It gets nothing more until the budget begins anew or you give more.") : null,
    active ? timeLeft(app.budgets) : null,
    active && grant ? el("p", { class: "quiet facts" }, ends(grant)) : null,
    streams.length ? el("ul", { class: "tags", "aria-label": "Open now" }, ...streams.map((s) => el("li", { class: "open" }, s.mechanism ? `${s.what} through ${ruleWords(s.mechanism)}` : s.what))) : null,
    details(app, active ? grant : null),
    el("div", { class: "row actions" }, el("span", {},
      button("grant", active ? "Change…" : "Grant…", active ? "Change" : "Grant", () => onGrant(app), active ? "" : "primary"),
      active ? button("revoke", "Revoke", "Revoke", () => onRevoke(app), "danger") : null,
      app.blocked ? button("unblock", "Unblock", "Unblock", () => onUnblock(app)) : null),
    el("span", {},
      button("token", app.has_token === false ? "Give a token" : "New token", app.has_token === false ? "Give a token to" : "New token for", () => onToken(app), "plain"),
      button("delete", "Delete…", "Delete", () => onDelete(app), "plain danger"))));
}
