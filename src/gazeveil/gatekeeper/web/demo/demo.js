/**
 * Puts the six apps on the page. Their tokens come in the fragment of the address, leave it at once, and stay in this tab alone.
 * @module
 */
import { byId } from "/dash/dom.js";
import { analytics } from "./analytics.js";
import { button } from "./button.js";
import { foveated } from "./foveated.js";
import { guidance } from "./guidance.js";
import { panel } from "./panel.js";
import { select } from "./select.js";
import { walking } from "./walking.js";

/** Least first, as the owner decides on them. */
const APPS = { select, analytics, walking, guidance, button, foveated };

/** @returns {Map<string, string>} tokens by the name of the demo app */
function tokens() {
  const found = new Map(new URLSearchParams(location.hash.slice(1)));
  if ([...found.keys()].some((name) => name in APPS)) history.replaceState(null, "", location.pathname);
  for (const name of Object.keys(APPS)) {
    const token = found.get(name) ?? sessionStorage.getItem(`gazeveil-${name}`);
    if (!token) continue;
    found.set(name, token);
    sessionStorage.setItem(`gazeveil-${name}`, token);
  }
  return found;
}

const given = tokens();
for (const [name, make] of Object.entries(APPS)) {
  const token = given.get(name);
  if (token) byId("panels").append(panel(make(), token));
}
byId("none").hidden = byId("panels").children.length > 0;
