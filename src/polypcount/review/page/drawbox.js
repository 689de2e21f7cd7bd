// Adding a polyp that no box showed: a box is drawn on the frame, by pointer or by keyboard.

import { byId, draw, setAttribute, setText } from "./dom.js";
import { placeBox } from "./pictures.js";

const SMALLEST = 8;

export class DrawBox {
  #frame = null;
  #start = null;

  constructor(store, player, actions, notify) {
    Object.assign(this, { store, player, actions, notify, layer: byId("draw-layer") });
    this.rects = [draw("rect", { class: "halo" }), draw("rect", { class: "drawn" })];
    this.layer.append(...this.rects);
    this.layer.addEventListener("pointerdown", (event) => this.#down(event));
    this.layer.addEventListener("pointermove", (event) => this.#start && this.#draw(this.#start, this.#point(event)));
    this.layer.addEventListener("pointerup", () => (this.#start = null));
    this.layer.addEventListener("keydown", (event) => this.#key(event));
    byId("add").addEventListener("click", () => this.begin());
    byId("add-accept").addEventListener("click", () => this.#accept());
    byId("add-cancel").addEventListener("click", () => this.cancel());
  }

  get active() {
    return this.#frame !== null;
  }

  begin() {
    if (!this.store.state.recording) return this.notify("A polyp can only be added where the recording is available.");
    this.player.pause();
    this.player.toggleCloseUp(false);
    this.#frame = this.player.shownFrame;
    if (this.#frame === null) return this.notify("Go to the frame that shows the polyp first: point at the time axis.");
    const { width, height } = this.store.state.video;
    setAttribute(this.layer, "viewBox", `0 0 ${width} ${height}`);
    this.#draw([width * 0.4, height * 0.4], [width * 0.6, height * 0.6]);
    setText(byId("add-text"), `A polyp on frame ${this.#frame}: draw a box around it, or move the box with the arrow keys (with Shift: its size).`);
    this.#show(true);
    this.layer.focus();
  }

  cancel() {
    if (!this.active) return;
    this.#frame = null;
    this.#show(false);
    byId("add").focus();
  }

  #show(active) {
    byId("player").classList.toggle("adding", active);
    byId("add-bar").hidden = !active;
    byId("close-up").disabled = active;
    this.layer.style.display = active ? "" : "none";
  }

  async #accept() {
    const [left, top, right, bottom] = this.box;
    if (right - left < SMALLEST || bottom - top < SMALLEST) return this.notify("This box is too small to be a polyp.");
    const frame = this.#frame;
    this.cancel();
    await this.actions.add(frame, this.box);
  }

  #point(event) {
    const { left, top, width, height } = this.layer.getBoundingClientRect();
    const { video } = this.store.state;
    return [((event.clientX - left) / width) * video.width, ((event.clientY - top) / height) * video.height];
  }

  #down(event) {
    if (event.button !== 0) return;
    this.layer.setPointerCapture(event.pointerId);
    this.#start = this.#point(event);
    this.#draw(this.#start, this.#start);
  }

  #draw(one, other) {
    const { width, height } = this.store.state.video;
    const within = (value, most) => Math.round(Math.min(most, Math.max(0, value)));
    const [x, y] = [[one[0], other[0]].sort((a, b) => a - b), [one[1], other[1]].sort((a, b) => a - b)];
    this.box = [within(x[0], width), within(y[0], height), within(x[1], width), within(y[1], height)];
    for (const rect of this.rects) placeBox(rect, this.box);
  }

  #key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Enter") this.#accept();
    else if (event.key === "Escape") this.cancel();
    else if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    if (!step || !this.active) return;
    const by = this.store.state.video.width / 80;
    const [dx, dy] = [step[0] * by, step[1] * by];
    const [left, top, right, bottom] = this.box;
    const moved = event.shiftKey ? 0 : 1;
    this.#draw([left + dx * moved, top + dy * moved], [Math.max(left + SMALLEST, right + dx), Math.max(top + SMALLEST, bottom + dy)]);
  }
}
