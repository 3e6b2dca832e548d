/**
 * App six: the gallery drawn sharp only around protected gaze. It gets samples, each with noise, and pays for them from its budget.
 * @module
 */
import { el } from "/dash/dom.js";
import { gallery } from "./gallery.js";
import { AROUND, stageOf } from "./stage.js";

const WIDTH_PX = 1080;
const MEMORY = 0.85;

export function foveated() {
  const canvas = el("canvas", { width: WIDTH_PX, height: WIDTH_PX / 2, role: "img", "aria-label": "The gallery, sharp around where protected gaze is" });
  const facts = el("p", { class: "quiet facts" }, "Everything is drawn coarse until samples arrive.");
  const promise = el("p", {});
  const mechanism = el("select", { name: "mechanism" },
    el("option", { value: "gaussian:sigma_deg=2" }, "2° of noise in every sample"), el("option", { value: "gaussian:sigma_deg=5" }, "5° of noise in every sample"));
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const layer = document.createElement("canvas");
  let stage = AROUND;
  let sharp = gallery(stage);
  let coarse = coarsened(sharp, canvas.width, canvas.height);
  /** Pixels of one degree. */
  let scale = WIDTH_PX / 360;
  /** @type {[number, number]|null} */
  let centre = null;

  /** @param {any} me */
  function setUp(me) {
    stage = stageOf(me.space, me.level.least_side_deg);
    sharp = gallery(stage);
    canvas.height = Math.round((WIDTH_PX * stage.height) / stage.width);
    canvas.style.aspectRatio = `${stage.width} / ${stage.height}`;
    coarse = coarsened(sharp, canvas.width, canvas.height);
    scale = WIDTH_PX / me.space.width_deg;
  }

  function draw() {
    pen.drawImage(coarse, 0, 0);
    if (!centre) return;
    const [u, v] = stage.toUnits(...centre);
    const unit = WIDTH_PX / stage.width;
    const [x, y] = [u * unit, (v - stage.top) * unit];
    const side = Math.ceil(2 * stage.sharp_deg * scale);
    if (layer.width !== side) layer.width = layer.height = side;
    const over = /** @type {CanvasRenderingContext2D} */ (layer.getContext("2d"));
    const part = sharp.width / canvas.width;
    over.globalCompositeOperation = "copy";
    over.drawImage(sharp, (x - side / 2) * part, (y - side / 2) * part, side * part, side * part, 0, 0, side, side);
    over.globalCompositeOperation = "destination-in";
    const mask = over.createRadialGradient(side / 2, side / 2, 0.35 * side, side / 2, side / 2, side / 2);
    mask.addColorStop(0, "rgb(0 0 0 / 100%)");
    mask.addColorStop(1, "rgb(0 0 0 / 0%)");
    over.fillStyle = mask;
    over.fillRect(0, 0, side, side);
    pen.drawImage(layer, x - side / 2, y - side / 2);
    pen.strokeStyle = "rgb(99 220 240 / 70%)";
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, side / 2, 0, 7);
    pen.stroke();
  }

  draw();
  return {
    title: "Foveated gallery",
    about: "Draws a few percent of the picture sharp, the rest coarse.",
    request: { preset: "research", purpose: "sharp-view" },
    content: [canvas, el("label", { class: "inline" }, el("span", {}, "Through"), mechanism), facts, el("details", {}, el("summary", {}, "What is promised"), promise)],
    async run({ gaze, me, signal, say }) {
      setUp(me);
      let taken = 0;
      let drawn = 0;
      try {
        const begun = performance.now();
        const stream = gaze.samples({ mechanism: mechanism.value, encoding: "binary", batch: 6, signal });
        stream.opened.then((guarantee) => { promise.textContent = guarantee?.text ?? "Nothing is promised for this mechanism."; }, () => {});
        for await (const batch of stream) {
          for (let i = 0; i < batch.x_deg.length; i += 1) {
            if (!batch.valid[i]) continue;
            const [x, y] = [batch.x_deg[i], batch.y_deg[i]];
            // The noise of single samples is averaged out; a jump over the seam of the sphere or a large one begins anew.
            centre = centre && Math.hypot(centre[0] - x, centre[1] - y) < 25 ? [MEMORY * centre[0] + (1 - MEMORY) * x, MEMORY * centre[1] + (1 - MEMORY) * y] : [x, y];
          }
          taken += batch.x_deg.length;
          if (performance.now() - drawn > 30) { drawn = performance.now(); requestAnimationFrame(draw); }
          const rate = Math.round(taken / Math.max(0.5, (performance.now() - begun) / 1000));
          facts.textContent = `${taken.toLocaleString("en")} protected samples, about ${rate} a second, ${batch.dropped} left out for being late.`;
          say("Running on protected samples.");
        }
      } finally {
        centre = null;
        draw();
      }
    },
  };
}

/** The picture at a fourteenth of its resolution, drawn large again once. */
function coarsened(sharp, width, height) {
  const small = document.createElement("canvas");
  small.width = Math.round(sharp.width / 14);
  small.height = Math.round(sharp.height / 14);
  const pen = /** @type {CanvasRenderingContext2D} */ (small.getContext("2d"));
  pen.imageSmoothingQuality = "high";
  pen.drawImage(sharp, 0, 0, small.width, small.height);
  const large = document.createElement("canvas");
  large.width = width;
  large.height = height;
  /** @type {CanvasRenderingContext2D} */ (large.getContext("2d")).drawImage(small, 0, 0, width, height);
  return large;
}
