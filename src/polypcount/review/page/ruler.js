// Above the lanes: the whole recording in small, and the time axis.

import { markOf } from "./colours.js";
import { byId, draw, keepList, setAttribute, setText } from "./dom.js";
import { ticks } from "./scale.js";
import { frameTime, timeOr } from "./words.js";

const OVERVIEW_HEIGHT = 20;
const HALF_A_LETTER = 3.7;

/** The whole recording as one strip, with a window that shows which part the lanes show. */
export class Overview {
  constructor(scale, changed) {
    this.scale = scale;
    this.svg = byId("overview");
    this.seen = draw("g");
    this.window = draw("rect", { class: "window", y: 0.5, height: OVERVIEW_HEIGHT - 1, rx: 3 });
    this.playhead = draw("line", { class: "playhead", y1: 0, y2: OVERVIEW_HEIGHT });
    this.svg.append(this.seen, this.playhead, this.window);
    const move = (event) => {
      const middle = ((event.clientX - this.svg.getBoundingClientRect().left) / scale.width) * scale.total;
      const half = (scale.to - scale.from) / 2;
      scale.show(middle - half, middle + half);
      changed();
    };
    this.svg.addEventListener("pointerdown", (event) => {
      this.svg.setPointerCapture(event.pointerId);
      move(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) move(event);
    });
  }

  /** Draws every tracklet once; needed again only for a new state or another width. */
  drawItems(items) {
    const perFrame = this.scale.width / this.scale.total;
    const paths = new Map();
    for (const item of items) {
      const { colour } = markOf(item.polyp);
      const width = Math.max(1, (item.stop_frame - item.start_frame) * perFrame).toFixed(1);
      const path = `M${(item.start_frame * perFrame).toFixed(1)} 4h${width}v${OVERVIEW_HEIGHT - 8}h-${width}z`;
      paths.set(colour, (paths.get(colour) ?? "") + path);
    }
    this.seen.replaceChildren(...[...paths].map(([colour, d]) => draw("path", { d, fill: colour })));
  }

  drawWindow(playhead) {
    const { from, to, total, width } = this.scale;
    const left = (from / total) * width;
    setAttribute(this.window, "x", (left + 0.5).toFixed(1));
    setAttribute(this.window, "width", Math.max(6, ((to - from) / total) * width - 1).toFixed(1));
    const x = ((playhead / total) * width).toFixed(1);
    setAttribute(this.playhead, "x1", x);
    setAttribute(this.playhead, "x2", x);
  }
}

/** The time axis. Pointing at it moves the playhead. */
export class Ruler {
  constructor(scale, seek) {
    this.scale = scale;
    this.svg = byId("ruler");
    this.marks = draw("g");
    this.head = draw("path", { class: "playhead-grip", d: "M-5 0H5V9L0 15L-5 9Z" });
    this.svg.append(this.marks, this.head);
    const move = (event) => seek(scale.wholeFrame(event.clientX - this.svg.getBoundingClientRect().left));
    this.svg.addEventListener("pointerdown", (event) => {
      this.svg.setPointerCapture(event.pointerId);
      move(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (this.svg.hasPointerCapture(event.pointerId)) move(event);
    });
  }

  /** Draws the labels; returns where the ticks are, for the lanes. */
  draw(video, playhead) {
    const { frames, seconds } = ticks(this.scale, video);
    const digits = seconds !== null && seconds < 1 ? 1 : 0;
    const text = (frame) => (seconds === null ? timeOr(frame, null) : frameTime(video, frame, digits));
    keepList(this.marks, frames, (frame) => frame.toFixed(3),
      () => draw("g", {}, draw("line", { y1: 18, y2: 24 }), draw("text", { y: 14, "text-anchor": "middle" })),
      (mark, frame) => {
        const x = this.scale.x(frame);
        const words = text(frame);
        // The labels at both ends move inwards, so that they are never cut off.
        const half = words.length * HALF_A_LETTER;
        setAttribute(mark, "transform", `translate(${x.toFixed(1)} 0)`);
        setAttribute(mark.lastChild, "x", (Math.min(Math.max(x, half), this.scale.width - half) - x).toFixed(1));
        setText(mark.lastChild, words);
      });
    // At the middle of the frame where frames are wide, so that it is clear which one is meant.
    const x = this.scale.x(playhead + 0.5);
    setAttribute(this.head, "transform", `translate(${x.toFixed(1)} 8)`);
    setAttribute(this.head, "visibility", x < -6 || x > this.scale.width + 6 ? "hidden" : null);
    return frames;
  }
}
