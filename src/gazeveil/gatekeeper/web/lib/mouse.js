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
  let sent = 0;
  const options = { signal, passive: true, capture: true };
  window.addEventListener("pointermove", (event) => {
    if (event.timeStamp - sent < EVERY_MS) return;
    sent = event.timeStamp;
    const [x_deg, y_deg] = scale().screenPoint(event.screenX, event.screenY);
    send({ type: "mouse", x_deg, y_deg });
  }, options);
  document.documentElement.addEventListener("pointerleave", () => send({ type: "mouse", x_deg: null, y_deg: null }), options);
  window.addEventListener("click", () => send({ type: "mouse", confirm: true }), options);
}
