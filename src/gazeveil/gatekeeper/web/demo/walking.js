/**
 * App three: redirected walking. It is told that a saccade has begun, and no more: no place, no landing, no end.
 * @module
 */
import { el } from "/dash/dom.js";
import { ended } from "./panel.js";
import { Redirector, TURN_DEG_S, Walker, lateBy, leftOf } from "./redirect.js";

const SIZE = { width: 1080, height: 540 };
/** Turns shown as a strip of light are drawn this long, so that eyes can see them at all. */
const FLASH_MS = 150;

export function walking() {
  const canvas = el("canvas", { ...SIZE, role: "img", "aria-label": "The way walked in the room, seen from above: it bends although the wearer walks straight ahead" });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const facts = el("p", { class: "quiet facts" }, "It was told nothing yet.");
  const gained = el("p", { class: "facts" });
  const legend = el("p", { class: "quiet facts" }, "Seen from above. Dashed: the way in the picture, straight ahead. Blue: the way in the room.");
  const anyway = el("input", { type: "checkbox", name: "anyway" });
  const late = el("label", { class: "inline", hidden: true }, anyway, el("span", {}, "Turn all the same, after the eyes have landed (the wearer sees it)"));
  let walker = new Walker();
  let redirector = new Redirector(0);
  draw(pen, walker, 0, 0);

  return {
    title: "Walking on",
    about: "Turns the scene a little while the eyes move, so that a straight way bends in the room.",
    request: { scopes: ["events"], purpose: "game" },
    content: [canvas, legend, facts, gained, late],
    async run({ gaze, me, signal, say }) {
      const tick_ms = me.level.tick_ms;
      const left_ms = leftOf(tick_ms);
      late.hidden = left_ms > 0;
      walker = new Walker();
      redirector = new Redirector(left_ms);
      const begun_ms = performance.now();
      let before_ms = begun_ms;
      let told_ms = -Infinity;
      const over = ended(gaze, signal);
      over.catch(() => {});
      const onStart = () => {
        told_ms = performance.now();
        redirector.lasts_ms = left_ms > 0 || !anyway.checked ? left_ms : leftOf(0);
        redirector.begun(told_ms);
      };
      await gaze.addEventListener("saccade", onStart, { mode: "start", signal });
      say(left_ms > 0
        ? `Running. Notices are about ${lateBy(tick_ms)} ms late: ${left_ms} ms of a flight are left to turn in.`
        : `Running. Notices are about ${lateBy(tick_ms)} ms late: most eyes have landed by then, so nothing is turned. A device set to the fine level tells in time.`);
      const frame = () => {
        if (signal.aborted) return;
        const now_ms = performance.now();
        const turned_deg = redirector.at(now_ms);
        walker.walk((now_ms - before_ms) / 1000, turned_deg);
        before_ms = now_ms;
        draw(pen, walker, turned_deg, Math.max(0, 1 - (now_ms - told_ms) / FLASH_MS));
        const seconds = (now_ms - begun_ms) / 1000;
        facts.textContent = `It was told ${redirector.notices} times that a saccade had begun, and nothing else.`;
        gained.textContent = `Turned by ${turned_deg.toFixed(1)}° in ${Math.round(seconds)} s and ${Math.round(walker.walked_m)} m, by ${TURN_DEG_S}° a second after each notice.`;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
      await over;
    },
  };
}

/** The way from above, the newest place in the middle of the lower half; the straight way beside it. */
function draw(pen, walker, turned_deg, flash) {
  const { width, height } = SIZE;
  pen.fillStyle = "#20262b";
  pen.fillRect(0, 0, width, height);
  const far = Math.max(10, ...walker.path.map(([x, y]) => Math.max(Math.abs(x) * 1.2, Math.abs(y))));
  const scale = (height - 90) / far;
  const at = ([x, y]) => [width / 2 + x * scale, height - 45 - y * scale];
  pen.strokeStyle = "#39444c";
  pen.lineWidth = 1;
  const step = far > 40 ? 10 : far > 12 ? 5 : 1;
  for (let d = -60; d <= 60; d += step) {
    const [x] = at([d, 0]);
    const [, y] = at([0, d]);
    line(pen, [[x, 0], [x, height]]);
    line(pen, [[0, y], [width, y]]);
  }
  pen.setLineDash([10, 10]);
  pen.strokeStyle = "#93a3b0";
  pen.lineWidth = 3;
  line(pen, [at([0, 0]), at([0, walker.walked_m])]);
  pen.setLineDash([]);
  pen.strokeStyle = "#63c3d6";
  pen.lineWidth = 6;
  line(pen, [...walker.path.map(at), at([walker.x_m, walker.y_m])]);
  const [x, y] = at([walker.x_m, walker.y_m]);
  pen.save();
  pen.translate(x, y);
  pen.rotate((turned_deg * Math.PI) / 180);
  pen.fillStyle = "#ffe9b0";
  pen.beginPath();
  pen.moveTo(0, -22);
  pen.lineTo(13, 14);
  pen.lineTo(-13, 14);
  pen.fill();
  pen.restore();
  if (flash > 0) {
    pen.fillStyle = `rgb(255 224 160 / ${Math.round(60 * flash)}%)`;
    pen.fillRect(0, 0, width, 14);
  }
  pen.fillStyle = "#ffffffc0";
  pen.font = "600 34px system-ui, sans-serif";
  pen.textAlign = "right";
  pen.fillText(`lines every ${step} m`, width - 24, 56);
}

function line(pen, points) {
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.stroke();
}
