/**
 * What an app may ask about gaze. Places are degrees of the device's space, x to the right and y downwards; times are milliseconds
 * since the session began, in steps of the level's tick. Raw gaze, pupil, velocity and confidence do not exist here.
 * @module
 */
import { GazeError } from "./errors.js";
import { Caller } from "./http.js";
import { SampleStream } from "./samples.js";
import { StreamSocket } from "./socket.js";

/**
 * @typedef {{x_deg: number, y_deg: number, width_deg: number, height_deg: number}} Rect
 * @typedef {Rect & {id: number|string, name: string}} Area a registered rectangle, snapped outwards to the public grid
 * @typedef {{number: number, kind: string, x_deg: number, y_deg: number, t_ms: number, duration_ms: number}} PublicEvent
 * @typedef {{fixations: number, visits: number, dwell_ms: number, order: number|null, first_fixation_ms: number|null, first_saccade_ms: number|null}} AreaMetrics
 * @typedef {Rect & {name: string}} Target something the app draws and the wearer may choose
 * @typedef {{since_ms?: number, until_ms?: number, after?: number, limit?: number}} Range
 */

const MOVEMENTS = ["fixation", "saccade", "pursuit", "tile"];
const LOCAL = ["ended", "statechange"];

const rectKey = (/** @type {Rect} */ r) => [r.x_deg, r.y_deg, r.width_deg, r.height_deg].join(",");

const query = (/** @type {object} */ range) => {
  const pairs = Object.entries(range).filter(([, value]) => value !== undefined && value !== null);
  return pairs.length ? `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}` : "";
};

export class Gaze {
  #caller;
  #socket;
  /** @type {Map<string, Promise<Area>>} */
  #rects = new Map();
  /** @type {{kind: string, callback: Function, mode: string, id: number|null}[]} */
  #listeners = [];

  /**
   * Use {@link connect} instead.
   * @param {string} url
   * @param {{token: string, signal?: AbortSignal}} options
   */
  constructor(url, { token, signal }) {
    this.#caller = new Caller(url, token, signal);
    this.#socket = new StreamSocket(this.#caller.base, token, (state, error) => this.#dispatch("statechange", { type: "statechange", state, error }));
    signal?.addEventListener("abort", () => this.close(), { once: true });
  }

  /** What the Gatekeeper says about this app: its grant, its budgets, the public level. @returns {Promise<any>} */
  me() {
    return this.#caller.call("GET", "/v1/me");
  }

  /**
   * Asks the owner for a grant; the owner decides on the dashboard. All of it comes from closed lists: a preset or scopes, and the code
   * of a purpose. Rejects with code "waiting" while an earlier ask of the app waits, "blocked" where the owner dismissed three.
   * @param {{preset?: string, scopes?: string[], purpose: string}} request
   * @returns {Promise<any>}
   */
  ask(request) {
    return this.#caller.call("POST", "/v1/ask", request);
  }

  /**
   * Waits until the owner has granted something and consent is on.
   * @param {{signal?: AbortSignal, every_ms?: number}} [options]
   * @returns {Promise<any>} as {@link me}
   */
  async granted({ signal, every_ms = 1000 } = {}) {
    for (;;) {
      signal?.throwIfAborted();
      const me = await this.me();
      if (me.state === "granted" && me.consent) return me;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, every_ms);
        signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(null); }, { once: true });
      });
    }
  }

  /**
   * @param {string} name
   * @param {Rect} rect
   * @returns {Promise<Area>} the rectangle as the Gatekeeper uses it
   */
  registerArea(name, rect) {
    const { x_deg, y_deg, width_deg, height_deg } = rect;
    return this.#caller.call("POST", "/v1/areas", { name, x_deg, y_deg, width_deg, height_deg });
  }

  /** @returns {Promise<Area[]>} */
  async areas() {
    return (await this.#caller.call("GET", "/v1/areas")).areas;
  }

  /** @param {Area} area */
  async removeArea(area) {
    await this.#caller.call("DELETE", `/v1/areas/${encodeURIComponent(area.id)}`);
    for (const [key, registered] of this.#rects) if ((await registered).id === area.id) this.#rects.delete(key);
  }

  /**
   * Fixations in an area. A bare rectangle is registered once, the first time it is used.
   * @param {Rect|Area} area
   * @param {Range} [range]
   * @returns {Promise<PublicEvent[]>}
   */
  async getFixations(area, range = {}) {
    return (await this.#about(area, `fixations${query(range)}`)).fixations;
  }

  /**
   * Saccades that landed in an area: cell and tick of the landing alone.
   * @param {Rect|Area} area
   * @param {Range} [range]
   * @returns {Promise<PublicEvent[]>}
   */
  async getSaccades(area, range = {}) {
    return (await this.#about(area, `saccades${query(range)}`)).saccades;
  }

  /**
   * @param {PublicEvent|number} fixation one that the app was shown, or its number
   * @returns {Promise<number>} milliseconds
   */
  async getDwellTime(fixation) {
    const number = typeof fixation === "number" ? fixation : fixation.number;
    return (await this.#caller.call("GET", `/v1/fixations/${encodeURIComponent(number)}/dwell`)).duration_ms;
  }

  /** @param {Rect|Area} area @returns {Promise<AreaMetrics>} */
  metrics(area) {
    return this.#about(area, "metrics");
  }

  /** A differentially private count of fixations. @param {Rect|Area} area @returns {Promise<{fixations: number, epsilon: string, guarantee: any}>} */
  counter(area) {
    return this.#about(area, "counter");
  }

  /** @returns {Promise<number|null>} the tile now looked at, counted row by row; null while gaze is lost */
  async currentTile() {
    return (await this.#caller.call("GET", "/v1/tile")).tile;
  }

  /**
   * Calls back on movements of the eyes ("fixation", "saccade", "pursuit"), on a change of tile ("tile"), when a subscription has ended
   * ("ended": code, reason) and on the state of the connection ("statechange").
   * @param {string} kind
   * @param {(event: any) => void} callback
   * @param {{mode?: "end"|"start-stop"|"start", once?: boolean, signal?: AbortSignal}} [options] "start-stop" and "start" are for saccades: the start carries its time alone, and "start" leaves out where they land
   * @returns {Promise<any>} resolves when the Gatekeeper has accepted it, rejects with a GazeError when it has not
   */
  addEventListener(kind, callback, { mode = "end", once = false, signal } = {}) {
    if (!MOVEMENTS.includes(kind) && !LOCAL.includes(kind)) {
      return Promise.reject(new GazeError("unknown", `An event is one of ${[...MOVEMENTS, ...LOCAL].join(", ")}. Got ${kind} instead.`));
    }
    if (signal?.aborted) return Promise.resolve(null);
    if (this.#listeners.some((l) => l.kind === kind && l.callback === callback && l.mode === mode)) return Promise.resolve(null);
    const listener = { kind, callback, mode, id: /** @type {number|null} */ (null) };
    this.#listeners.push(listener);
    signal?.addEventListener("abort", () => this.#forget(listener), { once: true });
    if (LOCAL.includes(kind)) return Promise.resolve(null);
    return new Promise((resolve, reject) => {
      listener.id = this.#socket.subscribe({
        request: kind === "tile" ? { what: kind } : { what: kind, mode },
        onOpen: (answer) => resolve(answer.guarantee ?? null),
        onMessage: (message) => {
          if (once) this.#forget(listener);
          callback(message);
        },
        onEnd: (error) => {
          this.#listeners = this.#listeners.filter((l) => l !== listener);
          reject(error);
          this.#dispatch("ended", { type: "ended", kind, mode, code: error.code, reason: error.reason });
        },
      });
    });
  }

  /**
   * @param {string} kind
   * @param {Function} callback the one given to addEventListener
   * @param {{mode?: string}} [options]
   */
  removeEventListener(kind, callback, { mode } = {}) {
    for (const listener of [...this.#listeners]) {
      if (listener.kind === kind && listener.callback === callback && (mode === undefined || listener.mode === mode)) this.#forget(listener);
    }
  }

  /**
   * Waits until the wearer has chosen one of the targets. Nothing is told before the choice, whether the wearer looks at them or not.
   * An app has one selection open at a time.
   * @param {Target[]} targets 1 to 32 rectangles with names; their edges are moved outwards to the public grid
   * @param {{by?: "confirm"|"dwell", dwell_ms?: number, signal?: AbortSignal}} [options] by the device's own gesture, or by resting the eyes on it
   * @returns {Promise<string>} the name of the target; rejects with a GazeError where it is refused or ended before a choice
   */
  async select(targets, { by = "confirm", dwell_ms = 800, signal } = {}) {
    signal?.throwIfAborted();
    const settled = new AbortController();
    try {
      return await new Promise((resolve, reject) => {
        const id = this.#socket.subscribe({
          request: { what: "select", targets: targets.map(({ name, x_deg, y_deg, width_deg, height_deg }) => ({ name, x_deg, y_deg, width_deg, height_deg })), by, dwell_ms },
          onOpen: () => {},
          onMessage: (message) => resolve(message.target),
          onEnd: reject, // After the choice this changes nothing any more.
        });
        signal?.addEventListener("abort", () => { this.#socket.unsubscribe(id); reject(signal.reason); }, { once: true, signal: settled.signal });
      });
    } finally {
      settled.abort(); // A signal that lives longer than the selection must not keep it.
    }
  }

  /**
   * Protected samples through a mechanism the owner allows, e.g. "kaleido:epsilon=1,w=60,r_deg=3".
   * @param {{mechanism: string, encoding?: "binary"|"json", batch?: number, most_waiting?: number, signal?: AbortSignal}} options
   * @returns {SampleStream}
   */
  samples(options) {
    return new SampleStream(this.#socket, options);
  }

  /** Ends every subscription. */
  close() {
    this.#socket.close();
  }

  async #about(area, what) {
    const { id } = /** @type {Area} */ (area).id !== undefined ? /** @type {Area} */ (area) : await this.#registered(area);
    return this.#caller.call("GET", `/v1/areas/${encodeURIComponent(id)}/${what}`);
  }

  /** @param {Rect} rect @returns {Promise<Area>} */
  #registered(rect) {
    const key = rectKey(rect);
    let area = this.#rects.get(key);
    if (!area) {
      area = this.registerArea(key, rect);
      this.#rects.set(key, area);
      area.catch(() => this.#rects.delete(key));
    }
    return area;
  }

  #forget(listener) {
    this.#listeners = this.#listeners.filter((l) => l !== listener);
    if (listener.id !== null) this.#socket.unsubscribe(listener.id);
  }

  #dispatch(kind, event) {
    for (const listener of [...this.#listeners]) if (listener.kind === kind) listener.callback(event);
  }
}
