/**
 * The switch for sharing. It shows what the service says is in force, never what was pressed: while a call runs it is pending, and when
 * the service does not answer it is neither on nor off.
 * @module
 */
import { byId, say } from "./dom.js";
import { consent } from "./owner.js";
import { sentence } from "./words.js";

/** After this long without an answer the state counts as not known. */
const PATIENCE_MS = 2500;

export const GONE = "The service does not answer. Nothing can be sent while it is gone.";
const FAR = "The service cannot be reached from this browser. It is not known what is sent now.";
const SLOW = "The service has not answered yet. It is not known what is sent now.";
const SILENT = "The database does not answer. Nothing is given while it is silent.";
const UNWRITTEN = "Off. Not written yet: the database does not answer.";
const ON = "On: each app gets what you allowed, and nothing else. Switch off and everything stops at once.";
const OFF = "Off: no app gets anything, whatever was granted. Nothing leaves this device.";

/** On this machine a refused connection means that no service runs; from afar it may only be the way to it. */
const isHere = ["127.0.0.1", "localhost", "[::1]"].includes(location.hostname);

export class Switch {
  /** @param {() => void} onChange after every call, to look at the service again */
  constructor(onChange) {
    this.onChange = onChange;
    /** What is in force; null where it is not known. @type {boolean|null} */
    this.on = null;
    /** What was pressed last and is not answered. @type {boolean|null} */
    this.wanted = null;
    /** Off is in force, but a restart might not know it yet. */
    this.unwritten = false;
    /** Why the state is not known. */
    this.why = "";
    this.ledger = true;
    /** Number of the last press: an answer that was on its way before it says nothing about now. */
    this.presses = 0;
    byId("consent").addEventListener("click", () => this.press());
  }

  /** Where it is not known what is in force, a press takes away. */
  async press() {
    if (this.wanted === false) return;
    const wanted = this.wanted === null && this.on === false;
    this.wanted = wanted;
    const press = (this.presses += 1);
    this.#show();
    const slow = setTimeout(() => { if (press === this.presses) this.lose(SLOW); }, PATIENCE_MS);
    try {
      const answer = await consent(wanted);
      if (press !== this.presses) return;
      this.wanted = null;
      this.know({ consent: answer.on, ledger: this.ledger, written: answer.written });
      say(answer.on ? "Sharing is on." : answer.written === false ? UNWRITTEN : "Sharing is off. Nothing leaves this device.");
    } catch (error) {
      if (press !== this.presses) return;
      this.wanted = null;
      if (error.code === "network") this.gone();
      else { this.#show(); say(sentence(error)); }
    } finally {
      clearTimeout(slow);
      this.onChange();
    }
  }

  /** @param {{consent: boolean, ledger?: boolean, written?: boolean}} device what the service says now */
  know({ consent: on, ledger = true, written = true }) {
    this.unwritten = !on && !written;
    this.on = on;
    this.ledger = ledger;
    this.why = "";
    this.#show();
  }

  /** Nobody answers. */
  gone() {
    this.lose(isHere ? GONE : FAR);
  }

  /** It is slow, so nothing is known. */
  slow() {
    this.lose(SLOW);
  }

  /** @param {string} why */
  lose(why) {
    const first = this.why !== why;
    this.on = null;
    this.why = why;
    this.#show();
    if (first) say(why);
  }

  #show() {
    const button = byId("consent");
    const known = this.on !== null;
    button.dataset.state = this.wanted !== null ? "pending" : known ? (this.on ? "on" : "off") : "unknown";
    button.setAttribute("aria-busy", String(this.wanted !== null));
    // A switch is on or off; where neither is known it is a plain button that takes away.
    const attributes = known ? { role: "switch", "aria-checked": String(this.on), "aria-label": "Sharing" } : { role: null, "aria-checked": null, "aria-label": "Sharing is not known. Switch off" };
    for (const [name, value] of Object.entries(attributes)) value === null ? button.removeAttribute(name) : button.setAttribute(name, value);
    byId("consent-word").textContent = this.wanted !== null ? "…" : known ? (this.on ? "On" : "Off") : "?";
    const pending = this.wanted === null ? "" : this.wanted ? "Switching on. " : "Switching off. ";
    const silent = this.ledger || !known ? "" : ` ${SILENT}`;
    byId("consent-means").textContent = pending + (!known ? this.why : this.unwritten ? UNWRITTEN : `${this.on ? ON : OFF}${silent}`);
  }
}
