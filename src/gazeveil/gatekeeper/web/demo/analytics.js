/**
 * App one: which painting is looked at, how long and in which order. It learns numbers of areas, never a path.
 * @module
 */
import { el } from "/dash/dom.js";
import { PAINTINGS, gallery } from "./gallery.js";

const seconds = (/** @type {number|null} */ ms) => (ms === null || ms === undefined ? "–" : `${(ms / 1000).toFixed(1)} s`);

export function analytics() {
  const canvas = el("canvas", { width: 1080, height: 540, role: "img", "aria-label": "A gallery with six paintings; the longer one was looked at, the brighter its mark" });
  const rows = PAINTINGS.map(({ name }) => ({ name, cells: [0, 1, 2, 3, 4].map(() => el("td", { class: "number" }, "–")) }));
  const table = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the paintings" }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Painting"), ...["Looks", "Visits", "Dwell", "Order", "First"].map((t) => el("th", { scope: "col", class: "number" }, t)))),
    el("tbody", {}, ...rows.map(({ name, cells }) => el("tr", {}, el("td", {}, name), ...cells)))));
  const scene = gallery();
  const dwell = PAINTINGS.map(() => 0);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));

  function draw() {
    const scale = canvas.width / 360;
    pen.drawImage(scene, 0, 0, canvas.width, canvas.height);
    const most = Math.max(1, ...dwell);
    PAINTINGS.forEach((p, i) => {
      const share = dwell[i] / most;
      pen.fillStyle = `rgb(99 220 240 / ${0.38 * share})`;
      pen.strokeStyle = `rgb(99 220 240 / ${0.6 + 0.4 * share})`;
      pen.lineWidth = 1.5 + 3 * share;
      pen.fillRect(p.x_deg * scale, p.y_deg * scale, p.width_deg * scale, p.height_deg * scale);
      pen.strokeRect(p.x_deg * scale, p.y_deg * scale, p.width_deg * scale, p.height_deg * scale);
    });
  }

  draw();
  return {
    title: "Gallery analytics",
    about: "Counts looks at six paintings for the curator.",
    request: { preset: "aoi-analytics", why: "To tell the curator which paintings visitors look at." },
    content: [canvas, table],
    async run({ gaze, me, signal, say }) {
      const known = await gaze.areas();
      const areas = [];
      for (const p of PAINTINGS) areas.push(known.find((a) => a.name === p.name) ?? (await gaze.registerArea(p.name, p)));
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
