/**
 * App one: the same room, but the app is told only which thing was chosen. Until then it hears nothing, wherever the wearer looks.
 *
 * The choice is made on the device: the eyes rest on a thing, or the wearer makes the device's own confirm gesture while looking at it.
 * The gesture is the platform's. An app that could make it could ask at any moment where the eyes are, so this page cannot make it either;
 * with a simulated tracker it is the button "Confirm choice" on the owner's page.
 * @module
 */
import { el } from "/dash/dom.js";
import { drawRoom, roomIn, things as inRoom } from "./room.js";

/** The shortest that the device allows. */
const DWELL_MS = 500;
/** Choices the panel remembers. */
const SHOWN = 5;

export function select() {
  const things = inRoom();
  const canvas = el("canvas", { width: 1080, height: 540, role: "img", "aria-label": "A room with a lamp, a window, a radio and a fire" });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const log = el("ul", { class: "log", "aria-label": "All that the app was told" });
  const empty = el("p", { class: "quiet facts" }, "It was told nothing yet.");
  const by = el("select", { name: "by" }, el("option", { value: "dwell" }, "resting the eyes on it"), el("option", { value: "confirm" }, "looking and confirming"));
  const how = el("p", { class: "quiet facts" });
  const explain = () => { how.textContent = by.value === "dwell" ? `Rest your eyes on a thing for ${DWELL_MS / 1000} s.` : "Look at a thing and make the device's confirm gesture: on a headset a press or a pinch, here the button “Confirm choice” on the owner's page. Apps cannot make it."; };
  explain();
  drawRoom(pen, things);
  let told = 0;

  /** @param {string} name */
  function note(name) {
    told += 1;
    empty.textContent = `It was told ${told} ${told === 1 ? "choice" : "choices"}, and nothing else.`;
    log.prepend(el("li", {}, `chosen: ${name}`));
    while (log.children.length > SHOWN) log.lastChild.remove();
  }

  return {
    title: "Quiet room",
    about: "Looking at a thing and choosing it switches it.",
    request: { preset: "select", purpose: "choose" },
    content: [canvas, el("label", { class: "inline" }, el("span", {}, "Choose by"), by), how, empty, log],
    async run({ gaze, me, signal, say }) {
      const room = roomIn(me.space);
      const targets = things.map((thing) => ({ name: thing.name, ...room.toSpace(thing) }));
      for (;;) {
        say("Running. It waits for a choice and is told nothing until then.");
        // Another way to choose ends the selection that waits and begins one of its own.
        const other = new AbortController();
        by.addEventListener("change", () => { explain(); other.abort(); }, { once: true, signal: AbortSignal.any([signal, other.signal]) });
        let name;
        try {
          name = await gaze.select(targets, { by: by.value, dwell_ms: DWELL_MS, signal: AbortSignal.any([signal, other.signal]) });
        } catch (error) {
          if (other.signal.aborted && !signal.aborted) continue;
          // Choices are counted by the minute: the app waits and goes on.
          if (error.code !== "rate") throw error;
          say("Running. It may choose again in a moment.");
          await new Promise((resolve) => setTimeout(resolve, 5000));
          signal.throwIfAborted();
          continue;
        } finally {
          other.abort();
        }
        const thing = things.find((one) => one.name === name);
        if (!thing) continue;
        thing.on = !thing.on;
        note(name);
        drawRoom(pen, things, `${thing.name} is ${thing.on ? "on" : "off"}`);
      }
    },
  };
}
