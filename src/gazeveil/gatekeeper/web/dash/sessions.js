/**
 * Who is signed in: this browser, and programs that act for the owner; with a button to end each, and to sign out.
 * @module
 */
import { clock } from "./amounts.js";
import { byId, copy, el, renew, say } from "./dom.js";
import { owner } from "./owner.js";
import { forget } from "./session.js";

/** With the year: tokens last long. @param {number} t_ns nanoseconds since 1970 */
const day = (t_ns) => new Date(t_ns / 1e6).toLocaleDateString("en-GB", { day: "2-digit", month: "short", year: "numeric" });

/** @param {string} title @param {string} words @param {(() => void)|null} onEnd */
function row(title, words, onEnd) {
  return el("li", { class: "row" },
    el("div", { class: "grow" }, el("strong", { class: "mono" }, `“${title}”`), el("p", { class: "quiet facts" }, words)),
    onEnd && el("button", { type: "button", "data-name": "end", "aria-label": `End ${title}`, onclick: onEnd }, "End"));
}

export class SessionList {
  /** @param {(why: string) => void} onSignedOut called when this browser is signed in no more */
  constructor(onSignedOut) {
    this.onSignedOut = onSignedOut;
    byId("sign-out").addEventListener("click", () => this.#try(() => this.signOut()));
    byId("owner-token").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.#try(() => this.#makeToken(/** @type {HTMLFormElement} */ (event.target)));
    });
  }

  async fetch() {
    const { tokens, yours_ends_ns: ends_ns } = await owner("GET", "/v1/owner/tokens");
    byId("session-ends").textContent = `This browser is signed in until ${clock(ends_ns)}. Opening a newer link signs it out.`;
    renew(byId("owner-tokens-list"), tokens, (one) => one.id, (one) => row(one.name, `Token given out ${day(one.issued_ns)}. ${one.expires_ns === null ? "It does not end by itself." : `Ends ${day(one.expires_ns)}.`}`,
      () => this.#try(() => this.#end(`/v1/owner/tokens/${one.id}`, `${one.name} may not act for you any more.`))));
  }

  async signOut() {
    await owner("POST", "/v1/sign-out");
    await forget();
    this.onSignedOut("You have signed out.");
  }

  /** @param {HTMLFormElement} form */
  async #makeToken(form) {
    const made = await owner("POST", "/v1/owner/tokens", { name: String(new FormData(form).get("name")).trim() });
    form.reset();
    byId("owner-token-made").replaceChildren(
      el("p", {}, `Token of ${made.name}. It is shown this once. Whoever holds it can do all that you can.`),
      el("code", { class: "secret", tabindex: "0", "aria-label": "Token" }, made.token),
      el("div", { class: "buttons" },
        el("button", { type: "button", onclick: () => copy(made.token) }, "Copy"),
        el("button", { type: "button", onclick: () => byId("owner-token-made").replaceChildren() }, "Done")));
    await this.fetch();
  }

  /** @param {string} path @param {string} words */
  async #end(path, words) {
    await owner("DELETE", path);
    say(words);
    await this.fetch();
  }

  /** @param {() => Promise<void>} work */
  #try(work) {
    work().catch((error) => say(error.message));
  }
}
