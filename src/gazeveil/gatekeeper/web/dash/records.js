/**
 * The audit log and the certificate.
 * @module
 */
import { clock } from "./amounts.js";
import { byId, copy, el, say } from "./dom.js";
import { owner } from "./owner.js";
import { appName, kindWords, lastsTitle, scopeWords, sentence, wantTitle } from "./words.js";

const MOST_ROWS = 300;

/** Codes of a row's detail, in words. */
const FIELDS = /** @type {Record<string, string>} */ ({ what: "asked", want: "asked", code: "because", preset: "allowed", scopes: "gets", mechanisms: "through", lasts: "lasts", mechanism: "through", apps: "apps", consent: "sharing", on: "sharing", wearer: "wearer", written: "written" });

/** @param {any} value text, a number, a yes or no, or a list of these */
function plain(name, value) {
  if (Array.isArray(value)) return value.map((one) => plain(name, one)).join(", ");
  if (typeof value === "boolean") return name === "consent" || name === "on" ? (value ? "on" : "off") : value ? "yes" : "no";
  if (value && typeof value === "object") return Object.entries(value).map(([key, one]) => `${key} ${plain(key, one)}`).join(", ");
  if (name === "preset" || name === "want") return wantTitle(String(value));
  if (name === "lasts") return lastsTitle(String(value)).replace(/^./, (first) => first.toLowerCase());
  if (name === "scopes") return String(value).split(/[\s,]+/).map(scopeWords).join(", ");
  if (name === "what") return String(value).replaceAll("_", " ");
  return String(value);
}

/** What the row says already, or what says nothing to a wearer. */
const isKnown = (kind, name, value) => (name === "code" && value === "allowed") || name === "apps" || (name === "consent" && kind !== "consent" && kind !== "policy");

/** @param {string} kind @param {any} detail a flat object of words and whole numbers */
function words(kind, detail) {
  // What a preset consists of is for the exported log.
  const { scopes, mechanisms, ...told } = detail ?? {};
  return Object.entries(told.preset ? told : detail ?? {}).filter(([name, value]) => !isKnown(kind, name, value) && value !== null && value !== "" && !(Array.isArray(value) && !value.length)).map(([name, value]) => `${FIELDS[name] ?? name.replaceAll("_", " ")}: ${plain(name, value)}`).join("; ");
}

/** The app's name where the device knows it, its hash beside it: the log itself holds the hash alone. */
function who(entry) {
  const hash = entry.app ? el("span", { class: "mono quiet hash", title: entry.app }, entry.app.slice(0, 8)) : null;
  return entry.name ? [appName(entry.name), " ", hash] : [hash];
}

export class AuditTable {
  constructor() {
    /** @type {any[]} */
    this.entries = [];
    this.last = 0;
    this.kinds = new Set();
    byId("audit-kind").addEventListener("change", () => this.#show());
    byId("audit-check").addEventListener("click", () => this.verify().catch((error) => say(sentence(error))));
    byId("audit-more").addEventListener("toggle", () => this.fetch().catch((error) => say(sentence(error))));
  }

  /** Checks the chain of hashes; the service reads all of it, so this happens when asked for. */
  async verify() {
    const { verified } = await owner("GET", "/v1/audit?last=1&verify=true");
    const state = byId("audit-state");
    state.hidden = false;
    state.className = verified ? "badge good" : "badge bad";
    state.textContent = verified ? "Chain verified" : "The chain is broken";
    say(verified ? "Every line is chained to the one before it." : "The audit log was changed: its chain of hashes is broken.");
  }

  /** Reads what is new, while somebody looks at it. */
  async fetch() {
    if (!byId("audit-more").open) return;
    const answer = await owner("GET", this.entries.length ? `/v1/audit?after=${this.last}&limit=${MOST_ROWS}` : `/v1/audit?last=${MOST_ROWS}`);
    const fresh = answer.entries ?? [];
    if (fresh.length) {
      this.last = fresh.at(-1).number;
      this.entries = [...this.entries, ...fresh].slice(-MOST_ROWS);
      for (const { kind } of fresh) {
        if (this.kinds.has(kind)) continue;
        this.kinds.add(kind);
        byId("audit-kind").append(el("option", { value: kind }, kindWords(kind)));
      }
      this.#show();
    }
  }

  #show() {
    const kind = byId("audit-kind").value;
    const rows = this.entries.filter((entry) => !kind || entry.kind === kind).reverse();
    byId("audit-rows").replaceChildren(...rows.map((entry) => el("tr", {},
      el("td", { class: "number" }, String(entry.number)), el("td", { class: "number" }, clock(entry.t_ns)), el("td", {}, kindWords(entry.kind)), el("td", {}, ...who(entry).filter(Boolean)), el("td", {}, words(entry.kind, entry.detail)))));
  }
}

export class Certificate {
  constructor() {
    /** @type {any} */
    this.answer = null;
    byId("certificate-again").addEventListener("click", () => this.fetch().then(() => say("The certificate is as of now.")).catch((error) => say(sentence(error))));
    byId("certificate-copy").addEventListener("click", () => copy(this.answer?.text ?? ""));
    byId("certificate-save").addEventListener("click", () => this.#save());
    byId("certificate-more").addEventListener("toggle", () => this.fetch().catch((error) => say(sentence(error))));
  }

  async fetch() {
    if (!byId("certificate-more").open) return;
    this.answer = await owner("GET", "/v1/certificate");
    byId("certificate-text").textContent = this.answer.text;
  }

  #save() {
    if (!this.answer) return;
    const address = URL.createObjectURL(new Blob([JSON.stringify(this.answer, null, 2)], { type: "application/json" }));
    el("a", { href: address, download: "gazeveil-certificate.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}
