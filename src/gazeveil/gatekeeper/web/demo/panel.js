/**
 * The life of a demo app: connect with a token, ask, wait for the owner, run, and say in words why it ended.
 * @module
 */
import { connect } from "/client.js";
import { el } from "/dash/dom.js";

/**
 * @typedef {object} AppPart
 * @property {string} title
 * @property {string} about what the app is for
 * @property {{preset?: string, scopes?: string[], purpose: string}} request what it asks for, from the Gatekeeper's closed lists
 * @property {Node[]} content what it shows
 * @property {(run: {gaze: import("/client.js").Gaze, me: any, signal: AbortSignal, say: (text: string) => void}) => Promise<void>} run ends or throws when it is over
 */

/** @param {AppPart} part @param {string} token */
export function panel(part, token) {
  const state = el("p", { class: "state", role: "status", "aria-live": "polite" }, "Starting…");
  const again = el("button", { type: "button", hidden: true, onclick: () => start() }, "Ask again");
  const stop = el("button", { type: "button", hidden: true, onclick: () => ending?.abort() }, "Stop");
  const asks = part.request.preset ? `the preset ${part.request.preset}` : part.request.scopes?.join(", ");
  const made = el("section", { class: "card panel", "aria-label": part.title },
    el("div", { class: "row" }, el("h2", {}, part.title), el("span", { class: "grow" }), again, stop),
    el("p", { class: "quiet" }, `${part.about} Asks for ${asks}.`), state, ...part.content);
  /** @type {AbortController|null} */
  let ending = null;

  const show = (kind, text) => {
    state.className = `state ${kind}`;
    if (state.textContent !== text) state.textContent = text;
    made.dataset.state = kind;
    again.hidden = kind !== "ended";
    stop.hidden = kind === "ended";
  };

  async function start() {
    ending = new AbortController();
    const { signal } = ending;
    let gaze = null;
    try {
      show("", "Connecting…");
      gaze = await connect(location.origin, { token, signal });
      for (;;) {
        let me = await gaze.me();
        if (me.state !== "granted") await askOnce(gaze, part.request);
        if (me.state !== "granted" || !me.consent) {
          show("waiting", me.state === "granted" ? "Granted. Waiting until the owner switches sharing on." : "Asked. Waiting for the owner to decide on their page.");
          me = await gaze.granted({ signal });
        }
        show("running", "Running.");
        try {
          await part.run({ gaze, me, signal, say: (text) => show("running", text) });
          break;
        } catch (error) {
          // Sharing that is off may come back; everything else is the owner's decision and is not asked for again by itself.
          if (error.code !== "no-consent") throw error;
        }
      }
    } catch (error) {
      made.dataset.code = signal.aborted ? "stopped" : error.code ?? "mistake";
      show("ended", signal.aborted ? "Stopped by you." : `Ended (${error.code ?? "mistake"}): ${error.reason ?? "This page made a mistake. Load it again."}`);
    } finally {
      gaze?.close();
      ending.abort();
    }
  }

  start();
  return made;
}

/** Asks; where the app's ask waits already, that is the one the owner reads. */
async function askOnce(gaze, request) {
  try {
    await gaze.ask(request);
  } catch (error) {
    if (error.code !== "waiting") throw error;
  }
}

/**
 * Rejects when a subscription of the app has ended or the app was stopped: what an app that lives by events waits for.
 * @param {import("/client.js").Gaze} gaze @param {AbortSignal} signal
 * @returns {Promise<never>}
 */
export function ended(gaze, signal) {
  return new Promise((resolve, reject) => {
    gaze.addEventListener("ended", (event) => reject(Object.assign(new Error(event.reason), { code: event.code, reason: event.reason })), { signal });
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
