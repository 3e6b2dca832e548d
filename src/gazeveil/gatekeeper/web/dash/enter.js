/**
 * The page of the one-time link: takes the key out of the address, uses it to make this page's own key known, and goes on to the dashboard.
 * @module
 */
import { INSECURE, make } from "./session.js";

const said = /** @type {HTMLElement} */ (document.getElementById("entering"));
const key = new URLSearchParams(location.search).get("key") ?? "";
// Neither the history nor a bookmark keeps the key.
history.replaceState(null, "", "/owner");

/** @param {string} publicKey @returns {Promise<string>} the session's id */
async function begin(publicKey) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const answer = await fetch("/v1/sign-in", { method: "POST", headers, body: JSON.stringify({ key: publicKey }), credentials: "omit", cache: "no-store" });
  const body = await answer.json();
  if (!answer.ok) throw new RangeError(body.error?.reason ?? "The service did not sign you in. Start it again for a new link.");
  return body.id;
}

try {
  if (!globalThis.crypto?.subtle) throw new RangeError(INSECURE);
  await make(begin);
  location.replace("/");
} catch (error) {
  said.textContent = error instanceof RangeError ? error.message : "The service does not answer, or this browser keeps nothing for this page. Check both, then use a new link.";
}
