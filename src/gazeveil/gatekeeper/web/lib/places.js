/**
 * Where the things of an app are: DOM elements, rectangles in pixels and rectangles in degrees, all as degrees of the device's space.
 *
 * On a screen 0, 0 is the middle, x grows to the right and y downwards, and a degree is the arc tangent of millimetres from the middle over
 * the viewing distance. Around a head straight ahead is 180, 90; a page cannot know where it hangs there, so it names degrees itself.
 * @module
 */
import { GazeError } from "./errors.js";

/**
 * @typedef {{kind: "screen"|"sphere", width_deg: number, height_deg: number, width_mm?: number, height_mm?: number, distance_mm?: number}} Space
 * @typedef {{x_deg: number, y_deg: number, width_deg: number, height_deg: number}} Rect
 * @typedef {{x: number, y: number, width: number, height: number}} PixelRect in CSS pixels of the viewport
 * @typedef {Element|PixelRect|Rect} Thing
 */

/** How often things are looked for, and how far one must have moved to be told, in milliseconds and degrees. */
const EVERY_MS = 200;
const LEAST_MOVE_DEG = 0.1;

/** Where a thing is that cannot be seen: outside every space. */
const NOWHERE = { x_deg: -10_000, y_deg: -10_000, width_deg: 1, height_deg: 1 };

/** Why elements and pixels mean nothing around a head. */
export const NO_PLACE = "The device's degrees are directions around the head, and a page cannot know where it hangs there. Name places in degrees: x_deg, y_deg, width_deg, height_deg. To try a page at a desk, start the service with --tracker mouse.";

const LONGEST_NAME = 64;
const ZOOMS = [0.25, 1 / 3, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5];

/** The page's zoom: pixels of the screen for a CSS pixel. A docked panel beside the page makes the quotient no zoom that browsers have. */
export function zoomOf(/** @type {Window} */ view) {
  const quotient = view.outerWidth / view.innerWidth;
  return ZOOMS.find((zoom) => Math.abs(quotient - zoom) < 0.03 * zoom) ?? 1;
}

/** Where the viewport lies on the screen, estimated until the pointer has said it. */
export class Viewport {
  /** @type {{x: number, y: number, key: string}|null} */
  #measured = null;
  #view;

  /** @param {Window} [view] */
  constructor(view = window) {
    this.#view = view;
    view.addEventListener("pointermove", (event) => this.measure(event), { passive: true, capture: true });
  }

  /** A pointer knows its place on the screen and in the page. @param {MouseEvent} event */
  measure(event) {
    const { offsetLeft = 0, offsetTop = 0, scale = 1 } = this.#view.visualViewport ?? {}; // two fingers zoom it too
    const zoom = zoomOf(this.#view) * scale;
    this.#measured = { x: event.screenX - (event.clientX - offsetLeft) * zoom, y: event.screenY - (event.clientY - offsetTop) * zoom, key: this.#key() };
  }

  /** @returns {{x: number, y: number, zoom: number}} left upper corner in pixels of the screen, and the zoom */
  get place() {
    const view = /** @type {any} */ (this.#view);
    const zoom = zoomOf(view);
    if (this.#measured?.key === this.#key()) return { x: this.#measured.x, y: this.#measured.y, zoom };
    const side = Math.max(0, (view.outerWidth - view.innerWidth * zoom) / 2);
    return {
      x: view.mozInnerScreenX !== undefined ? view.mozInnerScreenX * zoom : view.screenX + side,
      y: view.mozInnerScreenY !== undefined ? view.mozInnerScreenY * zoom : view.screenY + Math.max(0, view.outerHeight - view.innerHeight * zoom - side),
      zoom,
    };
  }

  /** What a measurement holds for: a window that was moved or resized is measured anew. */
  #key() {
    const { screenX, screenY, outerWidth, outerHeight, innerWidth, innerHeight } = this.#view;
    return [screenX, screenY, outerWidth, outerHeight, innerWidth, innerHeight].join();
  }
}

const degrees = (/** @type {number} */ mm, /** @type {number} */ distance_mm) => (Math.atan2(mm, distance_mm) * 180) / Math.PI;
const pixels = (/** @type {number} */ deg, /** @type {number} */ distance_mm) => Math.tan((deg * Math.PI) / 180) * distance_mm;

/** Pixels of a page and degrees of a screen, in both directions. */
export class ScreenScale {
  /**
   * @param {Space} space what the device tells
   * @param {{width: number, height: number}} screen in pixels, as the browser says
   * @param {() => {x: number, y: number, zoom: number}} place of the viewport
   */
  constructor(space, screen, place) {
    if (space.kind !== "screen" || !space.width_mm || !space.height_mm || !space.distance_mm) {
      throw new GazeError("space", NO_PLACE);
    }
    this.space = space;
    this.screen = screen;
    this.place = place;
  }

  /** A place on the screen, in pixels of the screen. @returns {[number, number]} */
  screenPoint(/** @type {number} */ x, /** @type {number} */ y) {
    const { width_mm = 1, height_mm = 1, distance_mm = 1 } = this.space;
    return [
      degrees((x / this.screen.width - 0.5) * width_mm, distance_mm),
      degrees((y / this.screen.height - 0.5) * height_mm, distance_mm),
    ];
  }

  /** @param {PixelRect} rect in CSS pixels of the viewport @returns {Rect} */
  toDegrees({ x, y, width, height }) {
    const at = this.place();
    const [left, top] = this.screenPoint(at.x + x * at.zoom, at.y + y * at.zoom);
    const [right, bottom] = this.screenPoint(at.x + (x + width) * at.zoom, at.y + (y + height) * at.zoom);
    return { x_deg: left, y_deg: top, width_deg: right - left, height_deg: bottom - top };
  }

  /** @returns {[number, number]} a place in CSS pixels of the viewport */
  toPixels(/** @type {number} */ x_deg, /** @type {number} */ y_deg) {
    const { width_mm = 1, height_mm = 1, distance_mm = 1 } = this.space;
    const at = this.place();
    const x = (pixels(x_deg, distance_mm) / width_mm + 0.5) * this.screen.width;
    const y = (pixels(y_deg, distance_mm) / height_mm + 0.5) * this.screen.height;
    return [(x - at.x) / at.zoom, (y - at.y) / at.zoom];
  }
}

/**
 * What of an element can be seen, in CSS pixels of the viewport; null where it is hidden or scrolled away.
 * @param {Element} element
 * @returns {PixelRect|null}
 */
export function visiblePart(element) {
  if (!element.isConnected || document.hidden || !(element.checkVisibility?.() ?? true)) return null;
  const box = element.getBoundingClientRect();
  let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
  const clip = (/** @type {number} */ l, /** @type {number} */ t, /** @type {number} */ r, /** @type {number} */ b) => {
    [left, top, right, bottom] = [Math.max(left, l), Math.max(top, t), Math.min(right, r), Math.min(bottom, b)];
  };
  for (let parent = element.parentElement; parent && parent !== document.body; parent = parent.parentElement) {
    if (getComputedStyle(parent).overflow === "visible") continue;
    const around = parent.getBoundingClientRect();
    clip(around.left, around.top, around.right, around.bottom);
  }
  const seen = window.visualViewport;
  const { offsetLeft = 0, offsetTop = 0, width = innerWidth, height = innerHeight, scale = 1 } = seen ?? {};
  clip(offsetLeft, offsetTop, offsetLeft + width, offsetTop + height);
  if (right <= left || bottom <= top) return null;
  return { x: (left - offsetLeft) * scale, y: (top - offsetTop) * scale, width: (right - left) * scale, height: (bottom - top) * scale };
}

const isElement = (/** @type {any} */ thing) => typeof Element !== "undefined" && thing instanceof Element;

/**
 * A few things of an app under names, and where they are now.
 */
export class Things {
  /** @type {Map<string, Thing>} */
  #things = new Map();
  /** @type {Map<string, Rect>} */
  #told = new Map();
  #scale;
  #timer = 0;

  /**
   * @param {Iterable<Thing>|Thing} things one or several
   * @param {() => ScreenScale} scale asked only where a thing is no rectangle in degrees
   */
  constructor(things, scale) {
    this.#scale = scale;
    const all = /** @type {any} */ (things)?.[Symbol.iterator] ? [.../** @type {Iterable<Thing>} */ (things)] : [/** @type {Thing} */ (things)];
    if (all.length === 0 || !all.every((thing) => thing && typeof thing === "object")) throw new GazeError("parameter", "Name at least one element or rectangle; document.querySelector finds the element of a selector.");
    if (all.some((thing) => !("x_deg" in thing))) scale(); // Throws where a page has no place in the device's space.
    all.forEach((thing, i) => this.#things.set(this.#nameOf(thing, i), thing));
  }

  /** @param {string} name @returns {any} the thing that the app named so */
  thing(name) {
    return this.#things.get(name);
  }

  /** Where all are now. @returns {(Rect & {name: string})[]} */
  targets() {
    const targets = [...this.#things].map(([name, thing]) => ({ name, ...this.#place(thing) }));
    for (const target of targets) this.#told.set(target.name, target);
    return targets;
  }

  /** Those that have moved since they were last told; what was never told has not moved. */
  moved() {
    const far = (/** @type {any} */ a, /** @type {any} */ b) => ["x_deg", "y_deg", "width_deg", "height_deg"].some((side) => Math.abs(a[side] - b[side]) > LEAST_MOVE_DEG);
    const before = new Map(this.#told);
    const after = [...this.#things].map(([name, thing]) => ({ name, ...this.#place(thing) }));
    const moved = after.filter((target) => before.has(target.name) && far(target, before.get(target.name)));
    for (const target of moved) this.#told.set(target.name, target);
    return moved;
  }

  /**
   * Looks where the things are, five times a second: layout, scrolling, zoom and animations all count.
   * @param {(moved: (Rect & {name: string})[]) => void} onMove
   * @param {AbortSignal} signal ends it
   */
  follow(onMove, signal) {
    if (signal.aborted || ![...this.#things.values()].some((thing) => !("x_deg" in /** @type {any} */ (thing)))) return;
    const look = () => {
      const moved = this.moved();
      if (moved.length) onMove(moved);
    };
    this.#timer = setInterval(look, EVERY_MS);
    document.addEventListener("visibilitychange", look, { signal });
    signal.addEventListener("abort", () => clearInterval(this.#timer), { once: true });
  }

  /** @param {Thing} thing @returns {Rect} */
  #place(thing) {
    if ("x_deg" in /** @type {any} */ (thing)) {
      const { x_deg, y_deg, width_deg, height_deg } = /** @type {Rect} */ (thing);
      return { x_deg, y_deg, width_deg, height_deg };
    }
    const part = isElement(thing) ? visiblePart(/** @type {Element} */ (thing)) : document.hidden ? null : /** @type {PixelRect} */ (thing);
    return part ? this.#scale().toDegrees(part) : NOWHERE;
  }

  /** A name of at most 64 characters that no other thing has. @param {any} thing @param {number} i */
  #nameOf(thing, i) {
    const own = String((isElement(thing) ? thing.id || thing.getAttribute("aria-label") : thing?.name) || `thing ${i + 1}`).slice(0, LONGEST_NAME - 4);
    return this.#things.has(own) ? `${own} ${i + 1}` : own;
  }
}
