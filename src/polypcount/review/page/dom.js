// Making and updating elements. Text always goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** An HTML element: `make("button", {id: "undo", text: "Undo", on: {click: undo}}, child, ...)`. */
export function make(tag, options = {}, ...children) {
  return fill(document.createElement(tag), options, children);
}

/** An SVG element, with the same options as `make`. */
export function draw(tag, options = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), options, children);
}

function fill(node, options, children) {
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [event, react] of Object.entries(value)) node.addEventListener(event, react);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Sets the text only where it differs, so that screen readers and selections are not disturbed. */
export function setText(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

/** Sets an attribute only where it differs; null removes it. */
export function setAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

/**
 * Makes the children of `parent` follow `things`. Elements that stay are updated in place, so focus, text that
 * is being typed, and scroll positions survive a new state.
 */
export function keepList(parent, things, keyOf, create, update = () => {}) {
  const focused = document.activeElement;
  const keys = new Set(things.map((thing) => String(keyOf(thing))));
  const kept = new Map();
  for (const child of [...parent.children]) {
    if (keys.has(child.dataset.key)) kept.set(child.dataset.key, child);
    else child.remove();
  }
  let place = parent.firstElementChild;
  for (const thing of things) {
    const key = String(keyOf(thing));
    let node = kept.get(key);
    if (!node) {
      node = create(thing);
      node.dataset.key = key;
    }
    update(node, thing);
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  if (focused && focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** Whether the person asked the system for less motion. */
export const lessMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
