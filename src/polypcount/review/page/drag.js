// Pointing at the timeline: select, drag tracklets and polyps to another lane, pan, zoom with the wheel.

import { byId, setText } from "./dom.js";
import { itemsOf } from "./state.js";
import { amount } from "./words.js";

const THRESHOLD = 5;
const EDGE = 24;

export class Dragging {
  #drag = null;

  constructor(store, timeline, actions) {
    Object.assign(this, { store, timeline, actions, ghost: byId("ghost") });
    for (const svg of [timeline.lanesSvg, timeline.restSvg]) svg.addEventListener("pointerdown", (event) => this.#down(event, svg));
    byId("lane-labels").addEventListener("pointerdown", (event) => {
      const label = event.target.closest(".lane-label");
      if (label && event.button === 0) this.#begin(event, label, { polyp: Number(label.dataset.polyp) });
    });
    // A click that the keyboard makes on a label has no pointer before it.
    byId("lane-labels").addEventListener("click", (event) => {
      const label = event.target.closest(".lane-label");
      if (label && event.detail === 0) store.selectPolyp(Number(label.dataset.polyp));
    });
    timeline.view.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    timeline.lanesSvg.addEventListener("dblclick", () => timeline.fitSelection());
    window.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#drag?.moving) return;
      event.stopPropagation();
      this.#end();
    }, { capture: true });
  }

  #down(event, svg) {
    if (event.button !== 0) return;
    const cut = event.target.closest(".cut");
    if (cut) return this.actions.split(Number(cut.dataset.cut), Number(cut.dataset.frame));
    const bar = event.target.closest(".bar");
    this.#begin(event, svg, bar ? { item: bar.dataset.item } : { pan: true });
  }

  #begin(event, holder, what) {
    this.#end();
    const stop = new AbortController();
    this.#drag = { ...what, holder, stop, x: event.clientX, y: event.clientY, startX: event.clientX, startY: event.clientY, moving: false };
    holder.setPointerCapture(event.pointerId);
    const { signal } = stop;
    holder.addEventListener("pointermove", (moved) => this.#move(moved), { signal });
    holder.addEventListener("pointerup", (up) => this.#up(up), { signal });
    holder.addEventListener("pointercancel", () => this.#end(), { signal });
  }

  #move(event) {
    const drag = this.#drag;
    if (!drag.moving) {
      if (Math.hypot(event.clientX - drag.startX, event.clientY - drag.startY) < THRESHOLD) return;
      drag.moving = true;
      if (drag.item && !this.store.selected.has(drag.item)) this.store.selectItem(drag.item);
      document.body.classList.add(drag.pan ? "panning" : "dragging");
      if (!drag.pan) this.#scrollAtEdges();
    }
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    Object.assign(drag, { x: event.clientX, y: event.clientY });
    if (drag.pan) {
      this.timeline.pan(-dx);
      this.timeline.scroller.scrollTop -= dy;
    } else this.#showTarget();
  }

  #showTarget() {
    const drag = this.#drag;
    drag.target = this.#targetAt(drag.x, drag.y);
    for (const node of document.querySelectorAll(".drop")) node.classList.remove("drop");
    if (drag.target) for (const node of document.querySelectorAll(`[data-drop="${drag.target}"]`)) node.classList.add("drop");
    this.ghost.hidden = false;
    this.ghost.style.transform = `translate(${drag.x + 14}px, ${drag.y + 10}px)`;
    setText(this.ghost, this.#ghostText(drag));
  }

  #ghostText({ polyp, target }) {
    const what = polyp ? `Polyp ${polyp}` : amount(this.store.selected.size, "tracklet");
    if (!target) return what;
    if (target === "none") return `${what}: not a polyp`;
    if (target === "new") return polyp ? what : `${what}: a new polyp`;
    if (!polyp) return `${what} to polyp ${target}`;
    return String(polyp) === target ? what : `Merge ${what.toLowerCase()} into polyp ${target}`;
  }

  // Bars cover their lane, so within the lanes the height decides.
  #targetAt(x, y) {
    const node = document.elementFromPoint(x, y);
    if (!node) return null;
    if (this.timeline.lanesSvg.contains(node)) {
      const height = y - this.timeline.lanesSvg.getBoundingClientRect().top;
      const lane = this.timeline.layout.lanes.find((one) => height >= one.top && height < one.top + one.height);
      return lane ? String(lane.number) : null;
    }
    if (this.timeline.restSvg.contains(node)) return "none";
    return node.closest("[data-drop]")?.dataset.drop ?? null;
  }

  #scrollAtEdges() {
    const drag = this.#drag;
    if (!drag?.moving) return;
    const { top, bottom } = this.timeline.scroller.getBoundingClientRect();
    if (drag.y > top - EDGE && drag.y < top + EDGE) this.timeline.scroller.scrollTop -= 6;
    else if (drag.y > bottom - EDGE && drag.y < bottom + 4) this.timeline.scroller.scrollTop += 6;
    requestAnimationFrame(() => this.#scrollAtEdges());
  }

  #up(event) {
    const drag = this.#drag;
    this.#end();
    if (!drag.moving) this.#click(drag, event);
    else if (drag.target && drag.polyp) this.#dropPolyp(drag.polyp, drag.target);
    else if (drag.target) this.actions.moveTo(this.store.selected, drag.target);
  }

  #dropPolyp(polyp, target) {
    if (target === "none") this.actions.moveTo(this.store.polyps.get(polyp).items, "none");
    else if (target !== "new") this.actions.merge(Number(target), polyp);
  }

  #click({ item, polyp, pan }, event) {
    if (pan) return this.store.clearSelection();
    if (polyp) return this.store.selectPolyp(polyp);
    if (event.ctrlKey || event.metaKey) this.store.toggleItem(item);
    else if (event.shiftKey) this.#selectUpTo(item);
    else this.store.selectItem(item);
    this.timeline.focus(item);
  }

  // From the tracklet that is shown to this one, within the lane; across lanes, this one is added.
  #selectUpTo(id) {
    const { items, current, selected } = this.store;
    const lane = itemsOf(this.store, items.get(id).polyp).map((item) => item.id);
    const [first, last] = [lane.indexOf(current), lane.indexOf(id)].sort((a, b) => a - b);
    const added = first === -1 ? [id] : lane.slice(first, last + 1);
    this.store.selectItems([...selected, ...added], id);
  }

  #end() {
    this.#drag?.stop.abort();
    this.#drag = null;
    this.ghost.hidden = true;
    document.body.classList.remove("dragging", "panning");
    for (const node of document.querySelectorAll(".drop")) node.classList.remove("drop");
  }

  // The wheel zooms where time is drawn; over the labels it scrolls the lanes; sideways, or with Shift, it pans.
  #wheel(event) {
    if (event.target.closest("#lane-labels")) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) return this.timeline.pan(sideways * unit);
    const x = event.clientX - this.timeline.lanesSvg.getBoundingClientRect().left;
    const steps = Math.max(-1, Math.min(1, (-event.deltaY * unit) / 150));
    this.timeline.zoom(steps, Math.max(0, Math.min(this.timeline.scale.width, x)));
  }
}
