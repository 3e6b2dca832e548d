/**
 * A gallery, drawn here: up to six paintings in columns of 60 units, no file from anywhere.
 * @module
 */

const PX_PER_UNIT = 4;

/** The paintings with the places the apps know them by, in units of the scene. */
export const PAINTINGS = [
  ["Evening at sea", sea], ["Composition", shapes], ["The pass", mountains], ["Three pears", pears], ["The wave", wave], ["Self, divided", portrait],
].map(([name, paint], i) => ({ name: /** @type {string} */ (name), paint: /** @type {Function} */ (paint), x: 5 + 60 * i, y: 60, width: 50, height: 50 }));

/** @param {import("./stage.js").Stage} stage @returns {HTMLCanvasElement} what of the gallery is on the stage, four pixels for a unit */
export function gallery(stage) {
  const canvas = document.createElement("canvas");
  canvas.width = stage.width * PX_PER_UNIT;
  canvas.height = stage.height * PX_PER_UNIT;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(PX_PER_UNIT, PX_PER_UNIT);
  pen.translate(0, -stage.top);
  room(pen);
  for (const painting of PAINTINGS.slice(0, stage.columns)) hang(pen, painting);
  return canvas;
}

function fade(pen, x0, y0, x1, y1, ...stops) {
  const gradient = pen.createLinearGradient(x0, y0, x1, y1);
  stops.forEach((colour, i) => gradient.addColorStop(i / (stops.length - 1), colour));
  return gradient;
}

function blob(pen, colour, points) {
  pen.fillStyle = colour;
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.fill();
}

const disc = (pen, colour, x, y, r, ry = r) => { pen.fillStyle = colour; pen.beginPath(); pen.ellipse(x, y, r, ry, 0, 0, 7); pen.fill(); };

function room(pen) {
  pen.fillStyle = fade(pen, 0, 0, 0, 40, "#1d1b1e", "#3a3638");
  pen.fillRect(0, 0, 360, 40);
  pen.fillStyle = fade(pen, 0, 38, 0, 130, "#8f8a83", "#cfc8bd", "#b9b1a5");
  pen.fillRect(0, 38, 360, 92);
  pen.fillStyle = fade(pen, 0, 130, 0, 180, "#6d4c33", "#3a281b");
  pen.fillRect(0, 128, 360, 52);
  pen.fillStyle = "#efe9df";
  pen.fillRect(0, 126, 360, 2.5);
  pen.strokeStyle = "rgb(0 0 0 / 22%)";
  pen.lineWidth = 0.4;
  for (let x = -180; x <= 540; x += 9) {
    pen.beginPath();
    pen.moveTo(180 + (x - 180) * 0.8, 128.5);
    pen.lineTo(180 + (x - 180) * 2.2, 180);
    pen.stroke();
  }
  for (const x of [0, 60, 120, 180, 240, 300]) {
    // A lamp over each painting, with its light on the wall.
    pen.fillStyle = "#141214";
    pen.fillRect(x + 27, 33, 6, 4);
    const light = pen.createRadialGradient(x + 30, 62, 2, x + 30, 82, 44);
    light.addColorStop(0, "rgb(255 244 214 / 55%)");
    light.addColorStop(1, "rgb(255 244 214 / 0%)");
    pen.fillStyle = light;
    pen.fillRect(x, 38, 60, 90);
  }
  for (const x of [60, 180, 300]) {
    pen.fillStyle = "#2b211a";
    pen.beginPath();
    pen.roundRect(x - 14, 141, 28, 4, 1.5);
    pen.fill();
    pen.fillRect(x - 11, 145, 2, 6);
    pen.fillRect(x + 9, 145, 2, 6);
  }
}

function hang(pen, { x, y, width, paint, name }) {
  pen.save();
  pen.translate(x, y);
  pen.scale(width / 40, width / 40);
  pen.save();
  pen.shadowColor = "rgb(0 0 0 / 45%)";
  pen.shadowBlur = 14;
  pen.shadowOffsetY = 8;
  pen.fillStyle = fade(pen, 0, 0, 40, 40, "#c79d52", "#6f4f1f", "#b98d45");
  pen.fillRect(2, 1, 36, 34);
  pen.restore();
  pen.fillStyle = "#f5f1e8";
  pen.fillRect(11, 36.4, 18, 3);
  pen.fillStyle = "#3b352d";
  pen.font = "2.1px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillText(name, 20, 38.6, 17);
  pen.translate(4, 3);
  pen.beginPath();
  pen.rect(0, 0, 32, 30);
  pen.clip();
  paint(pen);
  pen.restore();
}

function sea(pen) {
  pen.fillStyle = fade(pen, 0, 0, 0, 19, "#2b3a67", "#c4577a", "#f6a35c", "#ffe3a3");
  pen.fillRect(0, 0, 32, 19);
  disc(pen, "#fff4cf", 20, 17, 3.4);
  pen.fillStyle = fade(pen, 0, 18, 0, 30, "#e5905a", "#2d4a6b", "#142538");
  pen.fillRect(0, 18.5, 32, 12);
  pen.fillStyle = "rgb(255 240 200 / 75%)";
  for (let i = 0; i < 12; i += 1) pen.fillRect(20 - 0.4 * i - 1 + (i % 3), 19 + 0.9 * i, 2 + 0.35 * i, 0.28);
  blob(pen, "#1a1d2b", [[6, 19.5], [12, 19.5], [11, 21], [7, 21]]);
  blob(pen, "#f2e2cf", [[9, 10], [9, 19], [4.6, 19]]);
  blob(pen, "#d8c3aa", [[9.5, 11.5], [9.5, 19], [13, 19]]);
}

function shapes(pen) {
  pen.fillStyle = "#f1ecdf";
  pen.fillRect(0, 0, 32, 30);
  const blocks = [["#c5322d", 0, 0, 12, 13], ["#1f4e8c", 21, 18, 11, 12], ["#e9b824", 21, 0, 11, 6], ["#20201e", 0, 22, 7, 8], ["#d9d4c6", 12, 13, 9, 9]];
  for (const [colour, x, y, w, h] of blocks) { pen.fillStyle = /** @type {string} */ (colour); pen.fillRect(+x, +y, +w, +h); }
  pen.fillStyle = "#1a1a18";
  for (const x of [12, 21]) pen.fillRect(x - 0.5, 0, 1, 30);
  for (const y of [13, 22]) pen.fillRect(0, y - 0.5, 32, 1);
  pen.fillRect(21, 5.5, 11, 1);
  disc(pen, "#c5322d", 26.5, 12, 2.6);
}

function mountains(pen) {
  pen.fillStyle = fade(pen, 0, 0, 0, 22, "#0d1b3d", "#32528a", "#a9c3dd");
  pen.fillRect(0, 0, 32, 30);
  disc(pen, "#fdf6dc", 24, 6, 2.4);
  for (const [x, y] of [[3, 3], [8, 6], [13, 2], [18, 5], [29, 9], [6, 10]]) disc(pen, "#ffffffcc", x, y, 0.16);
  blob(pen, "#6f86ab", [[0, 20], [6, 12], [11, 18], [17, 9], [24, 18], [28, 14], [32, 18], [32, 30], [0, 30]]);
  blob(pen, "#f4f7fb", [[17, 9], [14.6, 12.6], [16.4, 12], [17.4, 13.4], [18.8, 12], [20.2, 13]]);
  blob(pen, "#3c4f74", [[0, 24], [5, 19], [10, 24], [15, 18], [22, 25], [27, 20], [32, 24], [32, 30], [0, 30]]);
  for (let i = 0; i < 16; i += 1) blob(pen, "#16243d", [[2 * i - 0.5, 30], [2 * i + 1, 24.4 + (i % 3)], [2 * i + 2.5, 30]]);
}

function pears(pen) {
  pen.fillStyle = fade(pen, 0, 0, 32, 30, "#4a3b33", "#251d1a");
  pen.fillRect(0, 0, 32, 30);
  blob(pen, "#8d6f55", [[0, 22], [32, 20], [32, 30], [0, 30]]);
  const pear = (x, y, colour, shade) => {
    disc(pen, "rgb(0 0 0 / 35%)", x + 1.5, y + 4.4, 4.6, 1);
    disc(pen, colour, x, y, 3.9, 4.3);
    disc(pen, colour, x + 0.2, y - 4, 2.3, 3.2);
    disc(pen, shade, x + 1.5, y + 0.8, 2, 2.8);
    disc(pen, "#fff3b055", x - 1.4, y - 1.2, 0.9, 1.7);
    pen.strokeStyle = "#2c1c10";
    pen.lineWidth = 0.5;
    pen.beginPath();
    pen.moveTo(x + 0.2, y - 7);
    pen.quadraticCurveTo(x + 0.6, y - 8.6, x + 1.6, y - 9);
    pen.stroke();
  };
  pear(8.5, 19, "#b9a33c", "#94802955");
  pear(23.5, 18.4, "#a84f2d", "#7a321d66");
  pear(16, 20.6, "#cdb94a", "#9d8a2c66");
}

function wave(pen) {
  pen.fillStyle = fade(pen, 0, 0, 0, 30, "#e9dfc8", "#d7c6a2");
  pen.fillRect(0, 0, 32, 30);
  disc(pen, "#c9472f", 8, 8, 3.6);
  for (const [base, colour] of [[17, "#2f6690"], [21, "#1d4569"], [25, "#122c47"]]) {
    pen.fillStyle = /** @type {string} */ (colour);
    pen.beginPath();
    pen.moveTo(0, 30);
    for (let x = 0; x <= 32; x += 0.5) pen.lineTo(x, +base + 2.2 * Math.sin(x / 3 + +base) - (x > 14 ? 5 * Math.exp(-((x - 24) ** 2) / 18) : 0));
    pen.lineTo(32, 30);
    pen.fill();
  }
  for (let i = 0; i < 26; i += 1) disc(pen, "#fbf8ee", 19.5 + 8.5 * Math.cos(2.6 + i / 9), 16 + 5.4 * Math.sin(2.6 + i / 9), 0.42 + (i % 3) * 0.12);
}

function portrait(pen) {
  pen.fillStyle = "#d9b48f";
  pen.fillRect(0, 0, 16, 30);
  pen.fillStyle = "#39526e";
  pen.fillRect(16, 0, 16, 30);
  disc(pen, "#f0d5b8", 16, 14, 7.2, 9.2);
  pen.save();
  pen.beginPath();
  pen.rect(16, 0, 16, 30);
  pen.clip();
  disc(pen, "#c9785a", 16, 14, 7.2, 9.2);
  pen.restore();
  blob(pen, "#26211f", [[8, 12], [9, 5], [16, 2.4], [16, 7], [11, 9]]);
  blob(pen, "#7b2e2a", [[16, 2.4], [23, 5], [24, 13], [21, 9], [16, 7]]);
  disc(pen, "#fff", 12.6, 13, 1.7, 1);
  disc(pen, "#233", 12.6, 13, 0.8);
  disc(pen, "#fff", 19.4, 12.4, 1.7, 1.2);
  disc(pen, "#233", 19.6, 12.4, 0.8);
  blob(pen, "#00000030", [[16, 12], [18, 17.5], [16, 17.5]]);
  pen.fillStyle = "#8c2f33";
  pen.fillRect(13.4, 20, 5.4, 0.9);
  blob(pen, "#2f2b36", [[6, 30], [10, 25], [16, 23.6], [22, 25], [26, 30]]);
}
