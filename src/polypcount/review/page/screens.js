// What the player shows: frames of the recording with boxes, or, without a recording, the pictures that were kept.

import { pictureAddress } from "./api.js";
import { Boxes } from "./boxes.js";
import { surroundings } from "./closeup.js";
import { markOf } from "./colours.js";
import { byId, draw, keepList, setAttribute, setText } from "./dom.js";
import { Frames } from "./frames.js";
import { placeBox } from "./pictures.js";
import { hasTimes } from "./times.js";
import { frameTime, timeOr } from "./words.js";

const WIDTHS = [480, 720, 1080];
const WIDEST = 1920;

export class FrameScreen {
  pictures = false;
  shownFrame = null;
  #closeUp = false;

  constructor(store, arrived) {
    Object.assign(this, { store, arrived });
    this.canvas = byId("frame");
    this.overlay = byId("overlay");
    const wide = byId("screen").clientWidth * Math.min(2, devicePixelRatio || 1);
    this.width = WIDTHS.find((one) => one >= wide) ?? WIDTHS.at(-1);
    this.frames = this.#framesOf(this.width);
    // In a close-up, the boxes also say which part of the frame is shown.
    this.boxes = new Boxes(store.id, () => (this.#closeUp ? arrived() : this.#drawBoxes()));
  }

  #framesOf(width) {
    return new Frames(this.store, Math.min(width, this.store.state.video.width || width), this.arrived);
  }

  /** Shows the surroundings of the selected tracklet only, or the whole frame again. What is here is shown at once, finer frames follow. */
  setCloseUp(on) {
    this.#closeUp = on;
    this.#paint(this.shownFrame);
    const frames = this.#framesOf(on ? WIDEST : this.width);
    if (frames.width === this.frames.width) return;
    this.frames.close();
    this.frames = frames;
  }

  /** Width and height of the frames; where they are not known, only their shape is guessed. */
  get size() {
    const { width, height } = this.store.state.video;
    return width && height ? { width, height } : { width: 4, height: 3 };
  }

  // Of several selected tracklets, the one that is shown comes first, then whichever is nearest in time.
  #viewOf(frame) {
    const { state, items, selected, current } = this.store;
    const whole = [0, 0, this.size.width, this.size.height];
    if (!this.#closeUp || !selected.size || !state.video.width) return whole;
    const far = ({ start_frame: start, stop_frame: stop }) => Math.max(0, start - frame, frame - stop + 1);
    const followed = [current, ...selected].map((id) => items.get(id)).filter(Boolean);
    const nearest = followed.reduce((best, item) => (far(item) < far(best) ? item : best));
    return surroundings(this.boxes, nearest, frame, this.size) ?? this.view ?? whole;
  }

  newState() {
    byId("player").style.setProperty("--shape", `${this.size.width} / ${this.size.height}`);
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
    const isHere = this.#paint(frame);
    const failure = this.frames.failure(frame);
    byId("screen").classList.toggle("loading", !isHere && !failure);
    byId("screen-text").hidden = !failure;
    setText(byId("screen-text"), failure ?? "");
  }

  // The frame and its boxes change together; false if the frame is not here yet.
  #paint(frame) {
    const image = this.frames.get(frame);
    if (!image) return false;
    if (this.canvas.width !== image.naturalWidth || this.canvas.height !== image.naturalHeight) {
      this.canvas.width = image.naturalWidth;
      this.canvas.height = image.naturalHeight;
    }
    this.shownFrame = frame;
    this.view = this.#viewOf(frame);
    const [left, top, width, height] = this.view;
    const { width: canvasWidth, height: canvasHeight } = this.canvas;
    const [across, down] = [canvasWidth / this.size.width, canvasHeight / this.size.height];
    const drawing = this.canvas.getContext("2d");
    drawing.imageSmoothingQuality = "high";
    drawing.drawImage(image, left * across, top * down, width * across, height * down, 0, 0, canvasWidth, canvasHeight);
    setAttribute(this.overlay, "viewBox", this.view.join(" "));
    setAttribute(this.canvas, "aria-label", `Frame ${frame} of the recording${this.#closeUp ? ", close-up" : ""}`);
    setAttribute(this.canvas, "data-frame", frame);
    this.#drawBoxes();
    return true;
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
    return hasTimes(video) ? `${frameTime(video, frame, 2)}, frame ${frame}` : `frame ${frame}`;
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
    setAttribute(this.image, "src", pictureAddress(this.store, picture.item.id, picture.k));
    setAttribute(this.image, "alt", `Picture of ${picture.item.name}, frame ${picture.frame}`);
  }

  newest(from, to) {
    return to > from ? to : null;
  }

  ahead() {}

  describe(position) {
    const picture = this.#shown[position];
    if (!picture) return "";
    return `picture ${position + 1} of ${this.#shown.length}, ${timeOr(picture.frame, picture.seconds, 1)}`;
  }

  #say(text) {
    this.image.hidden = true;
    byId("screen-text").hidden = false;
    setText(byId("screen-text"), text);
  }
}
