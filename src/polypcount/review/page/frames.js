// Frames of the recording by exact index: several ahead, in a bounded cache.

import { loadFrame } from "./api.js";

const MOST_KEPT = 200;
// Of wider frames fewer are kept, so that they take no more memory.
const USUAL_WIDTH = 1080;
const AT_ONCE = 4;
const AHEAD = 8;

export class Frames {
  #kept = new Map();
  #loading = new Map();
  #failed = new Map();
  #wanted = [];
  #delay = 60;

  /** `arrived(index)` is called for each frame that was loaded, or could not be. */
  constructor(store, width, arrived) {
    Object.assign(this, { store, width, arrived });
    this.most = Math.round(MOST_KEPT * Math.min(1, (USUAL_WIDTH / width) ** 2));
  }

  /** The decoded picture of a frame, if it is here. */
  get(index) {
    const entry = this.#kept.get(index);
    if (!entry) return null;
    // What was used last is dropped last.
    this.#kept.delete(index);
    this.#kept.set(index, entry);
    return entry.image;
  }

  /** Why a frame could not be loaded; null if it was not tried or is here. */
  failure(index) {
    return this.#failed.get(index) ?? null;
  }

  /** The newest frame that is here, after `from` and not after `to`; null if there is none. */
  newest(from, to) {
    for (let index = to; index > from; index -= 1) if (this.#kept.has(index)) return index;
    return null;
  }

  /** Every how many frames one can be loaded in time when `perSecond` frames pass. */
  stepFor(perSecond) {
    return Math.max(1, Math.ceil((perSecond / 1000) * (this.#delay / AT_ONCE)));
  }

  /** Asks for the frames after `index` that playing will need next. */
  ahead(index, perSecond, stop) {
    const step = this.stepFor(perSecond);
    const start = (Math.floor(index / step) + 1) * step;
    const wanted = [];
    for (let next = start; next < stop && wanted.length < AHEAD; next += step) wanted.push(next);
    this.#wanted = wanted;
    this.#fill();
  }

  /** Asks for one frame before all others, then for its neighbours; what else was on its way is given up. */
  seek(index, stop) {
    const neighbours = [index, index + 1, index + 2, index - 1, index + 3, index + 4].filter((one) => one >= 0 && one < stop);
    for (const [one, control] of this.#loading) if (!neighbours.includes(one)) control.abort();
    this.#failed.delete(index);
    this.#wanted = neighbours;
    this.#fill();
  }

  #fill() {
    for (const index of this.#wanted) {
      if (this.#loading.size >= AT_ONCE) return;
      if (!this.#kept.has(index) && !this.#loading.has(index) && !this.#failed.has(index)) this.#load(index);
    }
  }

  async #load(index) {
    const control = new AbortController();
    this.#loading.set(index, control);
    const began = performance.now();
    let address = null;
    try {
      const blob = await loadFrame(this.store, index, this.width, control.signal);
      address = URL.createObjectURL(blob);
      const image = new Image();
      image.src = address;
      await image.decode();
      this.#delay = 0.8 * this.#delay + 0.2 * (performance.now() - began);
      this.#keep(index, { image, address });
    } catch (error) {
      if (address) URL.revokeObjectURL(address);
      if (!control.signal.aborted) this.#failed.set(index, error.message || "This frame could not be loaded.");
    } finally {
      this.#loading.delete(index);
    }
    if (control.signal.aborted) return this.#fill();
    this.arrived(index);
    this.#fill();
  }

  #keep(index, entry) {
    this.#kept.set(index, entry);
    while (this.#kept.size > this.most) {
      const [oldest, { address }] = this.#kept.entries().next().value;
      URL.revokeObjectURL(address);
      this.#kept.delete(oldest);
    }
  }

  /** Gives up everything, also what is just being decoded. */
  close() {
    this.#wanted = [];
    this.most = 0;
    for (const control of this.#loading.values()) control.abort();
    for (const { address } of this.#kept.values()) URL.revokeObjectURL(address);
    this.#kept.clear();
  }
}
