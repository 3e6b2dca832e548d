/**
 * Which app gets something now: a bar that stays in view while any does, with a button that stops it, and the title of the page. While no
 * gaze comes the bar says so: nothing is sent then.
 * @module
 */
import { byId, el, renew, say } from "./dom.js";
import { appName, plainName, useWords } from "./words.js";

const TITLE = "Gazeveil: who sees your gaze";
const PAUSED = "Paused: the tracker is gone";

/** @param {any} app an entry of /v1/apps @returns {string[]} what it gets now */
export const inUse = (app) => app.in_use ?? (app.streams ?? []).map((/** @type {any} */ stream) => stream.what);

export class UseBar {
  /** @param {(app: string) => void} onStop */
  constructor(onStop) {
    this.onStop = onStop;
    /** @type {Set<string>} */
    this.seen = new Set();
  }

  /**
   * @param {any[]} apps entries of /v1/apps; none where nothing is known or nothing can be sent
   * @param {number} asks how many wait
   * @param {boolean} gone whether no gaze comes from the tracker
   */
  show(apps, asks, gone) {
    const using = apps.map((app) => ({ app: app.app, gone, what: [...new Set(inUse(app).map(useWords))] })).filter(({ what }) => what.length);
    byId("in-use").hidden = using.length === 0;
    byId("in-use").dataset.state = gone ? "paused" : "on";
    byId("in-use-title").textContent = gone ? PAUSED : "In use now";
    renew(byId("in-use-list"), using, ({ app }) => app, ({ app, what }) => el("li", {},
      el("span", {}, appName(app), ` ${gone ? "gets nothing now; it had" : "gets"} ${what.join(", ")}`),
      el("button", { type: "button", "data-name": "stop", "aria-label": `Stop ${plainName(app)}`, onclick: () => this.onStop(app) }, "Stop")),
    () => byId("consent"));
    for (const { app } of using) if (!this.seen.has(app)) say(`${plainName(app)} is in use.`);
    this.seen = new Set(using.map(({ app }) => app));
    const names = using.map(({ app }) => plainName(app));
    const prefix = names.length ? `${gone ? "○" : "●"} ${names.slice(0, 2).join(", ")}${names.length > 2 ? ` and ${names.length - 2} more` : ""} ${gone ? "paused" : "in use"} · ` : "";
    document.title = `${asks ? `(${asks}) ` : ""}${prefix}${TITLE}`;
  }
}
