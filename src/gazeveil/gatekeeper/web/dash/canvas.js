/**
 * Drawing of one view of gaze: a plane of degrees with the public grid, traces, cells and tiles.
 * @module
 */

/**
 * @typedef {{kind: string, width_deg: number, height_deg: number}} Space
 * @typedef {{left: number, top: number, width: number, height: number}} Window a rectangle of degrees
 */

const STEPS = 8;

/** Everything there is to see. @param {Space} space @returns {Window} */
export function windowOf(space) {
  const sphere = space.kind === "sphere";
  return sphere ? { left: 0, top: 0, width: 360, height: 180 } : { left: -space.width_deg / 2, top: -space.height_deg / 2, width: space.width_deg, height: space.height_deg };
}

/** A third of it around a place, on whole steps so that it moves seldom. @param {Space} space @param {number} x_deg @param {number} y_deg @returns {Window} */
export function windowNear(space, x_deg, y_deg) {
  const all = windowOf(space);
  const [width, height] = [all.width / 3, all.height / 3];
  const within = (/** @type {number} */ value, /** @type {number} */ low, /** @type {number} */ high) => Math.min(high, Math.max(low, value));
  const [left, top] = [x_deg - width / 2, y_deg - height / 2];
  return { left: space.kind === "sphere" ? left : within(left, all.left, all.left + all.width - width), top: within(top, all.top, all.top + all.height - height), width, height };
}

/** Colours of the page's scheme, read once for each drawing. @param {HTMLElement} element */
export function inks(element) {
  const style = getComputedStyle(element);
  const of = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return { raw: of("--raw"), sent: of("--accent"), line: of("--line"), quiet: of("--quiet"), page: of("--sunk"), ink: of("--ink") };
}

export class Plane {
  /** @param {HTMLCanvasElement} canvas @param {Space} space @param {Window} shown */
  constructor(canvas, space, shown) {
    this.canvas = canvas;
    this.window = shown;
    this.sphere = space.kind === "sphere";
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    const height = Math.round((width * this.window.height) / this.window.width);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
      canvas.style.aspectRatio = `${this.window.width} / ${this.window.height}`;
    }
    this.scale = width / this.window.width;
    this.ratio = ratio;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.pen.clearRect(0, 0, width, height);
  }

  /** Directions go round: what is left of 0 degrees is at 360. @param {number} x_deg */
  x(x_deg) {
    const past = x_deg - this.window.left;
    return (this.sphere && (past < 0 || past > 360) ? ((past % 360) + 360) % 360 : past) * this.scale;
  }

  /** @param {number} y_deg */
  y(y_deg) { return (y_deg - this.window.top) * this.scale; }

  /** @param {number} step_deg @param {string} colour */
  grid(step_deg, colour) {
    const { pen, window: w } = this;
    if (step_deg * this.scale < 8) return;
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.globalAlpha = 0.55;
    pen.beginPath();
    for (let x = Math.ceil(w.left / step_deg) * step_deg; x <= w.left + w.width; x += step_deg) { pen.moveTo(this.x(x), 0); pen.lineTo(this.x(x), this.canvas.height); }
    for (let y = Math.ceil(w.top / step_deg) * step_deg; y <= w.top + w.height; y += step_deg) { pen.moveTo(0, this.y(y)); pen.lineTo(this.canvas.width, this.y(y)); }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** The borders of the tiles. @param {[number, number]} tiles @param {Space} space @param {string} colour */
  tiles(tiles, space, colour) {
    if (tiles[0] > 12) return;
    const all = windowOf(space);
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5 * this.ratio;
    pen.beginPath();
    for (let i = 0; i < tiles[0]; i += 1) { const x = this.x(all.left + (i * all.width) / tiles[0]); pen.moveTo(x, 0); pen.lineTo(x, this.canvas.height); }
    for (let i = 1; i < tiles[1]; i += 1) { const y = this.y(all.top + (i * all.height) / tiles[1]); pen.moveTo(0, y); pen.lineTo(this.canvas.width, y); }
    pen.stroke();
  }

  /**
   * Points that fade with age in a few steps, each drawn in one stroke; joined where `joined`.
   * @param {{t: number, x: number, y: number, valid: boolean}[]} points @param {number} now @param {number} keep_ms @param {string} colour @param {boolean} joined
   */
  trace(points, now, keep_ms, colour, joined) {
    const { pen } = this;
    const radius = 2.2 * this.ratio;
    const paths = Array.from({ length: STEPS }, () => new Path2D());
    let before = null;
    for (const point of points) {
      const step = Math.floor((STEPS * (now - point.t)) / keep_ms);
      if (!point.valid || step >= STEPS) { before = null; continue; }
      const path = paths[Math.max(0, step)];
      const [x, y] = [this.x(point.x), this.y(point.y)];
      if (!joined) {
        path.moveTo(x + radius, y);
        path.arc(x, y, radius, 0, 7);
      } else if (before && Math.abs(this.x(before.x) - x) < 180 * this.scale) {
        // A step over the edge of the sphere is not a line across the picture.
        path.moveTo(this.x(before.x), this.y(before.y));
        path.lineTo(x, y);
      }
      before = point;
    }
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 1.6 * this.ratio;
    paths.forEach((path, step) => {
      pen.globalAlpha = Math.max(0.1, 1 - step / STEPS);
      if (joined) pen.stroke(path);
      else pen.fill(path);
    });
    pen.globalAlpha = 1;
    if (joined && before) {
      pen.beginPath();
      pen.arc(this.x(before.x), this.y(before.y), 2 * radius, 0, 7);
      pen.fill();
    }
  }

  /** A cell of the public grid. @param {number} x_deg its centre @param {number} y_deg @param {number} side_deg @param {string} colour @param {number} alpha */
  cell(x_deg, y_deg, side_deg, colour, alpha) {
    const { pen } = this;
    pen.fillStyle = colour;
    pen.globalAlpha = alpha;
    pen.fillRect(this.x(x_deg - side_deg / 2), this.y(y_deg - side_deg / 2), side_deg * this.scale, side_deg * this.scale);
    pen.globalAlpha = 1;
  }

  /** @param {{x_deg: number, y_deg: number, width_deg: number, height_deg: number}} area @param {string} colour @param {number} alpha */
  area(area, colour, alpha) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = 2 * this.ratio;
    pen.globalAlpha = alpha;
    pen.strokeRect(this.x(area.x_deg), this.y(area.y_deg), area.width_deg * this.scale, area.height_deg * this.scale);
    pen.globalAlpha = 1;
  }

  /** @param {number} tile counted row by row @param {[number, number]} tiles @param {Space} space @param {string} colour */
  tile(tile, tiles, space, colour) {
    const all = windowOf(space);
    const width = all.width / tiles[0];
    const height = all.height / tiles[1];
    const { pen } = this;
    pen.fillStyle = colour;
    pen.globalAlpha = 0.22;
    pen.fillRect(this.x(all.left + (tile % tiles[0]) * width), this.y(all.top + Math.floor(tile / tiles[0]) * height), width * this.scale, height * this.scale);
    pen.globalAlpha = 1;
  }

  /** @param {string} text @param {string} colour */
  note(text, colour) {
    const { pen } = this;
    pen.fillStyle = colour;
    pen.font = `${13 * this.ratio}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.fillText(text, this.canvas.width / 2, this.canvas.height / 2);
  }
}
