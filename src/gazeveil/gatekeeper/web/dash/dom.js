/**
 * Making and renewing parts of a page. Text goes in as text, never as markup: what an app calls itself cannot become an element.
 * @module
 */

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] "on…" are listeners, booleans are present or absent, the rest are attributes
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {any}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== false && child !== undefined));
  return made;
}

/** @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

/**
 * Renews the children of a list by key: what did not change stays, so focus, scrolling and screen readers are not disturbed.
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} items
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => HTMLElement} make
 */
export function renew(list, items, keyOf, make) {
  const old = new Map([...list.children].map((child) => [/** @type {HTMLElement} */ (child).dataset.key, /** @type {HTMLElement} */ (child)]));
  const wanted = items.map((item) => {
    const key = keyOf(item);
    const state = JSON.stringify(item);
    const before = old.get(key);
    if (before && before.dataset.state === state) return before;
    const made = make(item);
    made.dataset.key = key;
    made.dataset.state = state;
    if (before?.contains(document.activeElement)) keepFocus(before, made);
    return made;
  });
  const same = wanted.length === list.children.length && wanted.every((node, i) => node === list.children[i]);
  if (same) return;
  const focused = /** @type {HTMLElement|null} */ (document.activeElement);
  list.replaceChildren(...wanted);
  // Moving a node blurs it.
  if (focused && list.contains(focused) && document.activeElement !== focused) focused.focus();
}

/** The button of the same name in the new card gets the focus; where it is gone, the first button of the card. */
function keepFocus(before, made) {
  const name = /** @type {HTMLElement} */ (document.activeElement).dataset.name;
  queueMicrotask(() => {
    const next = [...made.querySelectorAll("button, a, input, select")].find((e) => e.dataset.name === name) ?? made.querySelector("button");
    next?.focus();
  });
}

let fading = 0;

/** Says a change, on the page and to a screen reader. @param {string} text */
export function say(text) {
  const said = byId("said");
  said.textContent = "";
  clearTimeout(fading);
  requestAnimationFrame(() => { said.textContent = text; });
  fading = setTimeout(() => { said.textContent = ""; }, 6000);
}

/** @param {string} text @returns {Promise<boolean>} whether the clipboard took it */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.");
    return true;
  } catch {
    say("The browser did not allow copying. Select the text and copy it by hand.");
    return false;
  }
}
