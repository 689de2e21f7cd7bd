// Which part of the recording the timeline shows. All positions are in frames, all widths in pixels.

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

/** The visible ticks: {frames: positions, step: frames between them, seconds: seconds between them or null}. */
export function ticks(scale, fps) {
  // Where single frames are wide enough to be pointed at, their numbers say more than fractions of seconds.
  const inTime = fps && scale.perFrame < 12;
  const spacing = inTime ? LEAST_BETWEEN_TIMES : LEAST_BETWEEN_FRAMES;
  const steps = inTime ? STEPS_SECONDS.map((seconds) => seconds * fps) : STEPS_FRAMES;
  const index = steps.findIndex((step) => step * scale.perFrame >= spacing);
  const step = steps[index === -1 ? steps.length - 1 : index];
  const frames = [];
  for (let k = Math.ceil(scale.from / step); k * step <= scale.to; k += 1) frames.push(k * step);
  return { frames, step, seconds: inTime ? step / fps : null };
}
