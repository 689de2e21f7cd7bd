// Pictures of tracklets, with the box around the polyp.

import { pictureAddress } from "./api.js";
import { markOf } from "./colours.js";
import { draw, make, setAttribute } from "./dom.js";

/** The clearest picture of a tracklet, as a whole frame if there is one; null if no picture was kept. */
export function bestPicture(store, id) {
  const item = store.items.get(id);
  if (!item) return null;
  if (item.whole) return { ...item.whole, item: id, address: pictureAddress(store, id, "whole") };
  return clearestCrop(store, id);
}

/** The clearest crop of a tracklet. */
export function clearestCrop(store, id) {
  const item = store.items.get(id);
  if (!item?.pictures.length) return null;
  const k = item.pictures.reduce((best, picture, index) => (picture.quality > item.pictures[best].quality ? index : best), 0);
  return { ...item.pictures[k], item: id, address: pictureAddress(store, id, k) };
}

/** At most `most` crops of several tracklets, spread evenly over time. */
export function picturesOverTime(store, ids, most) {
  const all = ids.flatMap((id) => (store.items.get(id)?.pictures ?? [])
    .map((picture, k) => ({ ...picture, item: id, address: pictureAddress(store, id, k) })));
  all.sort((a, b) => a.frame - b.frame);
  if (all.length <= most) return all;
  return Array.from({ length: most }, (_, k) => all[Math.round((k * (all.length - 1)) / (most - 1))]);
}

/** An empty frame for a picture; `showPicture` fills it. */
export function pictureFrame(className = "picture") {
  const image = make("img", { alt: "", loading: "lazy", decoding: "async", draggable: "false" });
  const [halo, box] = [draw("rect", { class: "halo" }), draw("rect", { class: "box" })];
  const overlay = draw("svg", { preserveAspectRatio: "none", "aria-hidden": "true", focusable: "false" }, halo, box);
  const none = make("span", { class: "no-picture", text: "No picture was kept" });
  return Object.assign(make("div", { class: className }, image, overlay, none), { image, overlay, rects: [halo, box], none });
}

/** Shows a picture from `bestPicture` and the like, with its box in the colour of the polyp. */
export function showPicture(frame, picture, polyp, text, { box: withBox = true } = {}) {
  frame.none.hidden = picture !== null;
  frame.image.hidden = picture === null;
  const box = withBox ? picture?.box : null;
  frame.overlay.style.display = box ? "" : "none";
  if (!picture) return frame;
  setAttribute(frame.image, "src", picture.address);
  setAttribute(frame.image, "alt", text);
  setAttribute(frame.image, "width", picture.width);
  setAttribute(frame.image, "height", picture.height);
  if (!box) return frame;
  setAttribute(frame.overlay, "viewBox", `0 0 ${picture.width} ${picture.height}`);
  placeBox(frame.rects[0], box);
  placeBox(frame.rects[1], box);
  setAttribute(frame.rects[1], "stroke", markOf(polyp).colour);
  return frame;
}

/** Gives a rect the corners [left, top, right, bottom]. */
export function placeBox(rect, [left, top, right, bottom]) {
  setAttribute(rect, "x", left);
  setAttribute(rect, "y", top);
  setAttribute(rect, "width", Math.max(0, right - left));
  setAttribute(rect, "height", Math.max(0, bottom - top));
}
