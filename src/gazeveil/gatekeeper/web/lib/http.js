/**
 * Calls that are answered once: JSON over HTTP.
 *
 * A page is known by its origin, which the browser says. The first `ask` brings a pass for that origin; it is kept in the page's own storage
 * and sent with every further call, so that no other program of the machine can take the page's place.
 * @module
 */
import { GazeError, errorFrom } from "./errors.js";

export class Caller {
  #token;
  #place;

  /**
   * @param {string} base address of the Gatekeeper
   * @param {string} [token] of an app that is no web page
   * @param {AbortSignal} [signal] ends every call
   */
  constructor(base, token, signal) {
    this.base = new URL(base, globalThis.location?.href);
    this.signal = signal;
    this.#token = token ?? "";
    this.#place = token ? null : `gazeveil ${this.base.origin}`;
  }

  /** The pass, empty where there is none yet. */
  get token() {
    return this.#place === null ? this.#token : stored(this.#place) ?? this.#token;
  }

  /** @param {string} token a new pass, or an empty text to forget the old one */
  keep(token) {
    this.#token = token;
    if (this.#place === null) return;
    try {
      if (token) localStorage.setItem(this.#place, token);
      else localStorage.removeItem(this.#place);
    } catch {
      // A page without storage asks again after each load.
    }
  }

  /**
   * @param {string} method
   * @param {string} path below the address, e.g. "/v1/me"
   * @param {object} [body] sent as JSON
   * @returns {Promise<any>} the parsed answer, null where it is empty
   */
  async call(method, path, body) {
    /** @type {Record<string, string>} */
    const headers = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    try {
      // No cookies: an app is known by its pass alone.
      answer = await fetch(new URL(path, this.base), {
        method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: this.signal, credentials: "omit", cache: "no-store",
      });
    } catch {
      this.signal?.throwIfAborted();
      throw new GazeError("network", `The Gatekeeper at ${this.base.origin} did not answer. Check that it runs. A page that has not asked yet calls ask() first.`);
    }
    const text = await answer.text();
    let value = null;
    try {
      value = text ? JSON.parse(text) : null;
    } catch {
      if (answer.ok) throw new GazeError("network", `The Gatekeeper at ${this.base.origin} answered with something that is not JSON.`, answer.status);
    }
    if (!answer.ok) throw errorFrom(value, answer.status);
    return value;
  }
}

/** @param {string} place */
function stored(place) {
  try {
    return localStorage.getItem(place);
  } catch {
    return null;
  }
}
