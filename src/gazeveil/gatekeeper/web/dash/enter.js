/**
 * The page of the one-time link: takes the key out of the address, uses it, keeps what it gets, and goes on to the dashboard.
 * @module
 */
import { keep } from "./session.js";

const said = /** @type {HTMLElement} */ (document.getElementById("entering"));
const key = new URLSearchParams(location.search).get("key") ?? "";
// Neither the history nor a bookmark keeps the key.
history.replaceState(null, "", "/owner");

try {
  const answer = await fetch("/v1/sign-in", { method: "POST", headers: { Authorization: `Bearer ${key}` }, credentials: "same-origin", cache: "no-store" });
  const body = await answer.json();
  if (answer.ok) {
    keep(body.session);
    location.replace("/");
  } else {
    said.textContent = body.error?.reason ?? "The service did not sign you in. Start it again for a new link.";
  }
} catch {
  said.textContent = "The service does not answer, or this browser keeps nothing for this page. Check both, then use a new link.";
}
