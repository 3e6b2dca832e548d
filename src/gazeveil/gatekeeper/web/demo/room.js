/**
 * A room of four things that can be on or off, drawn in 360 by 180 units. Two demo apps share it: one is told every movement of the eyes,
 * the other only which thing was chosen.
 * @module
 */

/** @returns {{name: string, on: boolean, x: number, y: number, width: number, height: number}[]} */
export const things = () => [
  { name: "Lamp", x: 10, y: 50, width: 70, height: 80, on: false },
  { name: "Window", x: 100, y: 50, width: 70, height: 80, on: false },
  { name: "Radio", x: 190, y: 50, width: 70, height: 80, on: false },
  { name: "Fire", x: 280, y: 50, width: 70, height: 80, on: false },
];

/** Where the room lies in the device's space. @param {{kind: string, width_deg: number, height_deg: number}} space */
export function roomIn({ kind, width_deg, height_deg }) {
  const [left_deg, top_deg] = kind === "sphere" ? [0, 0] : [-width_deg / 2, -height_deg / 2];
  const [across, down] = [width_deg / 360, height_deg / 180];
  return {
    toUnits: (/** @type {number} */ x_deg, /** @type {number} */ y_deg) => [(x_deg - left_deg) / across, (y_deg - top_deg) / down],
    toSpace: (/** @type {any} */ thing) => ({ x_deg: left_deg + thing.x * across, y_deg: top_deg + thing.y * down, width_deg: thing.width * across, height_deg: thing.height * down }),
  };
}

/**
 * @param {CanvasRenderingContext2D} pen of a canvas of 1080 by 540 pixels
 * @param {{name: string, on: boolean, x: number, y: number, width: number, height: number}[]} things each is drawn on or off
 * @param {string} [note] a few words at the top
 */
export function drawRoom(pen, things, note = "") {
  const [lamp, glass, radio, fire] = things;
  pen.save();
  pen.setTransform(3, 0, 0, 3, 0, 0);
  const wall = pen.createLinearGradient(0, 0, 0, 130);
  wall.addColorStop(0, lamp.on ? "#6d5a4a" : "#35363f");
  wall.addColorStop(1, lamp.on ? "#b08f6a" : "#4a4b55");
  pen.fillStyle = wall;
  pen.fillRect(0, 0, 360, 132);
  pen.fillStyle = lamp.on ? "#5b4030" : "#2d2623";
  pen.fillRect(0, 132, 360, 48);
  pen.fillStyle = "rgb(0 0 0 / 25%)";
  for (let x = 0; x < 360; x += 24) pen.fillRect(x, 132, 0.6, 48);
  // Lamp.
  if (lamp.on) {
    const light = pen.createRadialGradient(45, 72, 4, 45, 72, 70);
    light.addColorStop(0, "rgb(255 226 150 / 85%)");
    light.addColorStop(1, "rgb(255 226 150 / 0%)");
    pen.fillStyle = light;
    pen.fillRect(0, 0, 130, 180);
  }
  pen.fillStyle = "#1c1a1b";
  pen.fillRect(44, 84, 2, 60);
  pen.fillRect(34, 143, 22, 2.5);
  poly(pen, lamp.on ? "#ffe9b0" : "#8d867a", [[33, 86], [57, 86], [51, 62], [39, 62]]);
  // Window.
  const sky = pen.createLinearGradient(0, 55, 0, 118);
  sky.addColorStop(0, glass.on ? "#5aa5d8" : "#131a33");
  sky.addColorStop(1, glass.on ? "#e8f3f8" : "#2c3a63");
  pen.fillStyle = "#e4ddd0";
  pen.fillRect(107, 54, 56, 68);
  pen.fillStyle = sky;
  pen.fillRect(110, 57, 50, 62);
  dot(pen, glass.on ? "#fff3b8" : "#e9ecf5", 148, 70, glass.on ? 6 : 4);
  poly(pen, glass.on ? "#5d8a55" : "#1a2531", [[110, 119], [110, 106], [122, 97], [136, 108], [148, 99], [160, 107], [160, 119]]);
  pen.fillStyle = "#e4ddd0";
  pen.fillRect(134, 57, 2.4, 62);
  pen.fillRect(110, 86, 50, 2.4);
  // Radio on a cupboard.
  pen.fillStyle = "#2a1d16";
  pen.fillRect(196, 116, 60, 34);
  pen.fillStyle = "#7d4a2d";
  pen.beginPath();
  pen.roundRect(204, 88, 44, 28, 3);
  pen.fill();
  for (let i = 0; i < 6; i += 1) { pen.fillStyle = "#2f1c12"; pen.fillRect(208 + 3 * i, 93, 1.4, 18); }
  dot(pen, radio.on ? "#ffd98a" : "#3b2a1f", 237, 100, 6.5);
  if (radio.on) {
    pen.strokeStyle = "rgb(255 224 160 / 80%)";
    pen.lineWidth = 1.2;
    for (const r of [8, 13, 18]) { pen.beginPath(); pen.arc(226, 84, r, Math.PI * 1.2, Math.PI * 1.8); pen.stroke(); }
  }
  // Fire.
  pen.fillStyle = "#77706a";
  pen.fillRect(286, 72, 58, 78);
  pen.fillStyle = "#8b847c";
  pen.fillRect(282, 68, 66, 6);
  pen.fillStyle = "#14100e";
  pen.fillRect(294, 92, 42, 58);
  if (fire.on) {
    poly(pen, "#d9531e", [[298, 150], [301, 124], [306, 134], [313, 106], [320, 130], [326, 118], [332, 150]]);
    poly(pen, "#f6b53c", [[304, 150], [308, 136], [314, 122], [319, 138], [323, 134], [326, 150]]);
  }
  pen.fillStyle = "#3d2a1c";
  pen.fillRect(298, 146, 34, 4);
  pen.font = "600 8px system-ui, sans-serif";
  pen.textAlign = "center";
  for (const thing of things) {
    pen.fillStyle = thing.on ? "#ffe9b0" : "#ffffffb0";
    pen.fillText(`${thing.name} ${thing.on ? "on" : "off"}`, thing.x + thing.width / 2, 168);
  }
  if (note) { pen.fillStyle = "#ffffffd0"; pen.fillText(note, 180, 16); }
  pen.restore();
}

function poly(pen, colour, points) {
  pen.fillStyle = colour;
  pen.beginPath();
  points.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.fill();
}

function dot(pen, colour, x, y, r) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, r, 0, 7);
  pen.fill();
}
