/**
 * The six calls of an app: ask, choose, observe, on, follow, left.
 * @module
 */
import { GazeError } from "./errors.js";
import { Caller } from "./http.js";
import { trackMouse } from "./mouse.js";
import { NO_PLACE, ScreenScale, Things, Viewport } from "./places.js";
import { PaperCalls } from "./s001.js";
import { SampleStream } from "./samples.js";
import { StreamSocket } from "./socket.js";

/**
 * @typedef {import("./places.js").Thing} Thing
 * @typedef {"choose"|"count"|"follow"|"study"} Want
 * @typedef {"granted"|"refused"|"dismissed"} Answer
 * @typedef {"at-you"|"left"|"right"|"up"|"down"|"closed"} Region
 */

/** How often the page looks whether the wearer has answered, in milliseconds. */
const ASK_EVERY_MS = 500;

/** What `on` hears, and what it asks the Gatekeeper for; null is heard by every page that is connected. */
const KINDS = /** @type {Record<string, object|null>} */ ({
  fixation: { what: "fixation" }, "saccade-start": { what: "saccade", mode: "start" }, region: { what: "region" }, paused: null, resumed: null, ended: null,
});

export class Gaze extends PaperCalls {
  /** @type {{kind: string, callback: (event: any) => void}[]} */
  #heard = [];
  /** @type {ScreenScale|null} */
  #scale = null;
  /** @type {AbortController|null} */
  #mouse = null;
  /** The device stands still: no gaze comes. @type {any} */
  #paused = null;

  /**
   * @param {string} url address of the Gatekeeper
   * @param {{token?: string, signal?: AbortSignal}} [options]
   */
  constructor(url, { token, signal } = {}) {
    const caller = new Caller(url, token, signal);
    const socket = new StreamSocket(caller.base, () => caller.token, (state, error) => this.#state(state, error), (message) => this.#news(message));
    super(caller, socket);
    signal?.addEventListener("abort", () => this.close(), { once: true });
  }

  /** What the Gatekeeper says about this app: its grant, the public level, the space. @returns {Promise<any>} */
  me() {
    return this.caller.call("GET", "/v1/me");
  }

  /**
   * Opens the wearer's question, and waits for the answer. Where the wearer has said yes before, there is no question.
   * @param {Want} want
   * @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<Answer>} "refused" also where the wearer wants no more questions of this app, "dismissed" where nobody answered
   */
  async ask(want, { signal } = {}) {
    let state = "waiting";
    try {
      ({ state } = await this.#question(want));
    } catch (error) {
      if (error.code === "blocked") return "refused";
      throw error;
    }
    while (state === "waiting") {
      await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
      signal?.throwIfAborted();
      state = await this.#answer();
    }
    if (state === "granted") this.socket.wake();
    return /** @type {Answer} */ (state);
  }

  /** How the wearer has answered so far. A pass that was never granted ends with its question. @returns {Promise<string>} */
  async #answer() {
    try {
      return (await this.me()).answer ?? "dismissed";
    } catch (error) {
      if (error.code !== "token") throw error;
      this.caller.keep("");
      return "refused";
    }
  }

  /** @param {Want} want @returns {Promise<{state: string, token?: string}>} */
  async #question(want) {
    let given;
    try {
      given = await this.caller.call("POST", "/v1/ask", { want });
    } catch (error) {
      // A pass that has ended is no reason not to ask: the page is still its origin.
      if (error.code !== "token" || !this.caller.token) throw error;
      this.caller.keep("");
      given = await this.caller.call("POST", "/v1/ask", { want });
    }
    if (given.token) this.caller.keep(given.token);
    return given;
  }

  /**
   * Waits until the wearer has chosen one of the things. Nothing is told before, wherever the wearer looks.
   * @template {Thing} T
   * @param {Iterable<T>|T} things elements, which are followed as they move, or rectangles in pixels or degrees
   * @param {{by?: "confirm"|"dwell", dwell_ms?: number, signal?: AbortSignal}} [options] by the device's own gesture, or by resting the eyes on it
   * @returns {Promise<T>} rejects with a GazeError where it is refused or ended before a choice
   */
  async choose(things, { by = "confirm", dwell_ms = 800, signal } = {}) {
    signal?.throwIfAborted();
    if (by !== "confirm" && by !== "dwell") throw new GazeError("parameter", `by is "confirm" or "dwell". Got ${by} instead.`);
    const settled = new AbortController();
    try {
      return await new Promise((resolve, reject) => {
        this.#place(things, { what: "select", by, dwell_ms }, {
          onMessage: (message, named) => resolve(named.thing(message.target)),
          onEnd: reject, // After the choice this changes nothing any more.
        }, settled.signal).catch(reject);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true, signal: settled.signal });
      });
    } finally {
      settled.abort(); // Ends the subscription, and a signal that lives longer must not keep it.
    }
  }

  /**
   * Calls back with the numbers of each thing, at once and after each change: fixations, visits, dwell_ms, order, first_fixation_ms, first_saccade_ms.
   * @template {Thing} T
   * @param {Iterable<T>|T} things at most 16
   * @param {(seen: import("./s001.js").AreaMetrics & {thing: T}) => void} callback
   * @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<{close: () => void}>} resolves when the Gatekeeper has accepted it
   */
  async observe(things, callback, { signal } = {}) {
    signal?.throwIfAborted();
    const ending = new AbortController();
    signal?.addEventListener("abort", () => ending.abort(), { once: true, signal: ending.signal });
    await new Promise((resolve, reject) => {
      this.#place(things, { what: "areas" }, {
        onOpen: resolve,
        onMessage: (message, named) => {
          const { fixations, visits, dwell_ms, order, first_fixation_ms, first_saccade_ms } = message;
          callback({ thing: named.thing(message.name), fixations, visits, dwell_ms, order, first_fixation_ms, first_saccade_ms });
        },
        onEnd: (error) => { ending.abort(); reject(error); this.#ended("areas", error); },
      }, ending.signal).catch(reject);
    });
    return { close: () => ending.abort() };
  }

  /**
   * Calls back on a movement ("fixation", "saccade-start"), on where an avatar's eyes go ("region"), when gaze stops and comes back ("paused",
   * "resumed"), and when something has ended ("ended": its kind, or "grant" for all that the wearer allowed; code, reason).
   * @param {"fixation"|"saccade-start"|"region"|"paused"|"resumed"|"ended"} kind
   * @param {(event: any) => void} callback
   * @param {{signal?: AbortSignal}} [options]
   * @returns {Promise<{close: () => void}>} resolves when the Gatekeeper has accepted it
   */
  async on(kind, callback, { signal } = {}) {
    if (!(kind in KINDS)) throw new GazeError("unknown", `An event is one of ${Object.keys(KINDS).join(", ")}. Got ${kind} instead.`);
    signal?.throwIfAborted();
    const request = KINDS[kind];
    if (!request) return this.#hear(kind, callback, signal);
    let id = 0;
    await new Promise((resolve, reject) => {
      id = this.socket.subscribe({ request, onOpen: resolve, onMessage: callback, onEnd: (error) => { reject(error); this.#ended(kind, error); } });
    });
    const close = () => this.socket.unsubscribe(id);
    signal?.addEventListener("abort", close, { once: true });
    return { close };
  }

  /** @param {string} kind @param {(event: any) => void} callback @param {AbortSignal} [signal] */
  #hear(kind, callback, signal) {
    const one = { kind, callback };
    this.#heard.push(one);
    const close = () => { this.#heard = this.#heard.filter((other) => other !== one); };
    signal?.addEventListener("abort", close, { once: true });
    this.socket.stay();
    if (kind === "paused" && this.#paused) callback(this.#paused);
    return { close };
  }

  /**
   * Follows the eyes: for an avatar where they go, `{region, t_ms}`; in a study protected samples, `{t_ms, x_deg, y_deg, valid}`. The device
   * picks what protects them.
   * @param {{signal?: AbortSignal}} [options]
   * @returns {AsyncGenerator<any, void, void>} leaving the loop ends it
   */
  async *follow({ signal } = {}) {
    const { want } = await this.me();
    const request = want === "follow" ? { what: "region" } : { what: "samples", encoding: "binary" };
    yield* new SampleStream(this.socket, { request, signal });
  }

  /** Seconds until the grant ends or is used up; Infinity where it holds until the wearer stops it, 0 without one. @returns {Promise<number>} */
  async left() {
    const { want, left_s } = await this.me();
    return want ? left_s ?? Infinity : 0;
  }

  /** Ends every subscription. */
  close() {
    this.#mouse?.abort();
    this.socket.close();
  }

  /**
   * A subscription about things, which are followed as long as it is open.
   * @param {any} things
   * @param {object} request
   * @param {{onOpen?: (answer: any) => void, onMessage: (message: any, named: Things) => void, onEnd: (error: GazeError) => void}} told
   * @param {AbortSignal} signal
   */
  async #place(things, request, { onOpen = () => {}, onMessage, onEnd }, signal) {
    const scale = await this.#scaleOf();
    if (signal.aborted) return;
    const named = new Things(things, () => scale ?? this.#noScale());
    const id = this.socket.subscribe({
      request, renew: () => ({ targets: named.targets() }), onOpen, onMessage: (message) => onMessage(message, named), onEnd,
    });
    signal.addEventListener("abort", () => this.socket.unsubscribe(id), { once: true });
    named.follow((targets) => this.socket.send({ type: "move", id, targets }), signal);
  }

  /** Pixels and degrees of this device; null where a page has no place in its space. */
  async #scaleOf() {
    if (!this.#scale && typeof window !== "undefined") this.#scaled((await this.me()).space);
    return this.#scale;
  }

  /** @param {import("./places.js").Space} space */
  #scaled(space) {
    if (this.#scale || space.kind !== "screen" || typeof window === "undefined") return;
    const viewport = new Viewport();
    this.#scale = new ScreenScale(space, window.screen, () => viewport.place);
  }

  /** @returns {never} */
  #noScale() {
    throw new GazeError("space", NO_PLACE);
  }

  /** @param {string} state of the connection @param {GazeError} [error] */
  #state(state, error) {
    if (state === "waiting" && !this.#paused) this.#news({ type: "paused", reason: "network" });
    this.dispatch("statechange", { type: "statechange", state, error });
  }

  /** @param {any} message a welcome, or news of the device */
  #news(message) {
    if (message.type === "ended") return this.#ended("grant", message);
    if (message.type === "paused" || message.type === "resumed") {
      this.#paused = message.type === "paused" ? message : null;
      for (const { kind, callback } of [...this.#heard]) if (kind === message.type) callback(message);
      return;
    }
    if (message.type !== "welcome") return;
    if (this.#paused) this.#news({ type: "resumed" });
    this.#scaled(message.space);
    this.#mouse?.abort();
    if (!message.tracker?.mouse || !this.#scale) return;
    const scale = this.#scale;
    this.#mouse = new AbortController();
    trackMouse((one) => this.socket.send(one), () => scale, this.#mouse.signal);
  }

  /** @param {string} kind @param {{code: string, reason: string}} error */
  #ended(kind, error) {
    const event = { type: "ended", kind, code: error.code, reason: error.reason };
    for (const { kind: heard, callback } of [...this.#heard]) if (heard === "ended") callback(event);
    this.dispatch("ended", event);
  }
}
