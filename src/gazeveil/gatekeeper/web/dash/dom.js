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
 * @param {(key: string) => HTMLElement|null} [onLost] who gets the focus when the child that held it goes and no other is left
 */
export function renew(list, items, keyOf, make, onLost) {
  const before = /** @type {HTMLElement[]} */ ([...list.children]);
  const old = new Map(before.map((child) => [child.dataset.key, child]));
  const holder = before.find((child) => child.contains(document.activeElement)) ?? null;
  const name = /** @type {HTMLElement|null} */ (document.activeElement)?.dataset.name ?? "";
  const focused = /** @type {HTMLElement|null} */ (document.activeElement);
  const wanted = items.map((item) => {
    const key = keyOf(item);
    const state = JSON.stringify(item);
    const child = old.get(key);
    if (child && child.dataset.state === state) return child;
    const made = make(item);
    made.dataset.key = key;
    made.dataset.state = state;
    return made;
  });
  if (wanted.length === before.length && wanted.every((node, i) => node === before[i])) return;
  list.replaceChildren(...wanted);
  if (!holder) return;
  // Moving a node blurs it; a renewed or vanished one loses its focus for good unless it is handed on.
  const key = holder.dataset.key ?? "";
  const same = wanted.find((child) => child.dataset.key === key);
  if (same === holder) focused?.focus();
  else if (same) (named(same, name) ?? same.querySelector("button"))?.focus();
  else handOn(wanted, Math.min(before.indexOf(holder), wanted.length - 1), name, () => onLost?.(key) ?? null);
}

/** @param {HTMLElement} within @param {string} name @returns {HTMLElement|undefined} */
const named = (within, name) => /** @type {HTMLElement[]} */ ([...within.querySelectorAll("button, a, input, select, summary")]).find((e) => e.dataset.name === name);

/** The child that took the place of the one that went gets the focus. */
function handOn(children, place, name, otherwise) {
  const next = children[place];
  (next ? named(next, name) ?? next.querySelector("button") : otherwise())?.focus();
}

/** Says a change, on the page and to a screen reader, beside what was said just before: the answer to a press and the news of an app can come together. @param {string} text */
export function say(text) {
  const line = document.createElement("p");
  line.textContent = text;
  byId("said").append(line);
  setTimeout(() => line.remove(), 6000);
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
