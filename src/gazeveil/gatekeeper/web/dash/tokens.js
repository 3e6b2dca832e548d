/**
 * Tokens are shown once, here; the service keeps only their hash. Demo apps get theirs in the fragment of a link, which no server sees.
 * @module
 */
import { addApp, newToken } from "./owner.js";
import { byId, copy, el } from "./dom.js";

/** The demo apps and the names they are registered under. */
export const DEMOS = /** @type {const} */ ({ analytics: "gallery-analytics", button: "gaze-button", foveated: "foveated-gallery" });

/** @param {string} app @param {string} token */
export function showToken(app, token) {
  const dialog = byId("token-dialog");
  dialog.replaceChildren(el("form", { method: "dialog" },
    el("h2", { id: "token-title" }, "Token of ", el("q", {}, app)),
    el("p", {}, "Give it to the app now. It is shown this once: the service keeps only a hash of it. A token alone opens nothing; what the app gets is in its grant."),
    el("code", { class: "secret", tabindex: "0", "aria-label": "Token" }, token),
    el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => copy(token) }, "Copy"),
      el("button", { type: "submit", class: "primary" }, "Done"))));
  dialog.addEventListener("close", () => dialog.replaceChildren(), { once: true });
  dialog.showModal();
}

/** @param {(name: string, token: string) => void} onAdded */
export function openAdd(onAdded) {
  const dialog = byId("add-dialog");
  const problem = el("p", { class: "problem", role: "alert" });
  const form = el("form", { method: "dialog" },
    el("h2", { id: "add-title" }, "Add an app"),
    el("label", { class: "field" }, el("span", {}, "Name"), el("input", { name: "name", required: true, maxlength: 64, autocomplete: "off" })),
    el("label", { class: "field" }, el("span", {}, "Web pages that may use its token, one in a line (empty: this device and apps outside browsers)"),
      el("textarea", { name: "origins", rows: 2, placeholder: "https://shop.example" })),
    problem,
    el("div", { class: "buttons" }, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), el("button", { type: "submit", class: "primary" }, "Add")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(form);
    try {
      const origins = String(data.get("origins")).split(/\s+/).filter(Boolean);
      const made = await addApp(String(data.get("name")).trim(), origins);
      dialog.close();
      onAdded(made.app, made.token);
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}

/**
 * Registers the demo apps (or gives them new tokens) and offers the link that opens them.
 * @param {string[]} known names that are registered
 */
export async function startDemos(known) {
  const fragment = new URLSearchParams();
  for (const [part, name] of Object.entries(DEMOS)) {
    const made = known.includes(name) ? await newToken(name) : await addApp(name, []);
    fragment.set(part, made.token);
  }
  const dialog = byId("token-dialog");
  dialog.replaceChildren(el("form", { method: "dialog" },
    el("h2", { id: "token-title" }, "Three demo apps are registered"),
    el("p", {}, "They hold a token and no grant: each will ask, and you decide here. Their tokens travel in the part of the link after #, which browsers send to no server."),
    el("div", { class: "buttons" },
      el("button", { type: "submit" }, "Close"),
      el("a", { class: "button primary", href: `/demo/#${fragment}`, target: "_blank", rel: "noopener", onclick: () => dialog.close() }, "Open the demo"))));
  dialog.addEventListener("close", () => dialog.replaceChildren(), { once: true });
  dialog.showModal();
  dialog.querySelector("a").focus();
}
