/**
 * The names of David-John et al. (2021): areas, fixations, dwell time, saccades, tiles, listeners, samples. Thin functions over the
 * Gatekeeper's paths.
 *
 * Places are degrees of the device's space, x to the right and y downwards; times are milliseconds since the session began, in steps of the
 * level's tick. Raw gaze, pupil, velocity and confidence do not exist here.
 * @module
 */
import { GazeError } from "./errors.js";
import { SampleStream } from "./samples.js";

/**
 * @typedef {import("./places.js").Rect} Rect
 * @typedef {Rect & {id: number|string, name: string}} Area a registered rectangle, snapped outwards to the public grid
 * @typedef {{number: number, kind: string, x_deg: number, y_deg: number, t_ms: number, duration_ms: number}} PublicEvent
 * @typedef {{fixations: number, visits: number, dwell_ms: number, order: number|null, first_fixation_ms: number|null, first_saccade_ms: number|null}} AreaMetrics
 * @typedef {{since_ms?: number, until_ms?: number, after?: number, limit?: number}} Range
 */

const MOVEMENTS = ["fixation", "saccade", "pursuit", "tile"];
const LOCAL = ["ended", "statechange"];

/** Samples in a message: 50 ms at 120 Hz, so that a picture that follows does not jump. */
const BATCH = 6;

const rectKey = (/** @type {Rect} */ r) => [r.x_deg, r.y_deg, r.width_deg, r.height_deg].join(",");

const query = (/** @type {object} */ range) => {
  const pairs = Object.entries(range).filter(([, value]) => value !== undefined && value !== null);
  return pairs.length ? `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}` : "";
};

export class PaperCalls {
  /** @type {Map<string, Promise<Area>>} */
  #rects = new Map();
  /** @type {{kind: string, callback: Function, mode: string, id: number|null}[]} */
  #listeners = [];

  /** @param {import("./http.js").Caller} caller @param {import("./socket.js").StreamSocket} socket */
  constructor(caller, socket) {
    this.caller = caller;
    this.socket = socket;
  }

  /** @param {string} name @param {Rect} rect @returns {Promise<Area>} the rectangle as the Gatekeeper uses it */
  registerArea(name, rect) {
    const { x_deg, y_deg, width_deg, height_deg } = rect;
    return this.caller.call("POST", "/v1/areas", { name, x_deg, y_deg, width_deg, height_deg });
  }

  /** @returns {Promise<Area[]>} */
  async areas() {
    return (await this.caller.call("GET", "/v1/areas")).areas;
  }

  /** @param {Area} area */
  async removeArea(area) {
    await this.caller.call("DELETE", `/v1/areas/${encodeURIComponent(area.id)}`);
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

  /** Saccades that landed in an area: cell and tick of the landing. @param {Rect|Area} area @param {Range} [range] @returns {Promise<PublicEvent[]>} */
  async getSaccades(area, range = {}) {
    return (await this.#about(area, `saccades${query(range)}`)).saccades;
  }

  /** @param {PublicEvent|number} fixation one that the app was shown, or its number @returns {Promise<number>} milliseconds */
  async getDwellTime(fixation) {
    const number = typeof fixation === "number" ? fixation : fixation.number;
    return (await this.caller.call("GET", `/v1/fixations/${encodeURIComponent(number)}/dwell`)).duration_ms;
  }

  /** @param {Rect|Area} area @returns {Promise<AreaMetrics>} */
  metrics(area) {
    return this.#about(area, "metrics");
  }

  /** @returns {Promise<number|null>} the tile now looked at, counted row by row; null while gaze is lost */
  async currentTile() {
    return (await this.caller.call("GET", "/v1/tile")).tile;
  }

  /**
   * Calls back on movements of the eyes ("fixation", "saccade", "pursuit"), on a change of tile ("tile"), when a subscription has ended
   * ("ended": code, reason) and on the state of the connection ("statechange").
   * @param {string} kind
   * @param {(event: any) => void} callback
   * @param {{mode?: "end"|"start-stop"|"start", once?: boolean, signal?: AbortSignal}} [options] the modes with a start are for saccades: a start has a time and no place
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
      listener.id = this.socket.subscribe({
        request: kind === "tile" ? { what: kind } : { what: kind, mode },
        onOpen: () => resolve(null),
        onMessage: (message) => {
          if (once) this.#forget(listener);
          callback(message);
        },
        onEnd: (error) => {
          this.#listeners = this.#listeners.filter((l) => l !== listener);
          reject(error);
          this.dispatch("ended", { type: "ended", kind, mode, code: error.code, reason: error.reason });
        },
      });
    });
  }

  /** @param {string} kind @param {Function} callback the one given to addEventListener @param {{mode?: string}} [options] */
  removeEventListener(kind, callback, { mode } = {}) {
    for (const listener of [...this.#listeners]) {
      if (listener.kind === kind && listener.callback === callback && (mode === undefined || listener.mode === mode)) this.#forget(listener);
    }
  }

  /**
   * Protected samples through a mechanism of the app's choice, e.g. "gaussian:sigma_deg=2".
   * @param {{mechanism?: string, encoding?: "binary"|"json", batch?: number, most_waiting?: number, signal?: AbortSignal}} [options] without a mechanism the device picks one
   * @returns {SampleStream}
   */
  samples({ mechanism, encoding = "binary", batch = BATCH, most_waiting, signal } = {}) {
    return new SampleStream(this.socket, { request: { what: "samples", ...(mechanism && { mechanism }), encoding, batch }, most_waiting, signal });
  }

  /** Tells the listeners of this page. @param {string} kind @param {object} event */
  dispatch(kind, event) {
    for (const listener of [...this.#listeners]) if (listener.kind === kind) listener.callback(event);
  }

  async #about(area, what) {
    const { id } = /** @type {Area} */ (area).id !== undefined ? /** @type {Area} */ (area) : await this.#registered(area);
    return this.caller.call("GET", `/v1/areas/${encodeURIComponent(id)}/${what}`);
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
    if (listener.id !== null) this.socket.unsubscribe(listener.id);
  }
}
