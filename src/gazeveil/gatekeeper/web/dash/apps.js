/**
 * Who is asking for what, and what each app may do now.
 * @module
 */
import { clock } from "./amounts.js";
import { timeLeft } from "./budgets.js";
import { el } from "./dom.js";
import { LASTS, appName, lastsTitle, meaning, plainName, stateWords, useWords, wantTitle } from "./words.js";

const yes = (/** @type {string} */ title) => `Yes, ${title[0].toLowerCase()}${title.slice(1)}`;

/**
 * The wearer's question, in the system's words alone: the app's part of it is its name.
 * @param {any} ask
 * @param {any} preset what it asks for
 * @param {{onGrant: (ask: any, lasts: string) => void, onRefuse: (ask: any) => void}} actions
 */
export function askCard(ask, preset, { onGrant, onRefuse }) {
  const name = plainName(ask.app);
  return el("article", { class: "card ask", "aria-label": `${name} asks` },
    el("div", { class: "row" }, el("h3", {}, appName(ask.app), " asks"), el("span", { class: "grow" }), el("span", { class: "quiet facts" }, clock(ask.t_ns))),
    el("p", {}, el("strong", {}, `${wantTitle(ask.want)}. `), preset ? meaning(preset) : ""),
    ...ask.notes.map((/** @type {string} */ note) => el("p", { class: "quiet" }, note)),
    el("div", { class: "row actions" },
      ...LASTS.map(([code, title], i) => el("button", {
        type: "button", class: i === 0 ? "primary" : "", "data-name": code, "aria-label": `${yes(title)}: ${name}`, onclick: () => onGrant(ask, code),
      }, yes(title))),
      el("button", { type: "button", "data-name": "refuse", "aria-label": `No: ${name}`, onclick: () => onRefuse(ask) }, "No")));
}

/** How long a grant still holds. */
function ends(grant) {
  return `${lastsTitle(grant.lasts)}.${grant.expires_ns ? ` Ends ${clock(grant.expires_ns)}.` : ""}`;
}

/** @param {any} app @returns {[string, string]} */
function badge(app) {
  if (!app.known) return ["Not known", ""];
  if (app.blocked && app.state !== "granted" && app.state !== "spent") return ["Blocked", "bad"];
  return app.state === "granted" && !app.consent ? ["Allowed, sharing is off", ""] : stateWords(app.state);
}

/**
 * @param {any} app an entry of /v1/apps with its `preset`, its `budgets`, the `consent` of the device and whether its state is `known` now
 * @param {{onGrant: (app: any) => void, onRevoke: (app: any) => void, onToken: (app: any) => void, onDelete: (app: any) => void, onUnblock: (app: any) => void}} actions
 */
export function appCard(app, { onGrant, onRevoke, onToken, onDelete, onUnblock }) {
  const [word, tone] = badge(app);
  const { grant, preset } = app;
  const active = app.state === "granted" || app.state === "spent";
  const streams = app.streams ?? [];
  const name = plainName(app.app);
  const isPage = name !== app.app;
  const button = (/** @type {string} */ key, /** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ press, look = "") => el("button", { type: "button", class: look, "data-name": key, "aria-label": `${label} ${name}`, onclick: press }, text);
  return el("article", { class: "card app", "data-app": app.app, "aria-label": name },
    el("div", { class: "row" }, el("h3", {}, appName(app.app)), el("span", { class: "grow" }), el("span", { class: `badge ${tone}` }, word)),
    active && preset ? el("p", {}, el("strong", {}, `${wantTitle(preset.name)}. `), meaning(preset)) : null,
    active ? null : el("p", { class: "quiet" }, app.blocked ? "You said no three times. It can ask no more until you unblock it." : "It gets nothing."),
    app.state === "spent" ? el("p", { class: "warn-text" }, "Its time is used up. It gets nothing more until tomorrow, or until you allow it again.") : null,
    active ? timeLeft(app.budgets) : null,
    active && grant ? el("p", { class: "quiet facts" }, ends(grant)) : null,
    streams.length ? el("ul", { class: "tags", "aria-label": "Open now" }, ...streams.map((s) => el("li", { class: "open" }, useWords(s.what)))) : null,
    el("div", { class: "row actions" }, el("span", {},
      button("grant", active ? "Change…" : "Allow…", active ? "Change" : "Allow", () => onGrant(app), active ? "" : "primary"),
      active ? button("revoke", "Stop", "Stop", () => onRevoke(app), "danger") : null,
      app.blocked ? button("unblock", "Unblock", "Unblock", () => onUnblock(app)) : null),
    el("span", {},
      isPage ? null : button("token", app.has_token === false ? "Give a token" : "New token", app.has_token === false ? "Give a token to" : "New token for", () => onToken(app), "plain"),
      button("delete", "Delete…", "Delete", () => onDelete(app), "plain danger"))));
}
