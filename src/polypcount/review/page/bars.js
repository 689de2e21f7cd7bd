// The bars of the timeline: only those that are visible are in the page.

import { pictureAddress } from "./api.js";
import { markOf, paintShape } from "./colours.js";
import { draw, setAttribute, setText } from "./dom.js";
import { itemLabel } from "./words.js";

const THINNEST = 4;
// Bars that reach far out of the view are cut there: browsers draw very wide shapes badly.
const OVERHANG = 20;

export class Bars {
  #shown = new Map();

  constructor(svg, store) {
    this.store = store;
    this.links = draw("g", { class: "links", "aria-hidden": "true" });
    this.layer = draw("g", { class: "bars" });
    svg.append(this.links, this.layer);
  }

  /** The element of a tracklet, if it is in the page. */
  element(id) {
    return this.#shown.get(id) ?? null;
  }

  /**
   * Draws what lies between `top` and `bottom`.
   * `rows`: [{number, top, height, items}]; `tabStop`: the tracklet that the tab key reaches;
   * `still`: whether the view is at rest, so that new pictures may be asked for.
   */
  draw(rows, { scale, top, bottom, tabStop, still }) {
    const focused = this.layer.contains(document.activeElement) ? document.activeElement.dataset.item : null;
    const visible = new Set();
    for (const row of rows) {
      const inView = row.top < bottom && row.top + row.height > top;
      let covered = -Infinity;
      for (const item of row.items) {
        const kept = item.id === focused || item.id === tabStop || this.store.selected.has(item.id);
        const seen = inView && item.stop_frame >= scale.from && item.start_frame <= scale.to;
        if (!seen && !kept) continue;
        const [left, right] = [scale.x(item.start_frame), scale.x(item.stop_frame)];
        // Far out, thousands of short tracklets lie on each other. One that begins behind another is left out.
        if (!kept && right - left < THINNEST && left < covered) continue;
        covered = Math.max(covered, right, left + THINNEST);
        visible.add(item.id);
        this.#drawBar(item, row, scale, tabStop, still);
      }
    }
    for (const [id, node] of this.#shown) {
      if (visible.has(id)) continue;
      node.remove();
      this.#shown.delete(id);
    }
  }

  #drawBar(item, row, scale, tabStop, still) {
    let bar = this.#shown.get(item.id);
    if (!bar) {
      bar = newBar(item);
      this.#shown.set(item.id, bar);
      this.layer.append(bar);
    }
    const left = Math.max(-OVERHANG, scale.x(item.start_frame));
    const right = Math.min(scale.width + OVERHANG, Math.max(scale.x(item.stop_frame), scale.x(item.start_frame) + THINNEST));
    const box = { x: left.toFixed(1), y: row.top + 4, width: Math.max(THINNEST, right - left).toFixed(1), height: row.height - 8 };
    for (const shape of bar.shapes) for (const name in box) setAttribute(shape, name, box[name]);
    // Each state has new items, so what depends on the state alone is drawn once for each.
    if (bar.item !== item) this.#paintBar(bar, item);
    setAttribute(bar, "aria-selected", String(this.store.selected.has(item.id)));
    bar.classList.toggle("current", item.id === this.store.current);
    setAttribute(bar, "tabindex", item.id === tabStop ? 0 : -1);
    this.#drawPictures(bar, item, row, scale, still);
  }

  #paintBar(bar, item) {
    const { texture } = markOf(item.polyp);
    const label = itemLabel(this.store.state, item);
    bar.item = item;
    paintShape(bar.body, item.polyp);
    setAttribute(bar.texture, "fill", texture ? `url(#${texture})` : "none");
    setAttribute(bar, "data-polyp", item.polyp ?? "none");
    setAttribute(bar, "data-kind", item.kind);
    setAttribute(bar, "aria-label", label);
    setText(bar.tip, label);
  }

  // Each picture lies where it was taken; the clearest come first, and those that would overlap are left out.
  #drawPictures(bar, item, row, scale, still) {
    const size = row.height - 12;
    const left = Math.max(0, scale.x(item.start_frame)) + 2;
    const right = Math.min(scale.width, scale.x(item.stop_frame)) - 2;
    const places = [];
    if (size >= 16 && right - left >= size) {
      const order = item.pictures.map((picture, k) => ({ ...picture, k })).sort((a, b) => b.quality - a.quality);
      for (const picture of order) {
        const middle = scale.x(picture.frame);
        if (middle < left - size || middle > right + size) continue;
        const x = Math.min(right - size, Math.max(left, middle - size / 2));
        if (places.every((place) => Math.abs(place.x - x) >= size + 2)) places.push({ k: picture.k, x });
      }
    }
    if (!places.length && !bar.pictures.firstChild) return;
    const wanted = new Map(places.map((place) => [String(place.k), place]));
    for (const image of [...bar.pictures.children]) if (!wanted.has(image.dataset.k)) image.remove();
    const present = new Map([...bar.pictures.children].map((image) => [image.dataset.k, image]));
    for (const [k, place] of wanted) {
      let image = present.get(k);
      if (!image) {
        if (!still) continue;
        image = draw("image", { "data-k": k, preserveAspectRatio: "xMidYMid slice", href: pictureAddress(this.store, item.id, k) });
        bar.pictures.append(image);
      }
      for (const [name, value] of [["x", place.x.toFixed(1)], ["y", row.top + 6], ["width", size], ["height", size]]) {
        setAttribute(image, name, value);
      }
    }
  }

  /** Draws the line through the tracklets of each lane, and where the lane of `chosen` can be split. */
  drawLinks(lanes, { scale, top, bottom, chosen }) {
    const lines = [];
    const cuts = [];
    for (const lane of lanes) {
      if (lane.top >= bottom || lane.top + lane.height <= top) continue;
      const middle = lane.top + lane.height / 2;
      for (let k = 1; k < lane.items.length; k += 1) {
        const [from, to] = [lane.items[k - 1].stop_frame, lane.items[k].start_frame];
        if (to < scale.from || from > scale.to) continue;
        const [left, right] = [Math.max(-OVERHANG, scale.x(from)), Math.min(scale.width + OVERHANG, scale.x(to))];
        if (right > left) lines.push(`M${left.toFixed(1)} ${middle}H${right.toFixed(1)}`);
        const [seenLeft, seenRight] = [Math.max(0, left), Math.min(scale.width, right)];
        if (lane.number === chosen && seenRight - seenLeft >= 26) cuts.push([(seenLeft + seenRight) / 2, middle, lane.number, to]);
      }
    }
    this.line ??= this.links.appendChild(draw("path", { class: "link" }));
    setAttribute(this.line, "d", lines.join(""));
    const buttons = [...this.links.querySelectorAll(".cut")];
    cuts.forEach((cut, k) => drawCut(buttons[k] ?? this.links.appendChild(newCut()), cut));
    for (const spare of buttons.slice(cuts.length)) spare.remove();
  }
}

function newBar(item) {
  const body = draw("rect", { class: "body", rx: 3 });
  const texture = draw("rect", { class: "texture", rx: 3 });
  const edge = draw("rect", { class: "edge", rx: 3 });
  const pictures = draw("g", { class: "pictures" });
  const tip = draw("title");
  const bar = draw("g", { class: "bar", role: "option", "data-item": item.id }, tip, body, texture, pictures, edge);
  return Object.assign(bar, { body, texture, pictures, tip, shapes: [body, texture, edge] });
}

// The same can be done by keyboard from the polyp's card.
function newCut() {
  return draw("g", { class: "cut" },
    draw("title"),
    draw("circle", { r: 9 }),
    draw("path", { d: "M-4 -4L4 4M-4 4L4 -4" }));
}

function drawCut(node, [x, y, number, frame]) {
  setAttribute(node, "transform", `translate(${x.toFixed(1)} ${y})`);
  setAttribute(node, "data-cut", number);
  setAttribute(node, "data-frame", frame);
  setText(node.firstChild, `Split polyp ${number} here: what comes later becomes a new polyp`);
}
