/**
 * App two: which painting is looked at, how long and in which order. It learns numbers of areas, never a path.
 * @module
 */
import { el } from "/dash/dom.js";
import { PAINTINGS, gallery } from "./gallery.js";
import { AROUND, stageOf } from "./stage.js";

const WIDTH_PX = 1080;

const seconds = (/** @type {number|null} */ ms) => (ms === null || ms === undefined ? "–" : `${(ms / 1000).toFixed(1)} s`);

export function analytics() {
  const canvas = el("canvas", { width: WIDTH_PX, height: WIDTH_PX / 2, role: "img", "aria-label": "A gallery of paintings; the longer one was looked at, the brighter its mark" });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const rows = PAINTINGS.map(({ name }) => {
    const cells = [0, 1, 2, 3, 4].map(() => el("td", { class: "number" }, "–"));
    return { cells, row: el("tr", {}, el("td", {}, name), ...cells) };
  });
  const heads = ["Looks", "Visits", "Dwell", "Order", "First"].map((text) => el("th", { scope: "col", class: "number" }, text));
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the paintings" },
    el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Painting"), ...heads)), el("tbody", {}, ...rows.map(({ row }) => row))));
  const dwell = PAINTINGS.map(() => 0);
  let stage = AROUND;
  let scene = gallery(stage);

  function draw() {
    const scale = canvas.width / stage.width;
    pen.drawImage(scene, 0, 0, canvas.width, canvas.height);
    const most = Math.max(1, ...dwell);
    PAINTINGS.slice(0, stage.columns).forEach(({ x, y, width, height }, i) => {
      const share = dwell[i] / most;
      const place = /** @type {const} */ ([x * scale, (y - stage.top) * scale, width * scale, height * scale]);
      pen.fillStyle = `rgb(99 220 240 / ${0.38 * share})`;
      pen.strokeStyle = `rgb(99 220 240 / ${0.6 + 0.4 * share})`;
      pen.lineWidth = 1.5 + 3 * share;
      pen.fillRect(...place);
      pen.strokeRect(...place);
    });
  }

  draw();
  return {
    title: "Gallery analytics",
    about: "Counts looks at paintings for the curator.",
    request: { preset: "aoi-analytics", purpose: "count-looks" },
    content: [canvas, table],
    async run({ gaze, me, signal, say }) {
      stage = stageOf(me.space, me.level.least_side_deg);
      scene = gallery(stage);
      canvas.height = Math.round((WIDTH_PX * stage.height) / stage.width);
      canvas.style.aspectRatio = `${stage.width} / ${stage.height}`;
      rows.forEach(({ row }, i) => { row.hidden = i >= stage.columns; });
      const known = await gaze.areas();
      const areas = [];
      for (const painting of PAINTINGS.slice(0, stage.columns)) areas.push(known.find((a) => a.name === painting.name) ?? (await gaze.registerArea(painting.name, stage.toSpace(painting))));
      // One question after the other, below the calls a minute that the grant allows.
      const wait_ms = Math.max(250, (1.25 * 60_000) / me.grant.calls_per_minute);
      for (let i = 0; ; i = (i + 1) % areas.length) {
        const m = await gaze.metrics(areas[i]);
        dwell[i] = m.dwell_ms;
        [m.fixations, m.visits, seconds(m.dwell_ms), m.order ?? "–", seconds(m.first_fixation_ms)].forEach((value, j) => { rows[i].cells[j].textContent = String(value); });
        draw();
        say(`Running. It knows numbers of ${areas.length} areas, in cells of ${me.level.resolution_deg}° and steps of ${me.level.tick_ms} ms.`);
        await new Promise((resolve) => setTimeout(resolve, wait_ms));
        signal.throwIfAborted();
      }
    },
  };
}
