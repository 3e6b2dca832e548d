/**
 * App five: things in a room that a long look switches. It is told when a movement has ended, in cells and ticks.
 * @module
 */
import { el } from "/dash/dom.js";
import { ended } from "./panel.js";
import { drawRoom, roomIn, things as inRoom } from "./room.js";

const LONG_MS = 300;

const within = ([x, y], thing) => x >= thing.x && x < thing.x + thing.width && y >= thing.y && y < thing.y + thing.height;

export function button() {
  const things = inRoom();
  const canvas = el("canvas", { width: 1080, height: 540, role: "img", "aria-label": "A room with a lamp, a window, a radio and a fire" });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const log = el("ul", { class: "log", "aria-label": "Last notices" });
  const mode = el("select", { name: "mode" }, el("option", { value: "end" }, "at their end"), el("option", { value: "start-stop" }, "at start and end"));
  const note = (text) => { log.prepend(el("li", {}, text)); while (log.children.length > 5) log.lastChild.remove(); };
  const draw = (moving) => drawRoom(pen, things, moving ? "eyes are moving" : "");
  draw(false);

  return {
    title: "Gaze button",
    about: `A look of ${LONG_MS} ms switches a thing in the room.`,
    request: { scopes: ["events"], purpose: "hands-free" },
    content: [canvas, el("label", { class: "inline" }, el("span", {}, "Tell me about saccades"), mode), log],
    async run({ gaze, me, signal, say }) {
      const room = roomIn(me.space);
      let moving = false;
      const over = ended(gaze, signal);
      over.catch(() => {});
      const onFixation = (event) => {
        const thing = things.find((t) => within(room.toUnits(event.x_deg, event.y_deg), t));
        note(`fixation: ${event.duration_ms} ms ${thing ? `at ${thing.name.toLowerCase()}` : "elsewhere"}`);
        if (thing && event.duration_ms >= LONG_MS) {
          thing.on = !thing.on;
          say(`Running. ${thing.name} is ${thing.on ? "on" : "off"}.`);
          draw(moving);
        }
      };
      const onSaccade = (event) => {
        moving = event.type === "saccade-start";
        note(moving ? `saccade starts at ${(event.t_ms / 1000).toFixed(1)} s (no place)` : `saccade ended, landed near ${Math.round(event.x_deg)}°, ${Math.round(event.y_deg)}°`);
        draw(moving);
      };
      const listen = () => gaze.addEventListener("saccade", onSaccade, { mode: mode.value, signal });
      mode.addEventListener("change", () => {
        gaze.removeEventListener("saccade", onSaccade);
        listen().catch(() => {});
      }, { signal });
      await Promise.all([gaze.addEventListener("fixation", onFixation, { signal }), listen()]);
      say(`Running. It is told of movements in cells of ${me.level.resolution_deg}°.`);
      await over;
    },
  };
}
