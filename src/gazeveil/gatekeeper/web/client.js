/**
 * The Gatekeeper's client for apps in a browser: an ES module without a build step.
 *
 *     import { connect } from "https://device.example/client.js";
 *     const gaze = await connect("https://device.example", { token });
 *     const poster = await gaze.registerArea("poster", { x_deg: 150, y_deg: 70, width_deg: 40, height_deg: 30 });
 *     console.log(await gaze.metrics(poster));
 *     await gaze.addEventListener("saccade", (event) => console.log(event.t_ms), { mode: "start-stop" });
 *     for await (const batch of gaze.samples({ mechanism: "kaleido:epsilon=1,w=60,r_deg=3" })) draw(batch.x_deg, batch.y_deg);
 *
 * Everything that is refused or ends is a GazeError with `code` (a word) and `reason` (a sentence).
 * @module
 */
import { Gaze } from "./lib/gaze.js";

export { GazeError } from "./lib/errors.js";
export { Gaze };

/**
 * Connects an app. Resolves when the token is accepted, whether or not anything is granted yet.
 * @param {string} url address of the Gatekeeper
 * @param {{token: string, signal?: AbortSignal}} options the app's token, and a signal that ends everything
 * @returns {Promise<Gaze>}
 * @throws {import("./lib/errors.js").GazeError} code "token" where the token is not accepted, "network" where nobody answers
 */
export async function connect(url, options) {
  options.signal?.throwIfAborted();
  const gaze = new Gaze(url, options);
  await gaze.me();
  return gaze;
}
