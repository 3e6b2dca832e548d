/**
 * Tokens for apps that are no web pages. They are shown once, here; the service keeps only their hash.
 * @module
 */
import { addApp } from "./owner.js";
import { byId, copy, el } from "./dom.js";
import { appName, sentence } from "./words.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}";
const NAME_WORDS = "A name has up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit.";
const ORIGIN = /^https?:\/\/[A-Za-z0-9.\-[\]:]{1,253}$/;

/** @param {string} app @param {string} token */
export function showToken(app, token) {
  const dialog = byId("token-dialog");
  dialog.replaceChildren(el("form", { method: "dialog" },
    el("h2", { id: "token-title" }, "Token of ", appName(app)),
    el("div", { class: "dialog-body" },
      el("p", {}, "Give it to the app now: it is shown this once. A token alone opens nothing; you decide what the app gets."),
      el("code", { class: "secret", tabindex: "0", role: "textbox", "aria-readonly": "true", "aria-label": "Token" }, token)),
    el("div", { class: "buttons" },
      el("button", { type: "button", onclick: () => copy(token) }, "Copy"),
      el("button", { type: "submit", class: "primary" }, "Done"))));
  dialog.addEventListener("close", () => dialog.replaceChildren(), { once: true });
  dialog.showModal();
}

/** @param {string} name @param {string[]} origins @returns {string} what is wrong, "" where nothing is */
function wrong(name, origins) {
  if (!new RegExp(`^${NAME}$`).test(name)) return NAME_WORDS;
  const bad = origins.find((origin) => !ORIGIN.test(origin));
  return bad ? `Write a web page as https://shop.example, without a path. “${bad}” is not one.` : "";
}

/** @param {(name: string, token: string) => void} onAdded */
export function openAdd(onAdded) {
  const dialog = byId("add-dialog");
  const problem = el("p", { class: "problem", role: "alert" });
  const form = el("form", { method: "dialog", novalidate: true },
    el("h2", { id: "add-title" }, "Add an app"),
    el("div", { class: "dialog-body stack" },
      el("label", { class: "field" }, el("span", {}, "Name"), el("input", { name: "name", required: true, maxlength: 64, autocomplete: "off", spellcheck: "false" })),
      el("label", { class: "field" }, el("span", {}, "Web pages that may use its token, one in a line"),
        el("textarea", { name: "origins", rows: 2, placeholder: "https://shop.example", "aria-describedby": "add-origins" })),
      el("p", { class: "quiet facts", id: "add-origins" }, "Leave it empty for this device's own pages and for apps outside browsers."),
      problem),
    el("div", { class: "buttons" }, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), el("button", { type: "submit", class: "primary" }, "Add")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const data = new FormData(form);
    const name = String(data.get("name")).trim();
    const origins = String(data.get("origins")).split(/\s+/).filter(Boolean);
    problem.textContent = wrong(name, origins);
    if (problem.textContent) return;
    try {
      const made = await addApp(name, origins);
      dialog.close();
      onAdded(made.app, made.token);
    } catch (error) {
      problem.textContent = sentence(error);
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}
