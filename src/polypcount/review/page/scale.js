// Which part of the recording the timeline shows. All positions are in frames, all widths in pixels.

import { frameAt, hasTimes, secondsOf } from "./times.js";

const WIDEST_FRAME = 48;
const LEAST_BETWEEN_TIMES = 96;
const LEAST_BETWEEN_FRAMES = 132;
const STEPS_SECONDS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
const STEPS_FRAMES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];

export class Scale {
  constructor() {
    this.total = 1;
    this.from = 0;
    this.to = 1;
    this.width = 1;
  }

  setTotal(total) {
    this.total = Math.max(1, total);
    this.whole();
  }

  /** Width of one frame. */
  get perFrame() {
    return this.width / (this.to - this.from);
  }

  x(frame) {
    return (frame - this.from) * this.perFrame;
  }

  frame(x) {
    return this.from + x / this.perFrame;
  }

  /** The frame that lies at x, as a whole number within the recording. */
  wholeFrame(x) {
    return Math.min(this.total - 1, Math.max(0, Math.floor(this.frame(x))));
  }

  whole() {
    this.from = 0;
    this.to = this.total;
  }

  show(from, to) {
    const least = Math.min(this.total, this.width / WIDEST_FRAME);
    const span = Math.min(this.total, Math.max(least, to - from));
    const start = Math.min(this.total - span, Math.max(0, (from + to - span) / 2));
    this.from = start;
    this.to = start + span;
  }

  /** Zooms by `factor` (above 1: closer) around the frame that lies at x. */
  zoom(factor, x = this.width / 2) {
    const fixed = this.frame(x);
    const span = (this.to - this.from) / factor;
    const least = Math.min(this.total, this.width / WIDEST_FRAME);
    const bounded = Math.min(this.total, Math.max(least, span));
    const from = fixed - (x / this.width) * bounded;
    this.show(from, from + bounded);
  }

  pan(pixels) {
    const frames = pixels / this.perFrame;
    this.show(this.from + frames, this.to + frames);
  }

  /** Moves just as far as needed to make a span visible; zooms out only if it does not fit. */
  reveal(start, stop) {
    const span = this.to - this.from;
    if (start >= this.from && stop <= this.to) return false;
    if (stop - start > span) this.show(start, stop);
    else {
      const middle = (start + stop) / 2;
      this.show(middle - span / 2, middle + span / 2);
    }
    return true;
  }

  /** Fills the view with a span, with some room at both ends. */
  fit(start, stop) {
    const room = Math.max(5, (stop - start) * 0.15);
    this.show(start - room, stop + room);
  }
}

/** The visible ticks: {frames: positions, seconds: seconds between them or null}. */
export function ticks(scale, video) {
  // Where single frames are wide enough to be pointed at, their numbers say more than fractions of seconds.
  const inTime = hasTimes(video) && scale.perFrame < 12;
  const [first, last] = inTime ? [secondsOf(video, scale.from), secondsOf(video, scale.to)] : [scale.from, scale.to];
  const [steps, spacing] = inTime ? [STEPS_SECONDS, LEAST_BETWEEN_TIMES] : [STEPS_FRAMES, LEAST_BETWEEN_FRAMES];
  const step = steps.find((one) => one * scale.width >= spacing * (last - first)) ?? steps.at(-1);
  const frames = [];
  for (let k = Math.ceil(first / step); k * step <= last; k += 1) {
    const frame = inTime ? frameAt(video, k * step) : k * step;
    // Where the frame rate varies, ticks can lie close together, and labels would cover each other.
    if (!frames.length || (frame - frames.at(-1)) * scale.perFrame >= spacing / 2) frames.push(frame);
  }
  return { frames, seconds: inTime ? step : null };
}
