/**
 * App four: gaze guidance. A spot on one painting after the other draws the eyes and is steady before they arrive. It is told that a saccade
 * has begun, and in which cell one has landed.
 * @module
 */
import { el } from "/dash/dom.js";
import { Cue } from "./cue.js";
import { PAINTINGS, gallery } from "./gallery.js";
import { ended } from "./panel.js";
import { FLIGHT_MS, lateBy } from "./redirect.js";
import { AROUND, stageOf } from "./stage.js";

const WIDTH_PX = 1080;
/** Radius of the spot in units of the gallery, and how much lighter it becomes. */
const SPOT = 7;
const STRENGTH = 0.28;

export function guidance() {
  const canvas = el("canvas", { width: WIDTH_PX, height: WIDTH_PX / 2, role: "img", "aria-label": "A gallery in which a faint spot on one painting draws the eyes" });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const facts = el("p", { class: "quiet facts" }, "It was told nothing yet.");
  const log = el("ul", { class: "log", "aria-label": "Last notices" });
  const show = el("input", { type: "checkbox", name: "show" });
  const note = (text) => { log.prepend(el("li", {}, text)); while (log.children.length > 5) log.lastChild.remove(); };
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let stage = AROUND;
  let picture = gallery(stage);
  let cue = new Cue(PAINTINGS.slice(0, stage.columns));

  /** @param {number} now_ms */
  function draw(now_ms) {
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const unit = canvas.width / stage.width;
    const { x, y, width, height } = cue.target;
    const [cx, cy] = [(x + width / 2) * unit, (y - stage.top + height / 2.4) * unit];
    // Where motion is not wanted the spot is lighter and does not move.
    const light = still.matches ? Number(cue.steady_ms === null) : cue.light(now_ms);
    if (light !== 0) {
      const spot = pen.createRadialGradient(cx, cy, 0, cx, cy, SPOT * unit);
      const tone = light > 0 ? "255 255 255" : "0 0 0";
      spot.addColorStop(0, `rgb(${tone} / ${Math.round(100 * STRENGTH * Math.abs(light))}%)`);
      spot.addColorStop(1, `rgb(${tone} / 0%)`);
      pen.fillStyle = spot;
      pen.fillRect(cx - SPOT * unit, cy - SPOT * unit, 2 * SPOT * unit, 2 * SPOT * unit);
    }
    if (!show.checked) return;
    pen.strokeStyle = cue.steady_ms === null ? "#ffd98a" : "#63c3d6";
    pen.lineWidth = 4;
    pen.strokeRect(x * unit, (y - stage.top) * unit, width * unit, height * unit);
  }

  draw(0);
  return {
    title: "Led gallery",
    about: "A faint spot draws the eyes from painting to painting, and is gone when they arrive.",
    request: { scopes: ["events"], purpose: "game" },
    content: [canvas, el("label", { class: "inline" }, show, el("span", {}, "Show me what is cued")), facts, log],
    async run({ gaze, me, signal, say }) {
      stage = stageOf(me.space, me.level.least_side_deg);
      picture = gallery(stage);
      canvas.height = Math.round((WIDTH_PX * stage.height) / stage.width);
      canvas.style.aspectRatio = `${stage.width} / ${stage.height}`;
      cue = new Cue(PAINTINGS.slice(0, stage.columns));
      const begun_ms = performance.now();
      const over = ended(gaze, signal);
      over.catch(() => {});
      const onSaccade = (event) => {
        const now_ms = performance.now();
        if (event.type === "saccade-start") {
          cue.begun(now_ms);
          note("saccade begins (no place): the spot is steady");
          return;
        }
        const { name } = /** @type {{name: string}} */ (/** @type {unknown} */ (cue.target));
        const hit = cue.landed(...stage.toUnits(event.x_deg, event.y_deg), now_ms);
        note(hit ? `landed on “${name}”: the next one is cued` : `landed near ${Math.round(event.x_deg)}°, ${Math.round(event.y_deg)}°, elsewhere`);
      };
      await gaze.addEventListener("saccade", onSaccade, { mode: "start-stop", signal });
      const late_ms = lateBy(me.level.tick_ms);
      const seen = late_ms < FLIGHT_MS ? "before the eyes land" : "when most eyes have landed, so the wearer may see it; a device set to the fine level tells in time";
      say(`Running. The spot is steady about ${late_ms} ms after a saccade's beginning, ${seen}. Landings come in cells of ${me.level.resolution_deg}°.`);
      const frame = () => {
        if (signal.aborted) return;
        const now_ms = performance.now();
        cue.count(now_ms);
        draw(now_ms);
        const share = Math.round((100 * cue.shown_ms) / Math.max(1, now_ms - begun_ms));
        facts.textContent = `It was told of ${cue.starts} beginnings and ${cue.landings} landings; ${cue.hits} were on what it cued. The spot moved for ${share} % of the time.`;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
      await over;
    },
  };
}
