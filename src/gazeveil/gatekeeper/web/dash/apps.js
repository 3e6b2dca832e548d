/**
 * Who is asking for what, and what each app may do now.
 * @module
 */
import { bar } from "./budgets.js";
import { clock } from "./amounts.js";
import { el } from "./dom.js";

const SCOPE_WORDS = /** @type {Record<string, string>} */ ({
  areas: "registers areas", fixations: "fixations in its areas", saccades: "saccades into its areas", events: "movements as they end", tile: "the tile looked at", counter: "noisy counts", samples: "protected samples",
});

const STATES = /** @type {Record<string, [string, string]>} */ ({
  granted: ["Granted", "good"], revoked: ["Revoked", "bad"], expired: ["Expired", "warn"], none: ["No grant", ""],
});

/** @param {string} scope */
export const scopeWords = (scope) => SCOPE_WORDS[scope] ?? scope;

/** A rule of the policy for people: "kaleido:epsilon<=1,w>=60" is "kaleido with epsilon ≤ 1, w ≥ 60". @param {string} rule */
export const ruleWords = (rule) => rule.replace(":", " with ").replaceAll(",", ", ").replaceAll(/\s*<=\s*/g, "\u00a0≤\u00a0").replaceAll(/\s*>=\s*/g, "\u00a0≥\u00a0").replaceAll(/(\w)=(?=\w)/g, "$1\u00a0=\u00a0");

/** @param {string[]} scopes @param {string[]} mechanisms */
function tags(scopes, mechanisms) {
  const items = [...scopes.map(scopeWords), ...mechanisms.map((m) => `through ${ruleWords(m)}`)];
  return items.length ? el("ul", { class: "tags", "aria-label": "What it may get" }, ...items.map((text) => el("li", {}, text))) : null;
}

/**
 * @param {any} ask
 * @param {{means: string}|undefined} preset
 * @param {{onGrant: (ask: any) => void, onDismiss: (ask: any) => void}} actions
 */
export function askCard(ask, preset, { onGrant, onDismiss }) {
  return el("article", { class: "card ask" },
    el("div", { class: "row" }, el("h3", {}, ask.app), el("span", { class: "badge warn" }, ask.preset ? `asks for ${ask.preset}` : "asks for a custom grant"), el("span", { class: "quiet facts" }, clock(ask.t_ns))),
    ask.why ? el("blockquote", {}, ask.why) : null,
    preset ? el("p", {}, preset.means) : tags(ask.scopes ?? [], ask.mechanisms ?? []),
    el("div", { class: "row" },
      el("button", { type: "button", class: "primary", "data-name": "grant", "aria-label": `Decide on ${ask.app}`, onclick: () => onGrant(ask) }, "Decide…"),
      el("button", { type: "button", "data-name": "dismiss", "aria-label": `Dismiss what ${ask.app} asks`, onclick: () => onDismiss(ask) }, "Dismiss")));
}

/**
 * @param {any} app an entry of /v1/apps with its `budgets` and the `consent` of the device
 * @param {{onGrant: (app: any) => void, onRevoke: (app: any) => void, onToken: (app: any) => void}} actions
 */
export function appCard(app, { onGrant, onRevoke, onToken }) {
  const [word, tone] = STATES[app.state] ?? [app.state, ""];
  const grant = app.grant;
  const active = app.state === "granted";
  const streams = app.streams ?? [];
  return el("article", { class: "card app", "data-app": app.app },
    el("div", { class: "row" }, el("h3", {}, app.app), el("span", { class: "grow" }), el("span", { class: `badge ${tone}` }, active && !app.consent ? "Granted, sharing is off" : word)),
    active && grant?.preset ? el("p", {}, el("strong", {}, grant.preset), grant.means ? `: ${grant.means}` : "") : null,
    active && grant && !grant.preset ? el("p", {}, el("strong", {}, "Custom grant")) : null,
    active && grant ? tags(grant.scopes ?? [], grant.mechanisms ?? []) : el("p", { class: "quiet" }, "It gets nothing."),
    active && grant?.expires_ns ? el("p", { class: "quiet facts" }, `Ends ${clock(grant.expires_ns)}`) : null,
    ...app.budgets.map(bar),
    streams.length ? el("ul", { class: "tags", "aria-label": "Open now" }, ...streams.map((s) => el("li", { class: "open" }, s.mechanism ? `${s.what} through ${ruleWords(s.mechanism)}` : s.what))) : null,
    app.origins?.length ? el("p", { class: "quiet facts" }, `Only from ${app.origins.join(", ")}`) : null,
    el("div", { class: "row actions" },
      el("button", { type: "button", class: active ? "" : "primary", "data-name": "grant", "aria-label": `${active ? "Change" : "Grant"} ${app.app}`, onclick: () => onGrant(app) }, active ? "Change…" : "Grant…"),
      active ? el("button", { type: "button", class: "danger", "data-name": "revoke", "aria-label": `Revoke ${app.app}`, onclick: () => onRevoke(app) }, "Revoke") : null,
      el("span", { class: "grow" }),
      el("button", { type: "button", class: "plain", "data-name": "token", "aria-label": `New token for ${app.app}`, onclick: () => onToken(app) }, app.has_token === false ? "Give a token" : "New token")));
}
