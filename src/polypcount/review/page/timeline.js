// The procedure as a timeline: one lane for each polyp, a bar for each tracklet.

import { Bars } from "./bars.js";
import { badge, paintBadge } from "./colours.js";
import { byId, draw, keepList, make, setAttribute, setText } from "./dom.js";
import { emptySpans, layLanes, totalFrames } from "./lanes.js";
import { Overview, Ruler } from "./ruler.js";
import { Scale } from "./scale.js";
import { amount, polypTitle } from "./words.js";

// Pictures are asked for once the view has been at rest for this long.
const REST_MS = 140;
const ZOOM_STEP = 1.6;

export class Timeline {
  #drawn = false;
  #restTimer = null;
  #still = true;
  #total = null;

  constructor(store, seek) {
    this.store = store;
    this.scale = new Scale();
    this.scroller = byId("lane-scroll");
    this.view = byId("timeline-view");
    this.lanesSvg = byId("lanes");
    this.restSvg = byId("rest");
    this.overview = new Overview(this.scale, () => this.moved());
    this.ruler = new Ruler(this.scale, seek);
    this.laneBars = this.#prepare(this.lanesSvg);
    this.restBars = this.#prepare(this.restSvg);
    this.scroller.addEventListener("scroll", () => this.moved());
    new ResizeObserver(() => this.#resized()).observe(this.scroller);
    new ResizeObserver(() => this.#resized()).observe(this.lanesSvg);
    store.on("state", () => this.#newState());
    store.on("selection", () => this.#selected());
    store.on("playhead", () => this.redraw());
  }

  #prepare(svg) {
    const back = draw("g", { class: "back", "aria-hidden": "true" });
    const [lanes, empty, grid] = [draw("g"), draw("g", { class: "empty" }), draw("path", { class: "grid" })];
    back.append(lanes, empty, grid);
    svg.append(back);
    const bars = new Bars(svg, this.store);
    const playhead = draw("line", { class: "playhead", y1: 0, y2: "100%", "aria-hidden": "true" });
    svg.append(playhead);
    return Object.assign(bars, { lanes, empty, grid, playhead });
  }

  #newState() {
    const { state } = this.store;
    const total = totalFrames(state);
    if (total !== this.#total) {
      this.#total = total;
      this.scale.setTotal(total);
    }
    this.layout = layLanes(state);
    this.emptySpans = emptySpans(state, total);
    setAttribute(this.lanesSvg, "height", this.layout.height);
    setAttribute(this.restSvg, "height", this.layout.rest.height);
    this.#drawLabels();
    this.overview.drawItems(state.items);
    this.redraw();
  }

  #drawLabels() {
    const { state } = this.store;
    byId("lane-labels").style.gridAutoRows = `${this.layout.lanes[0]?.height ?? 30}px`;
    keepList(byId("lane-labels"), state.polyps, (polyp) => polyp.number,
      (polyp) => make("button", { type: "button", class: "lane-label", "data-polyp": polyp.number, "data-drop": polyp.number },
        badge(polyp.number), make("span", { class: "lane-name" }), make("span", { class: "lane-size" })),
      (label, polyp) => {
        paintBadge(label.children[0], polyp.number);
        setText(label.children[1], polyp.name || `Polyp ${polyp.number}`);
        setText(label.children[2], polyp.items.length);
        setAttribute(label, "title", `${polypTitle(state, polyp.number)}: ${amount(polyp.items.length, "tracklet")}. Drag onto another polyp to merge.`);
        setAttribute(label, "aria-label", `${polypTitle(state, polyp.number)}, ${amount(polyp.items.length, "tracklet")}`);
        setAttribute(label, "aria-pressed", String(this.store.polyp === polyp.number));
      });
    setText(byId("rest-size"), state.items.filter((item) => item.polyp === null).length);
  }

  #selected() {
    for (const label of byId("lane-labels").children) {
      setAttribute(label, "aria-pressed", String(this.store.polyp) === label.dataset.polyp);
    }
    this.reveal(this.store.current);
    this.redraw();
  }

  /** Scrolls and pans just as far as needed to see a tracklet. */
  reveal(id) {
    const item = this.store.items.get(id);
    if (!item) return;
    const lane = this.layout.lanes.find((one) => one.number === item.polyp);
    if (lane) {
      const { scrollTop, clientHeight } = this.scroller;
      if (lane.top < scrollTop) this.scroller.scrollTop = lane.top;
      else if (lane.top + lane.height > scrollTop + clientHeight) this.scroller.scrollTop = lane.top + lane.height - clientHeight;
    }
    if (item.stop_frame < this.scale.from || item.start_frame > this.scale.to) {
      this.scale.reveal(item.start_frame, item.stop_frame);
      this.moved();
    }
  }

  /** Puts the keyboard focus on the bar of a tracklet. */
  focus(id) {
    this.reveal(id);
    this.#drawNow();
    (this.laneBars.element(id) ?? this.restBars.element(id))?.focus({ preventScroll: true });
  }

  zoom(steps, x) {
    this.scale.zoom(ZOOM_STEP ** steps, x);
    this.moved();
  }

  pan(pixels) {
    this.scale.pan(pixels);
    this.moved();
  }

  whole() {
    this.scale.whole();
    this.moved();
  }

  /** Fills the view with what is selected. */
  fitSelection() {
    const items = [...this.store.selected].map((id) => this.store.items.get(id));
    if (!items.length) return this.whole();
    this.scale.fit(Math.min(...items.map((item) => item.start_frame)), Math.max(...items.map((item) => item.stop_frame)));
    this.moved();
  }

  #resized() {
    const width = this.lanesSvg.clientWidth;
    if (!width) return;
    if (width !== this.scale.width) {
      this.scale.width = width;
      if (this.store.state) this.overview.drawItems(this.store.state.items);
    }
    this.redraw();
  }

  /** The view has changed: redraw, and ask for pictures when it is at rest. */
  moved() {
    this.#still = false;
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => {
      this.#still = true;
      this.redraw();
    }, REST_MS);
    this.redraw();
  }

  /** Draws with the next picture of the screen, however often it is called before. */
  redraw() {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      this.#drawNow();
    });
  }

  #drawNow() {
    const { state, playhead, current } = this.store;
    if (!state || !this.layout) return;
    const { scale, layout } = this;
    const tabStop = this.store.items.has(current) ? current : (layout.lanes[0]?.items[0] ?? layout.rest.rows[0]?.[0])?.id;
    const frames = this.ruler.draw(state.video, playhead);
    const focused = document.activeElement?.closest("#timeline .bar")?.dataset.item;
    const top = this.scroller.scrollTop;
    const area = { scale, top, bottom: top + this.scroller.clientHeight, tabStop, still: this.#still, chosen: this.store.meantPolyp() };
    this.#drawBack(this.laneBars, layout.lanes, layout.height, frames);
    this.laneBars.draw(layout.lanes, area);
    this.laneBars.drawLinks(layout.lanes, area);
    const { rows, height, row } = layout.rest;
    const lines = rows.map((items, k) => ({ number: null, top: 3 + k * row, height: row, items }));
    this.#drawBack(this.restBars, [{ number: "none", top: 0, height }], height, frames);
    this.restBars.draw(lines, { ...area, top: 0, bottom: height });
    this.overview.drawWindow(playhead);
    // A tracklet that went to "Not counted", or came from there, has a new element; the focus goes with it.
    if (focused && document.activeElement?.dataset.item !== focused) {
      (this.laneBars.element(focused) ?? this.restBars.element(focused))?.focus({ preventScroll: true });
    }
  }

  #drawBack(bars, lanes, height, frames) {
    const { scale } = this;
    keepList(bars.lanes, lanes, (lane) => lane.number,
      (lane) => draw("rect", { class: "lane", x: 0, width: "100%", "data-polyp": lane.number, "data-drop": lane.number }),
      (rect, lane) => {
        setAttribute(rect, "y", lane.top + 1);
        setAttribute(rect, "height", lane.height - 2);
        rect.classList.toggle("chosen", lane.number === this.store.meantPolyp());
      });
    const wide = this.emptySpans.filter(([start, stop]) => stop > scale.from && start < scale.to && (stop - start) * scale.perFrame >= 4);
    keepList(bars.empty, wide, ([start]) => start,
      () => draw("rect", { y: 0, height: "100%", fill: "url(#nothing-seen)" }),
      (rect, [start, stop]) => {
        const left = Math.max(0, scale.x(start));
        setAttribute(rect, "x", left.toFixed(1));
        setAttribute(rect, "width", Math.max(0, Math.min(scale.width, scale.x(stop)) - left).toFixed(1));
      });
    setAttribute(bars.grid, "d", frames.map((frame) => `M${scale.x(frame).toFixed(1)} 0V${height}`).join(""));
    const x = scale.x(this.store.playhead + 0.5).toFixed(1);
    setAttribute(bars.playhead, "x1", x);
    setAttribute(bars.playhead, "x2", x);
  }
}
