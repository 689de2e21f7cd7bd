// What the player shows: frames of the recording with boxes, or, without a recording, the pictures that were kept.

import { pictureAddress } from "./api.js";
import { Boxes } from "./boxes.js";
import { markOf } from "./colours.js";
import { byId, draw, keepList, setAttribute, setText } from "./dom.js";
import { Frames } from "./frames.js";
import { placeBox } from "./pictures.js";
import { frameTime } from "./words.js";

const WIDTHS = [480, 720, 1080];

export class FrameScreen {
  pictures = false;
  shownFrame = null;

  constructor(store, arrived) {
    this.store = store;
    this.canvas = byId("frame");
    this.overlay = byId("overlay");
    const wide = byId("screen").clientWidth * Math.min(2, devicePixelRatio || 1);
    const width = WIDTHS.find((one) => one >= wide) ?? WIDTHS.at(-1);
    this.frames = new Frames(store.id, Math.min(width, store.state.video.width || width), arrived);
    this.boxes = new Boxes(store.id, () => this.#drawBoxes());
  }

  newState() {
    const { width, height } = this.store.state.video;
    byId("player").style.setProperty("--shape", `${width || 4} / ${height || 3}`);
    setAttribute(this.overlay, "viewBox", `0 0 ${width || 4} ${height || 3}`);
    const items = [...this.store.items.keys()].join(" ");
    if (items !== this.items) this.boxes.clear();
    this.items = items;
    this.#drawBoxes();
  }

  spansOf(items) {
    return items.map((item) => [item.start_frame, Math.max(item.stop_frame, item.start_frame + 1)]);
  }

  everything(total) {
    return [[0, total]];
  }

  playheadOf(frame) {
    return frame;
  }

  show(frame, { exactly, total, asked = false }) {
    if (exactly && !asked) this.frames.seek(frame, total);
    const image = this.frames.get(frame);
    const failure = this.frames.failure(frame);
    byId("screen").classList.toggle("loading", !image && !failure);
    byId("screen-text").hidden = !failure;
    setText(byId("screen-text"), failure ?? "");
    if (!image) return;
    if (this.canvas.width !== image.naturalWidth || this.canvas.height !== image.naturalHeight) {
      this.canvas.width = image.naturalWidth;
      this.canvas.height = image.naturalHeight;
    }
    this.canvas.getContext("2d").drawImage(image, 0, 0);
    this.shownFrame = frame;
    setAttribute(this.canvas, "aria-label", `Frame ${frame} of the recording`);
    setAttribute(this.canvas, "data-frame", frame);
    this.#drawBoxes();
  }

  newest(from, to) {
    return this.frames.newest(from, to);
  }

  ahead(frame, pace, spans) {
    const span = spans.find(([start, stop]) => frame >= start && frame < stop);
    this.frames.ahead(frame, pace, span ? span[1] : frame + 1);
  }

  // The boxes belong to the frame that is on the screen, not to the one that is on its way.
  #drawBoxes() {
    if (this.shownFrame === null) return;
    const boxes = this.boxes.at(this.shownFrame);
    keepList(this.overlay, boxes.map((box, k) => ({ ...box, k })), (box) => box.k,
      () => draw("g", { class: "found" }, draw("rect", { class: "halo" }), draw("rect", { class: "box" })),
      (group, { box, item }) => {
        const owner = this.store.items.get(item);
        for (const rect of group.children) placeBox(rect, box);
        setAttribute(group, "data-item", item);
        setAttribute(group.lastChild, "stroke", markOf(owner?.polyp ?? null).colour);
        group.classList.toggle("current", item !== null && this.store.selected.has(item));
      });
  }

  describe(frame) {
    const { video } = this.store.state;
    return video.fps ? `${frameTime(video, frame, 2)}, frame ${frame}` : `frame ${frame}`;
  }
}

/** Positions are numbers of pictures here: a tracklet has a few of them, and no frames in between. */
export class PictureScreen {
  pictures = true;
  #shown = [];

  constructor(store) {
    this.store = store;
    this.image = byId("still");
    byId("frame").hidden = true;
    byId("overlay").style.display = "none";
    this.#say("Select a tracklet to see its pictures. The recording itself is not available.");
  }

  newState() {}

  spansOf(items) {
    this.#shown = items.flatMap((item) => item.pictures.map((picture, k) => ({ ...picture, item, k })));
    if (!this.#shown.length) this.#say("No pictures were kept of this tracklet, and the recording is not available.");
    return this.#shown.length ? [[0, this.#shown.length]] : [];
  }

  everything() {
    return [];
  }

  playheadOf(position) {
    return this.#shown[position]?.frame ?? position;
  }

  /** The position of the picture that was taken nearest to a frame; null without pictures. */
  nearest(frame) {
    const far = this.#shown.map((picture) => Math.abs(picture.frame - frame));
    return far.length ? far.indexOf(Math.min(...far)) : null;
  }

  show(position) {
    const picture = this.#shown[position];
    if (!picture) return;
    byId("screen-text").hidden = true;
    this.image.hidden = false;
    setAttribute(this.image, "src", pictureAddress(this.store.id, picture.item.id, picture.k));
    setAttribute(this.image, "alt", `Picture of ${picture.item.name}, frame ${picture.frame}`);
  }

  newest(from, to) {
    return to > from ? to : null;
  }

  ahead() {}

  describe(position) {
    const picture = this.#shown[position];
    if (!picture) return "";
    return `picture ${position + 1} of ${this.#shown.length}, ${frameTime(this.store.state.video, picture.frame, 1)}`;
  }

  #say(text) {
    this.image.hidden = true;
    byId("screen-text").hidden = false;
    setText(byId("screen-text"), text);
  }
}
