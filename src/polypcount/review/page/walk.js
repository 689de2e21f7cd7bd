// Going through the timeline by keyboard.

import { itemsOf } from "./state.js";

export class Walk {
  constructor(store, timeline) {
    this.store = store;
    this.timeline = timeline;
  }

  // The bar that has the focus, else the tracklet that is shown.
  #here() {
    const focused = document.activeElement?.closest?.("#timeline .bar")?.dataset.item;
    return this.store.items.get(focused ?? this.store.current) ?? null;
  }

  #go(item, { focusOnly = false } = {}) {
    if (!item) return;
    if (!focusOnly) this.store.selectItem(item.id);
    this.timeline.focus(item.id);
  }

  /** The previous or next tracklet of the lane; without one, the view moves. */
  across(direction, event, options) {
    const here = this.#here();
    if (!here) return this.pan(direction);
    const lane = itemsOf(this.store, here.polyp);
    this.#go(lane[lane.indexOf(here) + direction], options);
  }

  /** The tracklet of the next lane that is nearest in time. */
  lanes(direction) {
    const { polyps } = this.store.state;
    const here = this.#here();
    const lanes = [...polyps.map((polyp) => polyp.number), null];
    let at = here ? lanes.indexOf(here.polyp) : direction > 0 ? -1 : lanes.length;
    const time = here?.start_frame ?? this.timeline.scale.from;
    for (at += direction; at >= 0 && at < lanes.length; at += direction) {
      const items = itemsOf(this.store, lanes[at]);
      if (!items.length) continue;
      const far = (item) => Math.abs(item.start_frame - time);
      return this.#go(items.reduce((best, item) => (far(item) < far(best) ? item : best)));
    }
    return undefined;
  }

  pan(direction) {
    this.timeline.pan(direction * this.timeline.scale.width * 0.2);
  }

  toggle() {
    const here = this.#here();
    if (!here) return;
    this.store.toggleItem(here.id);
    this.timeline.focus(here.id);
  }
}
