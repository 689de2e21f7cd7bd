// "What else looks like this": for the tracklet that is shown, the most similar on top.

import { Refused, loadSimilar } from "./api.js";
import { badge, paintBadge } from "./colours.js";
import { byId, keepList, make, setAttribute, setText } from "./dom.js";
import { clearestCrop, pictureFrame, showPicture } from "./pictures.js";
import { duration, itemSpan, percent, polypTitle } from "./words.js";

const DELAY_MS = 180;
const MOST = 60;

export class Similar {
  #timer = null;
  #request = null;
  #asked = undefined;

  constructor(store, actions) {
    this.store = store;
    this.actions = actions;
    this.list = byId("similar-list");
    store.on("selection", () => this.#ask());
    store.on("state", () => this.#ask());
  }

  // Moving quickly through tracklets by keyboard should not ask for each of them.
  #ask() {
    const { current, state } = this.store;
    const asked = current && `${current} ${state.version}`;
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#request?.abort();
    clearTimeout(this.#timer);
    if (!current) return this.#draw(null, []);
    this.#timer = setTimeout(() => this.#load(current), DELAY_MS);
  }

  async #load(id) {
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const { similar } = await loadSimilar(this.store.id, id, signal);
      if (id === this.store.current) this.#draw(id, similar.slice(0, MOST));
    } catch (error) {
      if (signal.aborted) return;
      this.#draw(id, []);
      this.#asked = undefined;
      setText(byId("similar-empty"), error instanceof Refused ? error.message : "The list could not be loaded.");
    }
  }

  #draw(id, similar) {
    const { store } = this;
    const known = similar.filter((other) => store.items.has(other.item));
    const me = store.items.get(id);
    byId("similar-empty").hidden = known.length > 0;
    setText(byId("similar-empty"), id ? "Nothing else was seen." : "Select a tracklet or a polyp to see what else looks like it.");
    byId("similar-head").hidden = !me;
    if (me) {
      this.headPicture ??= byId("similar-head").insertBefore(pictureFrame("picture small"), byId("similar-title"));
      showPicture(this.headPicture, clearestCrop(store, id), me.polyp, "", { box: false });
      setText(byId("similar-title"), `${polypTitle(store.state, me.polyp)}, ${itemSpan(me)}`);
    }
    keepList(this.list, known, (other) => other.item, (other) => this.#makeRow(other), (row, other) => this.#updateRow(row, other, me));
  }

  #makeRow(other) {
    const picture = pictureFrame("picture small");
    const sign = badge(null);
    const heading = make("span", { class: "row-title" });
    const facts = make("span", { class: "row-facts" });
    const bar = make("meter", { min: 0, max: 1, "aria-label": "Similarity" });
    const show = make("button", { type: "button", class: "row-show", on: { click: () => this.store.selectItem(other.item) } },
      picture, make("span", { class: "row-text" }, make("span", { class: "row-head" }, sign, heading), facts, bar));
    const same = make("button", { type: "button", class: "same", text: "Same polyp", on: { click: () => this.actions.samePolyp(this.store.current, other.item) } });
    const row = make("li", { class: "similar-row", "data-item": other.item }, show, same);
    return Object.assign(row, { picture, sign, heading, facts, bar, show, same });
  }

  #updateRow(row, other, me) {
    const { store } = this;
    const item = store.items.get(other.item);
    const together = item.polyp !== null && item.polyp === me.polyp;
    showPicture(row.picture, clearestCrop(store, other.item), item.polyp, "", { box: false });
    paintBadge(row.sign, item.polyp);
    setText(row.heading, item.polyp === null ? "Not counted" : `Polyp ${item.polyp}`);
    const facts = [itemSpan(item)];
    if (other.gap_seconds > 0) facts.push(`${duration(other.gap_seconds)} ${item.start_frame > me.start_frame ? "later" : "earlier"}`);
    if (other.probability !== null && !together && !other.impossible) facts.push(`${percent(other.probability)} likely one polyp`);
    if (other.impossible) facts.push(`Cannot be it: ${other.impossible}`);
    setText(row.facts, facts.join(" · "));
    setAttribute(row.bar, "value", other.similarity);
    setAttribute(row.bar, "title", `Similarity ${other.similarity.toFixed(2)}`);
    row.classList.toggle("impossible", Boolean(other.impossible));
    setAttribute(row.show, "aria-label", `Show ${item.name}, ${polypTitle(store.state, item.polyp)}, ${facts.join(", ")}`);
    row.same.disabled = Boolean(other.impossible) || together;
    setText(row.same, together ? "One polyp already" : "Same polyp");
    setAttribute(row.same, "title", other.impossible || this.#effect(me, item, together));
  }

  #effect(me, item, together) {
    if (together) return "This tracklet belongs to the same polyp.";
    if (me.polyp === null && item.polyp === null) return "Both become one new polyp.";
    if (item.polyp === null) return `The tracklet is added to polyp ${me.polyp}.`;
    if (me.polyp === null) return `The selected tracklet is added to polyp ${item.polyp}.`;
    return `Polyp ${item.polyp} becomes part of polyp ${me.polyp}.`;
  }
}
