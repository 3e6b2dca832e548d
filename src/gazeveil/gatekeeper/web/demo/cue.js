/**
 * Gaze guidance (Bailey et al. 2009, "Subtle gaze direction"): a spot at the edge of the view is made a little lighter and darker ten times a
 * second until the eyes set out for it, and is steady before they arrive, so that nobody sees what drew them.
 *
 * With samples one knows in which direction the eyes set out. With events one knows that they did, so the spot is steady after every
 * beginning of a saccade, and moves again when the landing is told and was elsewhere.
 * @module
 */

/** How often the spot goes from dark to light and back, in a second. */
export const FLICKER_HZ = 10;

/** How long a landing is waited for: a blink may swallow it. */
export const PATIENCE_MS = 1000;

/** Where the spot is and whether it moves. Times are milliseconds of any clock that goes on. */
export class Cue {
  /** @param {{x: number, y: number, width: number, height: number}[]} targets what the eyes are to be led to, one after the other */
  constructor(targets) {
    this.targets = targets;
    this.place = 0;
    this.hits = 0;
    this.landings = 0;
    this.starts = 0;
    /** @type {number|null} since when the spot is steady, null while it moves */
    this.steady_ms = null;
    this.shown_ms = 0;
    this.counted_ms = /** @type {number|null} */ (null);
  }

  get target() {
    return this.targets[this.place];
  }

  /** Count the time the spot moved. @param {number} now_ms */
  count(now_ms) {
    if (this.steady_ms !== null && now_ms - this.steady_ms > PATIENCE_MS) {
      this.counted_ms = this.steady_ms + PATIENCE_MS;
      this.steady_ms = null;
    }
    if (this.steady_ms === null && this.counted_ms !== null) this.shown_ms += now_ms - this.counted_ms;
    this.counted_ms = now_ms;
  }

  /** A saccade has begun. @param {number} now_ms */
  begun(now_ms) {
    this.count(now_ms);
    this.starts += 1;
    this.steady_ms = now_ms;
  }

  /**
   * A saccade has landed.
   * @param {number} x @param {number} y in units of the targets
   * @param {number} now_ms
   * @returns {boolean} whether it landed on the target; the next one is then cued
   */
  landed(x, y, now_ms) {
    this.count(now_ms);
    this.landings += 1;
    this.steady_ms = null;
    this.counted_ms = now_ms;
    const { target } = this;
    const hit = x >= target.x && x < target.x + target.width && y >= target.y && y < target.y + target.height;
    if (hit) {
      this.hits += 1;
      this.place = (this.place + 1) % this.targets.length;
    }
    return hit;
  }

  /** @param {number} now_ms @returns {number} how light the spot is, from -1 to 1; 0 while it is steady */
  light(now_ms) {
    return this.steady_ms !== null && now_ms - this.steady_ms <= PATIENCE_MS ? 0 : Math.sin(2 * Math.PI * FLICKER_HZ * (now_ms / 1000));
  }
}
