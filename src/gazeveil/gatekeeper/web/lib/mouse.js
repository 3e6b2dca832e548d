/**
 * The mouse as a tracker, for development: where the service was started with `--tracker mouse`, the pointer over the page stands for the
 * eyes, and a click for the device's own gesture. With any other tracker nothing of this is sent.
 * @module
 */

/** Milliseconds between two messages. */
const EVERY_MS = 16;

/**
 * @param {(message: object) => void} send
 * @param {() => import("./places.js").ScreenScale} scale
 * @param {AbortSignal} signal ends it
 */
export function trackMouse(send, scale, signal) {
  /** The last place that was not sent yet. @type {[number|null, number|null]|null} */
  let place = null;
  let timer = 0;
  const flush = () => {
    timer = 0;
    if (!place || signal.aborted) return;
    const [x_deg, y_deg] = place;
    place = null;
    timer = setTimeout(flush, EVERY_MS);
    send({ type: "mouse", x_deg, y_deg });
  };
  const at = (/** @type {number|null} */ x_deg, /** @type {number|null} */ y_deg) => {
    place = [x_deg, y_deg];
    if (!timer) flush();
  };
  window.addEventListener("pointermove", (event) => at(...scale().screenPoint(event.screenX, event.screenY)), { signal, passive: true, capture: true });
  document.documentElement.addEventListener("pointerleave", () => at(null, null), { signal, passive: true });
  window.addEventListener("click", () => send({ type: "mouse", confirm: true }), { signal, passive: true, capture: true });
}
