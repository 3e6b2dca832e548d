/**
 * The Gatekeeper's client for apps in a browser: an ES module without a build step.
 *
 *     import gaze from "http://127.0.0.1:8765/client.js";
 *     if (await gaze.ask("choose") === "granted") {
 *       const button = await gaze.choose(document.querySelectorAll("button"), { by: "dwell" });
 *       button.click();
 *     }
 *
 * Six calls: ask, choose, observe, on, follow, left. Everything that is refused or ends is a GazeError with `code` (a word) and `reason`
 * (a sentence).
 * @module
 */
import { Gaze } from "./lib/gaze.js";

export { GazeError } from "./lib/errors.js";
export { Gaze };

/** Where a Gatekeeper listens unless its address is named. */
const LOCAL = "http://127.0.0.1:8765";

/** A module that the Gatekeeper itself has served speaks to that one. */
const own = new URL(import.meta.url);
const home = own.protocol.startsWith("http") && own.pathname === "/client.js" ? own.origin : LOCAL;

/**
 * An app at another Gatekeeper, or one with a token of its own.
 * @param {string} [url] address of the Gatekeeper
 * @param {{token?: string, signal?: AbortSignal}} [options] a token where the app is no web page, and a signal that ends everything
 * @returns {Gaze}
 */
export const connect = (url = home, options = {}) => new Gaze(url, options);

/** The app that this page is. Nothing is sent before its first call. */
const gaze = connect();
export default gaze;
