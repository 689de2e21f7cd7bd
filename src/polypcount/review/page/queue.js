// The queue: "Are these one polyp?" or "Is this a polyp?", what is likeliest to change the count first.

import { badge, markOf, paintBadge } from "./colours.js";
import { byId, draw, keepList, make, setAttribute, setText } from "./dom.js";
import { totalFrames } from "./lanes.js";
import { bestPicture, pictureFrame, picturesOverTime, showPicture } from "./pictures.js";
import { amount, clock, percent, polypTitle } from "./words.js";

// A question that appears by itself may not be answered by a key that was meant for the one before.
const GRACE_MS = 500;
const STRIP = 4;

const keyOf = (question) => [question.first, question.second]
  .map((side) => [...side.items].sort().join(" "))
  .sort()
  .join(" | ");

export class Queue {
  #shown = null;
  #shownSince = 0;
  #answering = new Map();

  constructor(store, decisions) {
    this.store = store;
    this.decisions = decisions;
    this.sides = [this.#makeSide(byId("first-side")), this.#makeSide(byId("second-side"))];
    byId("answer-yes").addEventListener("click", () => this.answer(true));
    byId("answer-no").addEventListener("click", () => this.answer(false));
    byId("answer-skip").addEventListener("click", () => this.skip());
    byId("ask-skipped").addEventListener("click", () => {
      store.skipped.clear();
      this.#update();
    });
    store.on("state", () => this.#update());
  }

  #makeSide(root) {
    const sign = badge(null);
    const title = make("span", { class: "side-title" });
    const picture = pictureFrame();
    const show = make("button", { type: "button", class: "picture-button" }, picture);
    const strip = make("div", { class: "mini-strip" });
    const when = make("span");
    const many = make("span", { class: "side-amount" });
    const times = make("p", { class: "side-times" }, when, many);
    const side = { root, sign, title, picture, show, strip, when, many, items: [] };
    show.addEventListener("click", () => this.store.selectItems(side.items, side.items[0]));
    root.append(make("p", { class: "side-head" }, sign, title), show, strip, times);
    return side;
  }

  /** The question that is shown; null if there is none. */
  get question() {
    return this.#shown;
  }

  // Questions about tracklets whose answer is on its way would change with that answer, so they wait for it.
  #open() {
    const busy = new Set([...this.#answering.values()].flat());
    return this.store.state.questions.filter((question) => {
      const items = [...question.first.items, ...question.second.items];
      return !this.store.skipped.has(keyOf(question)) && !items.some((id) => busy.has(id));
    });
  }

  #update({ byPerson = false } = {}) {
    const open = this.#open();
    const key = this.#shown && keyOf(this.#shown);
    // The question that is being looked at stays, also if another one has become likelier.
    const next = open.find((question) => keyOf(question) === key) ?? open[0] ?? null;
    if (next === null || keyOf(next) !== key) this.#shownSince = byPerson ? 0 : performance.now();
    this.#shown = next;
    this.#draw();
  }

  #draw() {
    const { state, skipped } = this.store;
    const question = this.#shown;
    const left = state.questions_left;
    setText(byId("questions-left"), left ? `${left} open` : "");
    byId("settled").hidden = !state.settled;
    byId("question").hidden = !question;
    const waiting = state.questions.filter((one) => skipped.has(keyOf(one))).length;
    const more = left - state.questions.length;
    byId("no-question").hidden = Boolean(question) || state.settled;
    if (!question) setText(byId("queue-title"), "Questions");
    byId("ask-skipped").hidden = !waiting;
    // The server sends the first questions only.
    const after = more > 0 ? ` ${more} more ${more === 1 ? "is" : "are"} open; they come up as these are answered.` : "";
    setText(byId("no-question-text"), this.#answering.size ? "Saving the answer …" : `${amount(waiting, "question")} skipped.${after}`);
    if (!question) return;
    const isAlone = !question.second.items.length;
    byId("second-side").hidden = isAlone;
    byId("answer-yes").firstChild.data = isAlone ? "Yes, a polyp " : "Yes, one ";
    byId("answer-no").firstChild.data = isAlone ? "No polyp " : "No, two ";
    const [first, second] = [question.first, question.second].map(({ items }) => this.#polypsOf(items));
    if (isAlone) {
      setText(byId("queue-title"), "Is this a polyp?");
      this.#drawSide(this.sides[0], question.first, this.#titleOf(first));
      setText(byId("question-chance"), "Seen for a short time only, so it may be a false alarm. Counted as a polyp now.");
      this.#drawTimes(question);
      return;
    }
    const isOne = first.length === 1 && second.length === 1 && first[0] === second[0];
    setText(byId("queue-title"), isOne ? `Is polyp ${first[0]} one polyp?` : "Are these one polyp?");
    this.#drawSide(this.sides[0], question.first, isOne ? "Part A" : this.#titleOf(first));
    this.#drawSide(this.sides[1], question.second, isOne ? "Part B" : this.#titleOf(second));
    const chance = question.probability === null ? "" : ` Likely one: ${percent(question.probability)}.`;
    setText(byId("question-chance"), `Counted as ${isOne ? "one polyp" : "different polyps"} now.${chance}`);
    this.#drawTimes(question);
  }

  // The questions are about groups that are purer than polyps, so a side can be a part of a polyp.
  #polypsOf(items) {
    return [...new Set(items.map((id) => this.store.items.get(id)?.polyp ?? null))];
  }

  #titleOf(numbers) {
    return numbers.length === 1 ? polypTitle(this.store.state, numbers[0]) : `Polyps ${numbers.join(", ")}`;
  }

  #drawSide(side, { polyp, items, best }, title) {
    const { store } = this;
    setAttribute(side.root, "data-polyp", polyp);
    setAttribute(side.root, "data-item", best);
    paintBadge(side.sign, polyp);
    setText(side.title, title);
    const name = title.startsWith("Part") ? `${polypTitle(store.state, polyp)}, ${title}` : title;
    showPicture(side.picture, bestPicture(store, best), polyp, `Best frame of ${name}`);
    setAttribute(side.show, "aria-label", `Show ${name} in the player`);
    keepList(side.strip, picturesOverTime(store, items, STRIP), (picture) => picture.address,
      () => pictureFrame("picture small"),
      (frame, picture) => showPicture(frame, picture, polyp, "", { box: false }));
    const spans = items.map((id) => store.items.get(id)).filter(Boolean).sort((a, b) => a.start_frame - b.start_frame);
    side.items = spans.map((item) => item.id);
    if (!spans.length) return;
    const from = spans[0].start_seconds, to = spans.at(-1).stop_seconds;
    const when = from === null || to === null ? `frames ${spans[0].start_frame} to ${spans.at(-1).stop_frame - 1}` : `${clock(from)} to ${clock(to)}`;
    setText(side.when, when);
    setText(side.many, `, ${amount(spans.length, "tracklet")}`);
  }

  // A strip of the whole recording shows where both lie in time.
  #drawTimes(question) {
    const total = totalFrames(this.store.state);
    const bars = [question.first, question.second].flatMap(({ polyp, items }, row) => items
      .map((id) => this.store.items.get(id))
      .filter(Boolean)
      .map((item) => draw("rect", {
        x: (item.start_frame / total) * 1000,
        width: Math.max(4, ((item.stop_frame - item.start_frame) / total) * 1000),
        y: row * 11 + 1,
        height: 9,
        fill: markOf(polyp).colour,
      })));
    const lanes = [0, 1].map((row) => draw("rect", { class: "lane", x: 0, width: 1000, y: row * 11 + 1, height: 9 }));
    byId("question-times").replaceChildren(...lanes, ...bars);
  }

  /** Answers the question that is shown; the next one appears at once. */
  async answer(same) {
    const question = this.#shown;
    if (!question || performance.now() - this.#shownSince < GRACE_MS) return;
    const key = keyOf(question);
    this.#answering.set(key, [...question.first.items, ...question.second.items]);
    this.#update({ byPerson: true });
    await this.decisions.decide({ kind: "answer", first: question.first.items, second: question.second.items, same });
    this.#answering.delete(key);
    this.#update();
  }

  /** Leaves the question for later, in this window only. */
  skip() {
    if (!this.#shown) return;
    this.store.skipped.add(keyOf(this.#shown));
    this.#update({ byPerson: true });
  }
}
