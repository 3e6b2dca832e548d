/**
 * A question before something that cannot be taken back.
 * @module
 */
import { byId, el } from "./dom.js";
import { sentence } from "./words.js";

/**
 * @param {object} options
 * @param {(Node|string)[]} options.title
 * @param {string} options.text what will happen
 * @param {string} options.yes word of the button that does it
 * @param {() => Promise<any>} options.onYes rejects with a sentence to show
 * @param {() => void} options.onDone after it is done and the dialog is closed
 */
export function ask({ title, text, yes, onYes, onDone }) {
  const dialog = byId("question-dialog");
  const problem = el("p", { class: "problem", role: "alert" });
  const no = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const go = el("button", { type: "submit", class: "primary danger" }, yes);
  const form = el("form", { method: "dialog" },
    el("h2", { id: "question-title" }, ...title),
    el("div", { class: "dialog-body" }, el("p", { id: "question-text" }, text), problem),
    el("div", { class: "buttons" }, no, go));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await onYes();
      dialog.close();
      onDone();
    } catch (error) {
      problem.textContent = sentence(error);
      go.disabled = false;
    }
  });
  dialog.replaceChildren(form);
  dialog.showModal();
  // What cannot be taken back is never one careless press of Enter away.
  no.focus();
}
