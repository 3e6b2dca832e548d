/**
 * Redirected walking by saccades alone: while the eyes fly little is seen, and the scene can be turned a little without being noticed. The
 * wearer walks straight ahead in the picture and bends with it in the room.
 *
 * All it needs is that a saccade has begun. The notice is late: the device finds a saccade some milliseconds after its beginning and tells it
 * when a tick of its public clock is over. The scene is turned for what is then left of a flight; where nothing is left it is not turned.
 * @module
 */

/** How fast the scene may turn during a saccade (Sun et al. 2018, "Towards virtual reality infinite walking"), in degrees a second. */
export const TURN_DEG_S = 12.6;

/** How long a flight is taken to last: a saccade of 8 degrees, as most are in free viewing. */
export const FLIGHT_MS = 45;

/** How long the device takes to find a saccade, in the middle, at 250 samples a second. */
export const FOUND_MS = 8;

/** @param {number} tick_ms the device's public clock @returns {number} milliseconds after its beginning that a saccade is told, in the middle */
export const lateBy = (tick_ms) => FOUND_MS + tick_ms / 2;

/** @param {number} tick_ms the device's public clock @returns {number} milliseconds of a flight that are left when its beginning is told */
export const leftOf = (tick_ms) => Math.max(0, FLIGHT_MS - lateBy(tick_ms));

/** Turns the scene after notices. Times are milliseconds of any clock that goes on. */
export class Redirector {
  /** @param {number} lasts_ms how long each turn lasts */
  constructor(lasts_ms) {
    this.lasts_ms = lasts_ms;
    this.notices = 0;
    /** When the turn of the last notice ends, and up to when turns are counted. */
    this.until_ms = -Infinity;
    this.seen_ms = -Infinity;
    this.turned_deg = 0;
  }

  /** A saccade has begun. @param {number} now_ms */
  begun(now_ms) {
    this.at(now_ms);
    this.notices += 1;
    this.until_ms = now_ms + this.lasts_ms;
    this.seen_ms = now_ms;
  }

  /** @param {number} now_ms @returns {number} degrees that the scene has been turned by now */
  at(now_ms) {
    const end = Math.min(now_ms, this.until_ms);
    if (end > this.seen_ms) {
      this.turned_deg += ((end - this.seen_ms) / 1000) * TURN_DEG_S;
      this.seen_ms = end;
    }
    return this.turned_deg;
  }

  /** @param {number} now_ms */
  turning(now_ms) {
    return now_ms < this.until_ms;
  }
}

/** Somebody who walks straight ahead in the picture, one metre a second: where that leads in the room. */
export class Walker {
  constructor() {
    this.x_m = 0;
    this.y_m = 0;
    this.walked_m = 0;
    /** @type {[number, number][]} */
    this.path = [[0, 0]];
  }

  /** @param {number} metres @param {number} turned_deg by how much the scene is turned now */
  walk(metres, turned_deg) {
    const heading = (turned_deg * Math.PI) / 180;
    this.x_m += metres * Math.sin(heading);
    this.y_m += metres * Math.cos(heading);
    this.walked_m += metres;
    const [x, y] = this.path[this.path.length - 1];
    if (Math.hypot(this.x_m - x, this.y_m - y) >= 0.25) this.path.push([this.x_m, this.y_m]);
  }
}
