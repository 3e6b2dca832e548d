/**
 * The audit log and the certificate.
 * @module
 */
import { clock } from "./amounts.js";
import { byId, copy, el, say } from "./dom.js";
import { owner } from "./owner.js";

const MOST_ROWS = 300;

/** @param {any} detail a flat object; the values are text, numbers or lists */
function words(detail) {
  return Object.entries(detail ?? {}).filter(([, value]) => value !== null && value !== "").map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`).join("; ");
}

export class AuditTable {
  constructor() {
    /** @type {any[]} */
    this.entries = [];
    this.last = 0;
    this.kinds = new Set();
    byId("audit-kind").addEventListener("change", () => this.#show());
    byId("audit-check").addEventListener("click", () => this.verify().catch((error) => say(error.message)));
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

  async fetch() {
    const answer = await owner("GET", this.entries.length ? `/v1/audit?after=${this.last}&limit=${MOST_ROWS}` : `/v1/audit?last=${MOST_ROWS}`);
    const fresh = answer.entries ?? [];
    if (fresh.length) {
      this.last = fresh.at(-1).number;
      this.entries = [...this.entries, ...fresh].slice(-MOST_ROWS);
      for (const { kind } of fresh) {
        if (this.kinds.has(kind)) continue;
        this.kinds.add(kind);
        byId("audit-kind").append(el("option", { value: kind }, kind));
      }
      this.#show();
    }
  }

  #show() {
    const kind = byId("audit-kind").value;
    const rows = this.entries.filter((entry) => !kind || entry.kind === kind).reverse();
    byId("audit-rows").replaceChildren(...rows.map((entry) => el("tr", {},
      el("td", { class: "number" }, String(entry.number)), el("td", { class: "number" }, clock(entry.t_ns)), el("td", {}, entry.kind), el("td", { class: "mono" }, entry.app ?? ""), el("td", {}, words(entry.detail)))));
  }
}

export class Certificate {
  constructor() {
    /** @type {any} */
    this.answer = null;
    byId("certificate-again").addEventListener("click", () => this.fetch().then(() => say("The certificate is as of now.")).catch((error) => say(error.message)));
    byId("certificate-copy").addEventListener("click", () => copy(this.answer?.text ?? ""));
    byId("certificate-save").addEventListener("click", () => this.#save());
  }

  async fetch() {
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
