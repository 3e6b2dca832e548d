/**
 * Whether a page lies well, by measured boxes: runs in the page, gives `found`, a list of sentences, and how many boxes were `measured`.
 *
 * It takes every line of visible text and every control, cut to what its scrolling containers show of it, and says where two of them lie on
 * one another, where text leaves its box or the window, and where a box cuts text off. While a dialog is open only the dialog is measured:
 * what is behind it cannot be used.
 */
(slack) => {
  const root = document.querySelector("dialog[open]") ?? document.body;
  const CONTROLS = "button, a.button, input, select, textarea, canvas, img, .bar, .badge, summary";
  const visible = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !e.closest(".skip, .toast, .asks-bar, noscript, option");
  const scrolls = (style, axis) => ["auto", "scroll"].includes(style[`overflow${axis}`]);
  const clips = (style) => ["hidden", "clip"].includes(style.overflowX) || ["hidden", "clip"].includes(style.overflowY);
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? `#${e.id}` : ""}${e.classList.length ? `.${[...e.classList].join(".")}` : ""} "${(e.innerText ?? e.getAttribute("aria-label") ?? "").trim().slice(0, 40)}"`;
  const found = [];
  // What is left of a box inside everything around it that scrolls; null where that hides it.
  const shown = (box, element) => {
    let { left, top, right, bottom } = box;
    for (let e = element; e && e !== root.parentElement; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (!scrolls(style, "X") && !scrolls(style, "Y")) continue;
      const frame = e.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, frame.left), Math.max(top, frame.top), Math.min(right, frame.right), Math.min(bottom, frame.bottom)];
    }
    return right - left > 0.5 && bottom - top > 0.5 ? { left, top, right, bottom } : null;
  };
  const items = [];
  const add = (box, element, kind) => { const rest = shown(box, element); if (rest) items.push({ ...rest, element, kind }); };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.textContent.trim() || !parent || !visible(parent) || parent.closest("select, textarea, .prose") || getComputedStyle(parent).clipPath !== "none" || parent.closest("thead")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      add(box, parent, "text");
      if (box.left < -slack || box.right > innerWidth + slack) { if (!parent.closest(".scroll")) found.push(`leaves the window: ${name(parent)}`); }
      for (let e = parent; e && e !== root.parentElement; e = e.parentElement) {
        const style = getComputedStyle(e), frame = e.getBoundingClientRect();
        if (["contents", "inline"].includes(style.display)) continue;
        if (scrolls(style, "X") || scrolls(style, "Y")) break;
        if (box.left < frame.left - slack || box.right > frame.right + slack) { found.push(`text wider than its box ${name(e)}`); break; }
        if ((clips(style) || e.matches("button, .button, .badge, .card, .choice, li")) && (box.top < frame.top - slack || box.bottom > frame.bottom + slack)) { found.push(`text cut off by ${name(e)}`); break; }
      }
    }
  }
  for (const e of root.querySelectorAll(CONTROLS)) {
    if (!visible(e)) continue;
    const box = e.getBoundingClientRect();
    add(box, e, "control");
    if ((box.left < -slack || box.right > innerWidth + slack) && !e.closest(".scroll")) found.push(`leaves the window: ${name(e)}`);
    if (e.matches("button, .button, input, select") && (e.scrollWidth > e.clientWidth + slack) && !e.matches("input, select")) found.push(`cut off inside: ${name(e)}`);
  }
  // A knob and its word lie on the switch, and a label holds its control: ancestors are no overlap.
  for (let i = 0; i < items.length; i += 1) for (let j = i + 1; j < items.length; j += 1) {
    const [a, b] = [items[i], items[j]];
    if (a.element === b.element || a.element.contains(b.element) || b.element.contains(a.element)) continue;
    const [width, height] = [Math.min(a.right, b.right) - Math.max(a.left, b.left), Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
    if (width > slack && height > slack + 1) found.push(`overlap of ${Math.round(width)} by ${Math.round(height)} px: ${name(a.element)} and ${name(b.element)}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page scrolls sideways: ${document.documentElement.scrollWidth} of ${innerWidth} px`);
  const frame = root.getBoundingClientRect();
  if (root !== document.body && (frame.left < 0 || frame.top < 0 || frame.right > innerWidth || frame.bottom > innerHeight)) found.push("the dialog is larger than the window");
  return { found: [...new Set(found)], measured: items.length };
}
