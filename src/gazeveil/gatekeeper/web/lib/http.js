/**
 * Calls that are answered once: JSON over HTTP with the app's token.
 * @module
 */
import { GazeError, errorFrom } from "./errors.js";

export class Caller {
  /**
   * @param {string} base address of the Gatekeeper
   * @param {string} token the app's token
   * @param {AbortSignal} [signal] ends every call
   */
  constructor(base, token, signal) {
    this.base = new URL(base, globalThis.location?.href);
    this.token = token;
    this.signal = signal;
  }

  /**
   * @param {string} method
   * @param {string} path below the address, e.g. "/v1/me"
   * @param {object} [body] sent as JSON
   * @returns {Promise<any>} the parsed answer, null where it is empty
   */
  async call(method, path, body) {
    /** @type {Record<string, string>} */
    const headers = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let answer;
    try {
      // No cookies: an app is known by its token alone, even where the owner's browser also holds the owner's cookie.
      answer = await fetch(new URL(path, this.base), {
        method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: this.signal, credentials: "omit", cache: "no-store",
      });
    } catch (error) {
      this.signal?.throwIfAborted();
      throw new GazeError("network", `The Gatekeeper at ${this.base.origin} did not answer. Check that it runs, and that its owner has listed ${globalThis.location?.origin ?? "this page"} for the app.`);
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
