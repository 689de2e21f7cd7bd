// The boxes of the detector on each frame, loaded in stretches.

import { loadBoxes } from "./api.js";

const STRETCH = 256;
const MOST_KEPT = 60;

export class Boxes {
  #stretches = new Map();

  constructor(id, arrived) {
    this.id = id;
    this.arrived = arrived;
  }

  /** [{box, item}] of a frame; empty while they are being loaded, then `arrived` is called. */
  at(frame) {
    const stretch = Math.floor(frame / STRETCH);
    const kept = this.#stretches.get(stretch);
    if (!kept) this.#load(stretch);
    return kept?.get?.(frame) ?? [];
  }

  /** The box of a tracklet in a frame; undefined without one, and while it is being loaded. */
  of(item, frame) {
    return this.at(frame).find((one) => one.item === item)?.box;
  }

  async #load(stretch) {
    this.#stretches.set(stretch, "loading");
    try {
      const byFrame = new Map();
      for (const [frame, left, top, right, bottom, item] of await loadBoxes(this.id, stretch * STRETCH, (stretch + 1) * STRETCH)) {
        if (!byFrame.has(frame)) byFrame.set(frame, []);
        byFrame.get(frame).push({ box: [left, top, right, bottom], item });
      }
      this.#stretches.set(stretch, byFrame);
    } catch {
      // Frames without boxes are still worth seeing; the next look at this stretch tries again.
      this.#stretches.delete(stretch);
      return;
    }
    for (const oldest of this.#stretches.keys()) {
      if (this.#stretches.size <= MOST_KEPT) break;
      this.#stretches.delete(oldest);
    }
    this.arrived();
  }

  /** Forgets all: a box added by hand, or taken back, changes what is on a frame. */
  clear() {
    this.#stretches.clear();
  }
}
