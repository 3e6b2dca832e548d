/**
 * What the device sees beside what each app was sent. The owner's WebSocket; nothing of it is stored.
 * @module
 */
import { Plane, inks, windowNear, windowOf } from "./canvas.js";
import { byId, el } from "./dom.js";
import { signed } from "./session.js";
import { appName } from "./words.js";

const KEEP_MS = 4000;
const MOST_POINTS = 4000;
/** Close codes that say that this browser is not the owner's any more. */
const NOT_OWNER = [4001, 4003];

class View {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {{t: number, x: number, y: number, valid: boolean}[]} */
    this.points = [];
    /** @type {{t: number, x: number, y: number, kind: string}[]} */
    this.cells = [];
    /** @type {Map<string, {t: number, area: any}>} */
    this.areas = new Map();
    /** @type {number|null} */
    this.tile = null;
    /** @type {{t: number, target: string}|null} */
    this.choice = null;
    this.count = 0;
    this.samples = false;
  }

  /** Times are of arrival: clocks of the device and of this page need not agree. @param {any} message */
  take(message) {
    const now = performance.now();
    if (Array.isArray(message.x_deg)) {
      const n = message.x_deg.length;
      const last = message.t_ms?.[n - 1] ?? 0;
      for (let i = 0; i < n; i += 1) this.points.push({ t: now - (last - (message.t_ms?.[i] ?? last)), x: message.x_deg[i], y: message.y_deg[i], valid: Boolean(message.valid?.[i]) && message.x_deg[i] !== null });
      this.points.splice(0, Math.max(0, this.points.length - MOST_POINTS));
      this.count += n;
      this.samples = true;
      return;
    }
    this.count += 1;
    if (message.target !== undefined) this.choice = { t: now, target: String(message.target) };
    else if (message.area) this.areas.set(String(message.area.id ?? message.area.name), { t: now, area: message.area });
    else if (message.tile !== undefined) this.tile = message.tile;
    else if (typeof message.x_deg === "number") this.cells.push({ t: now, x: message.x_deg, y: message.y_deg, kind: message.kind ?? message.what });
    this.cells.splice(0, Math.max(0, this.cells.length - 60));
  }
}

export class Live {
  /**
   * @param {() => void} onChanged the service says that something else changed
   * @param {() => void} onDown the connection broke
   */
  constructor(onChanged, onDown) {
    this.onChanged = onChanged;
    this.onDown = onDown;
    this.device = new View(byId("live-device"));
    /** @type {Map<string, {view: View, figure: HTMLElement, facts: HTMLElement}>} */
    this.apps = new Map();
    this.space = { kind: "sphere", width_deg: 360, height_deg: 180 };
    this.level = { resolution_deg: 5, tiles: /** @type {[number, number]} */ ([8, 4]) };
    /** Middle of what is shown, in degrees; follows the gaze when it comes near the edge. */
    this.middle = { x: 180, y: 90 };
    this.failures = 0;
    this.connected = false;
    this.paused = false;
    this.stopped = true;
    const calm = matchMedia("(prefers-reduced-motion: reduce)");
    const pause = byId("live-pause");
    this.setPaused = (/** @type {boolean} */ on) => {
      this.paused = on;
      pause.setAttribute("aria-pressed", String(on));
      pause.textContent = on ? "Resume" : "Pause";
    };
    pause.addEventListener("click", () => this.setPaused(!this.paused));
    byId("live-span").addEventListener("change", () => this.#redraw());
    new ResizeObserver(() => this.#redraw()).observe(byId("live"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#redraw());
    let drawn = 0;
    const frame = (/** @type {number} */ now) => {
      // Whoever asked for less motion gets a new picture once a second.
      if (now - drawn >= (calm.matches ? 1000 : 50) && !this.paused && !document.hidden) {
        drawn = now;
        this.#draw(now);
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  /** @param {any} device the answer of /v1/apps */
  describe(device) {
    if (device.space) this.space = device.space;
    if (device.level) this.level = device.level;
    const known = new Set(device.apps.map((/** @type {any} */ app) => app.app));
    for (const [name, entry] of this.apps) if (!known.has(name)) { entry.figure.remove(); this.apps.delete(name); }
    byId("live-span").closest("label").hidden = this.space.kind !== "sphere";
  }

  /** Opens the owner's WebSocket unless it is open or will be. */
  open() {
    if (!this.stopped) return;
    this.stopped = false;
    this.#connect();
  }

  #connect() {
    const address = new URL("/v1/live", location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.onopen = async () => { socket.send(JSON.stringify({ type: "hello", session: await signed("GET", "/v1/live") })); };
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      this.connected = true;
      this.failures = 0;
      if (message.type === "raw") this.device.take(message);
      else if (message.type === "sent") this.#entry(message.app).view.take(message);
      else if (message.type === "changed") this.onChanged();
    };
    socket.onclose = (event) => {
      if (this.connected) this.onDown();
      this.connected = false;
      this.stopped = NOT_OWNER.includes(event.code);
      if (this.stopped) return;
      this.failures += 1;
      setTimeout(() => this.#connect(), Math.min(10_000, 250 * 2 ** this.failures));
    };
  }

  /** @param {string} app */
  #entry(app) {
    let entry = this.apps.get(app);
    if (!entry) {
      const canvas = el("canvas", { role: "img", "aria-label": `What ${app} was sent` });
      const facts = el("p", { class: "quiet facts" });
      const figure = el("figure", {}, el("figcaption", {}, el("strong", {}, appName(app)), el("span", { class: "quiet" }, "was sent")), canvas, facts);
      byId("live-apps").append(figure);
      entry = { view: new View(canvas), figure, facts };
      this.apps.set(app, entry);
    }
    return entry;
  }

  /** A paused picture is drawn anew where its size or its colours change. */
  #redraw() {
    if (this.paused) this.#draw(performance.now());
  }

  /** @param {number} now */
  #draw(now) {
    const shown = byId("live-span").value === "near" ? this.#near() : windowOf(this.space);
    const colours = inks(document.documentElement);
    byId("live-none").hidden = this.apps.size > 0;
    const device = this.device;
    const plane = new Plane(device.canvas, this.space, shown);
    plane.tiles(this.level.tiles, this.space, colours.line);
    device.points = device.points.filter((p) => now - p.t < KEEP_MS);
    if (device.points.length) plane.trace(device.points, now, KEEP_MS, colours.raw, true);
    else plane.note(this.connected ? "No gaze is seen." : "The device does not answer.", colours.quiet);
    setText(byId("live-device-facts"), "Where your eyes are now. Only this page shows it; it is not kept.");
    for (const { view, facts } of this.apps.values()) this.#drawApp(view, facts, now, shown, colours);
  }

  /** The window moves by whole steps when the gaze has left its inner part, so that the picture stays still most of the time. */
  #near() {
    const last = this.device.points.findLast((p) => p.valid);
    const shown = windowNear(this.space, this.middle.x, this.middle.y);
    if (last) {
      const off = (/** @type {number} */ d) => (this.space.kind === "sphere" ? ((d + 540) % 360) - 180 : d);
      const [dx, dy] = [off(last.x - this.middle.x), last.y - (shown.top + shown.height / 2)];
      if (Math.abs(dx) > 0.38 * shown.width || Math.abs(dy) > 0.38 * shown.height) this.middle = { x: 15 * Math.round(last.x / 15), y: 15 * Math.round(last.y / 15) };
    }
    return windowNear(this.space, this.middle.x, this.middle.y);
  }

  #drawApp(view, facts, now, shown, colours) {
    const plane = new Plane(view.canvas, this.space, shown);
    plane.grid(this.level.resolution_deg, colours.line);
    plane.tiles(this.level.tiles, this.space, colours.line);
    for (const { t, area } of view.areas.values()) plane.area(area, colours.sent, now - t < 1500 ? 1 : 0.35);
    if (view.tile !== null) plane.tile(view.tile, this.level.tiles, this.space, colours.sent);
    view.points = view.points.filter((p) => now - p.t < KEEP_MS);
    view.cells = view.cells.filter((c) => now - c.t < 2 * KEEP_MS);
    for (const cell of view.cells) plane.cell(cell.x, cell.y, this.level.resolution_deg, colours.sent, Math.max(0.15, 0.8 * (1 - (now - cell.t) / (2 * KEEP_MS))));
    plane.trace(view.points, now, KEEP_MS, colours.sent, false);
    const quiet = view.points.length === 0 && view.cells.length === 0 && view.tile === null && view.areas.size === 0;
    const chosen = view.choice && now - view.choice.t < KEEP_MS;
    if (quiet) plane.note(chosen ? `“${view.choice.target}” was chosen.` : "Nothing this moment.", chosen ? colours.sent : colours.quiet);
    const what = `${view.samples ? "sample" : "answer"}${view.count === 1 ? "" : "s"}${view.samples ? " with noise" : ""}`;
    setText(facts, `${view.count.toLocaleString("en")} ${what} sent since this page was opened`);
  }
}

/** Writes only what changed: a text that is set anew disturbs selections. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
