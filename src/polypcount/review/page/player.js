// Plays what is selected, frame by frame, at the pace of the recording.

import { byId, lessMotion, setAttribute, setText } from "./dom.js";
import { totalFrames } from "./lanes.js";
import { FrameScreen, PictureScreen } from "./screens.js";
import { paceAt } from "./times.js";
import { amount, itemSpan, polypTitle } from "./words.js";

const PACE_WITHOUT_TIMES = 25;
const PICTURES_PER_SECOND = 1.5;
const AUTOPLAY_MS = 250;
// Where the recording stood still for long, nobody has to wait.
const SLOWEST = 0.5;

export class Player {
  #spans = [];
  #selectedSpans = [];
  #playing = null;
  #autoplay = null;
  #selectionKey = "";
  #closeUp = false;
  #total = 1;
  #frame = 0;

  constructor(store) {
    this.store = store;
    this.slider = byId("seek");
    this.slider.addEventListener("input", () => this.seek(this.#frameAt(Number(this.slider.value))));
    byId("play").addEventListener("click", () => this.toggle());
    byId("step-back").addEventListener("click", () => this.step(-1));
    byId("step-forward").addEventListener("click", () => this.step(1));
    byId("close-up").addEventListener("click", () => this.toggleCloseUp());
    document.addEventListener("visibilitychange", () => document.hidden && this.pause());
    store.on("state", () => this.#newState());
    store.on("selection", () => this.#selected());
  }

  #newState() {
    const { state } = this.store;
    if (!this.screen) {
      this.screen = state.recording ? new FrameScreen(this.store, () => this.#arrived()) : new PictureScreen(this.store);
      byId("add").disabled = byId("close-up").disabled = !state.recording;
      byId("no-recording").hidden = state.recording;
    }
    this.#total = totalFrames(state);
    this.screen.newState();
    this.#describe();
  }

  // All that is selected plays, one tracklet after the other, beginning with the one that was selected last.
  #selected() {
    const { current, polyp, selected, items } = this.store;
    const ids = [...selected];
    const shown = ids.map((id) => items.get(id)).filter(Boolean).sort((a, b) => a.start_frame - b.start_frame);
    this.#selectedSpans = this.screen.spansOf(shown);
    this.#describe();
    const key = JSON.stringify([current, polyp, ids]);
    if (key === this.#selectionKey) return;
    this.#selectionKey = key;
    this.pause();
    clearTimeout(this.#autoplay);
    this.#useSpans(this.#selectedSpans);
    if (!this.#selectedSpans.length) return this.#arrived();
    const begin = polyp === null && !this.screen.pictures ? items.get(current)?.start_frame ?? this.#spans[0][0] : this.#spans[0][0];
    this.seek(begin);
    // Nothing plays before the person has touched the page.
    if (lessMotion() || document.hidden || !navigator.userActivation?.hasBeenActive) return;
    // Somebody who moves on quickly by keyboard does not want each tracklet to start.
    this.#autoplay = setTimeout(() => this.play(), AUTOPLAY_MS);
  }

  #useSpans(spans) {
    this.#spans = spans.length ? spans : this.screen.everything(this.#total);
    const count = this.#spans.reduce((sum, [start, stop]) => sum + stop - start, 0);
    setAttribute(this.slider, "max", Math.max(0, count - 1));
    this.slider.disabled = count === 0;
  }

  #frameAt(position) {
    let left = position;
    for (const [start, stop] of this.#spans) {
      if (left < stop - start) return start + left;
      left -= stop - start;
    }
    return this.#spans.at(-1)[1] - 1;
  }

  // Where a frame lies among the spans that play; null outside of them.
  #positionOf(frame) {
    let before = 0;
    for (const [start, stop] of this.#spans) {
      if (frame >= start && frame < stop) return before + frame - start;
      before += stop - start;
    }
    return null;
  }

  get #length() {
    return Number(this.slider.max) + 1;
  }

  // Frames per second where the recording is at this frame, at the chosen speed.
  #paceAt(frame) {
    const normal = this.screen.pictures ? PICTURES_PER_SECOND : paceAt(this.store.state.video, frame) || PACE_WITHOUT_TIMES;
    return Math.max(SLOWEST, normal) * Number(byId("speed").value);
  }

  /** Shows one frame exactly, wherever it lies in the recording. */
  seek(frame) {
    clearTimeout(this.#autoplay);
    if (this.#positionOf(frame) === null) {
      const within = this.#selectedSpans.some(([start, stop]) => frame >= start && frame < stop);
      this.#useSpans(within ? this.#selectedSpans : []);
    }
    if (this.#playing) this.#startClock(frame);
    this.#show(frame, { exactly: true });
  }

  /** Goes to a frame of the recording; without a recording, to the nearest picture of what is selected. */
  seekRecording(frame) {
    if (!this.screen.pictures) return this.seek(frame);
    const position = this.screen.nearest(frame);
    if (position !== null) this.seek(position);
    this.store.setPlayhead(frame);
  }

  step(frames) {
    this.pause();
    const now = this.#positionOf(this.#frame);
    if (now === null || !this.#spans.length) return;
    this.seek(this.#frameAt(Math.min(this.#length - 1, Math.max(0, now + frames))));
  }

  #show(frame, { exactly = false } = {}) {
    this.#frame = frame;
    this.screen.show(frame, { exactly, total: this.#total });
    this.slider.value = this.#positionOf(frame) ?? 0;
    this.#describe();
    this.store.setPlayhead(this.screen.playheadOf(frame));
  }

  #describe() {
    const { store } = this;
    const item = store.items.get(store.current);
    const title = !item ? "Nothing selected"
      : store.polyp !== null ? polypTitle(store.state, store.polyp)
      : store.selected.size > 1 ? amount(store.selected.size, "tracklet")
      : `${polypTitle(store.state, item.polyp)}, ${item.name}, ${itemSpan(item)}`;
    setText(byId("player-title"), title);
    const text = this.screen.describe(this.#frame);
    setText(byId("when"), text);
    setAttribute(this.slider, "aria-valuetext", text);
  }

  toggle() {
    if (this.#playing) this.pause();
    else this.play();
  }

  play() {
    clearTimeout(this.#autoplay);
    if (!this.#spans.length || this.#length < 2) return;
    const atEnd = (this.#positionOf(this.#frame) ?? 0) >= this.#length - 1;
    this.#playing = {};
    this.#startClock(atEnd ? this.#frameAt(0) : this.#frame);
    this.#markPlaying();
    requestAnimationFrame((now) => this.#tick(now));
  }

  pause() {
    clearTimeout(this.#autoplay);
    if (!this.#playing) return;
    this.#playing = null;
    this.#markPlaying();
    this.seek(this.#frame);
  }

  #markPlaying() {
    const playing = Boolean(this.#playing);
    setAttribute(byId("play"), "aria-label", playing ? "Pause" : "Play");
    byId("play").classList.toggle("playing", playing);
  }

  #startClock(frame) {
    this.#playing.at = this.#positionOf(frame) ?? 0;
    this.#playing.since = performance.now();
    this.#playing.position = -1;
  }

  // The clock decides which frame is due. Frames that are late are left out; the pace stays.
  #tick(now) {
    const playing = this.#playing;
    if (!playing) return;
    const pace = this.#paceAt(this.#frameAt(Math.floor(playing.at)));
    playing.at = Math.min(this.#length - 1, playing.at + (Math.max(0, now - playing.since) / 1000) * pace);
    playing.since = Math.max(now, playing.since);
    const position = Math.floor(playing.at);
    if (position !== playing.position) {
      playing.position = position;
      const frame = this.#frameAt(position);
      this.#showDue(frame);
      this.screen.ahead(frame, pace, this.#spans);
    }
    if (position >= this.#length - 1 && !this.#startAgain()) return;
    requestAnimationFrame((next) => this.#tick(next));
  }

  #showDue(due) {
    const [start] = this.#spans.find(([from, stop]) => due >= from && due < stop);
    const after = this.#frame >= start && this.#frame < due ? this.#frame : start - 1;
    const frame = this.screen.newest(after, due);
    if (frame !== null) this.#show(frame);
  }

  #startAgain() {
    if (byId("loop").checked) {
      this.#startClock(this.#frameAt(0));
      return true;
    }
    this.#frame = this.#frameAt(this.#length - 1);
    this.pause();
    return false;
  }

  /** Shows the surroundings of the selected tracklet's box only, or the whole frame again. */
  toggleCloseUp(on = !this.#closeUp) {
    if (byId("close-up").disabled || on === this.#closeUp) return;
    this.#closeUp = on;
    setAttribute(byId("close-up"), "aria-pressed", String(on));
    this.screen.setCloseUp(on);
    this.#show(this.#frame, { exactly: true });
  }

  #arrived() {
    if (!this.#playing) this.screen.show(this.#frame, { exactly: true, total: this.#total, asked: true });
  }

  /** The frame that is really on the screen, for drawing a box on it; null if there is none. */
  get shownFrame() {
    return this.screen.shownFrame ?? null;
  }
}
