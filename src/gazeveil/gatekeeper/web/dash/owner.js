/**
 * The owner's calls, each signed by this page's key in a header that no page of another origin can send.
 * @module
 */
import { GazeError, errorFrom } from "../lib/errors.js";
import { HEADER, signed } from "./session.js";

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function owner(method, path, body) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  /** @type {Record<string, string>} */
  const headers = { [HEADER]: await signed(method, path, text) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: text, credentials: "omit", cache: "no-store" });
  } catch {
    throw new GazeError("network", "The service does not answer. Check that it still runs.");
  }
  const said = await answer.text();
  let value = null;
  try {
    value = said ? JSON.parse(said) : null;
  } catch {
    value = null;
  }
  if (!answer.ok) throw errorFrom(value, answer.status);
  return value;
}

const at = (/** @type {string} */ app) => `/v1/apps/${encodeURIComponent(app)}`;

export const grant = (/** @type {string} */ app, /** @type {object} */ body) => owner("POST", `${at(app)}/grant`, body);
export const revoke = (/** @type {string} */ app) => owner("POST", `${at(app)}/revoke`, {});
export const newToken = (/** @type {string} */ app) => owner("POST", `${at(app)}/token`, {});
export const addApp = (/** @type {string} */ name, /** @type {string[]} */ origins) => owner("POST", "/v1/apps", { name, origins });
export const dismiss = (/** @type {string|number} */ id) => owner("DELETE", `/v1/asks/${encodeURIComponent(id)}`);
export const consent = (/** @type {boolean} */ on) => owner("POST", "/v1/consent", { on });
export const deleteApp = (/** @type {string} */ app) => owner("DELETE", at(app));
export const unblock = (/** @type {string} */ app) => owner("POST", `${at(app)}/unblock`, {});
/** The platform's confirm gesture, from the owner's page: apps cannot make it. */
export const confirmGesture = () => owner("POST", "/v1/confirm", {});
