// "What else looks like this": for the tracklet that is shown, or for the selected polyp, the most similar on top.

import { Refused, loadSimilar } from "./api.js";
import { badge, paintBadge } from "./colours.js";
import { byId, keepList, make, setAttribute, setText } from "./dom.js";
import { clearestCrop, pictureFrame, showPicture } from "./pictures.js";
import { amount, duration, itemSpan, percent, polypTitle } from "./words.js";

const DELAY_MS = 180;
const MOST = 60;

export class Similar {
  #timer = null;
  #request = null;
  #asked = undefined;
  #shown = { id: null, polyp: null, similar: [], reason: "" };

  constructor(store, actions) {
    this.store = store;
    this.actions = actions;
    this.list = byId("similar-list");
    store.on("selection", () => this.#ask());
    store.on("state", () => {
      this.#draw();
      this.#ask();
    });
  }

  // Of a polyp, a tracklet that can be compared stands for all of them.
  #meant() {
    const { current, polyp, polyps, items } = this.store;
    if (polyp === null) return { id: current, polyp };
    const counted = [current, ...polyps.get(polyp).items].find((id) => items.get(id)?.kind === "counted" && items.get(id).polyp === polyp);
    return { id: counted ?? current, polyp };
  }

  // Moving quickly through tracklets by keyboard should not ask for each of them.
  #ask() {
    const meant = this.#meant();
    const asked = meant.id && `${meant.id} ${meant.polyp} ${this.store.state.version}`;
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#request?.abort();
    clearTimeout(this.#timer);
    if (!meant.id) return this.#show({ ...meant, similar: [], reason: "" });
    this.#timer = setTimeout(() => this.#load(meant), DELAY_MS);
  }

  async #load(meant) {
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const { similar, reason } = await loadSimilar(this.store.id, meant.id, meant.polyp !== null, signal);
      if (!signal.aborted) this.#show({ ...meant, similar: similar.slice(0, MOST), reason });
    } catch (error) {
      if (signal.aborted) return;
      this.#asked = undefined;
      this.#show({ ...meant, similar: [], reason: error instanceof Refused ? error.message : "The list could not be loaded." });
    }
  }

  #show(shown) {
    this.#shown = shown;
    this.#draw();
  }

  // The list stays that of the tracklet for which it was asked, until another one is there.
  #draw() {
    const { store } = this;
    const { id, similar, reason } = this.#shown;
    const me = store.items.get(id);
    const known = me ? similar.filter((other) => store.items.has(other.item)) : [];
    byId("similar-empty").hidden = known.length > 0;
    setText(byId("similar-empty"), !me ? "Select a tracklet or a polyp to see what else looks like it." : reason || "Nothing else was seen.");
    byId("similar-head").hidden = !me;
    if (me) {
      this.headPicture ??= byId("similar-head").insertBefore(pictureFrame("picture small"), byId("similar-title"));
      showPicture(this.headPicture, clearestCrop(store, id), me.polyp, "", { box: false });
      const polyp = this.#polypShown(me);
      setText(byId("similar-title"), `${polypTitle(store.state, me.polyp)}, ${polyp ? amount(polyp.items.length, "tracklet") : itemSpan(me)}`);
    }
    keepList(this.list, known, (other) => other.item, (other) => this.#makeRow(other), (row, other) => this.#updateRow(row, other, me));
  }

  // The polyp that the list is about; null where it is about one tracklet.
  #polypShown(me) {
    return this.#shown.polyp === null ? null : this.store.polyps.get(me.polyp) ?? null;
  }

  #makeRow(other) {
    const picture = pictureFrame("picture small");
    const sign = badge(null);
    const heading = make("span", { class: "row-title" });
    const facts = make("span", { class: "row-facts" });
    const bar = make("meter", { min: 0, max: 1, "aria-label": "Similarity" });
    const show = make("button", { type: "button", class: "row-show", on: { click: () => this.store.selectItem(other.item) } },
      picture, make("span", { class: "row-text" }, make("span", { class: "row-head" }, sign, heading), facts, bar));
    const same = make("button", { type: "button", class: "same", text: "Same polyp", on: { click: () => this.actions.samePolyp(row.me, other.item) } });
    const row = make("li", { class: "similar-row", "data-item": other.item }, show, same);
    return Object.assign(row, { picture, sign, heading, facts, bar, show, same });
  }

  #updateRow(row, other, me) {
    const { store } = this;
    const item = store.items.get(other.item);
    row.me = me.id;
    const together = item.polyp !== null && item.polyp === me.polyp;
    showPicture(row.picture, clearestCrop(store, other.item), item.polyp, "", { box: false });
    paintBadge(row.sign, item.polyp);
    setText(row.heading, item.polyp === null ? "Not counted" : `Polyp ${item.polyp}`);
    const facts = [itemSpan(item)];
    if (other.gap_seconds > 0) facts.push(`${duration(other.gap_seconds)} ${this.#direction(item, me)}`);
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

  // What lies between the tracklets of a polyp is neither earlier nor later.
  #direction(item, me) {
    const polyp = this.#polypShown(me);
    const [first, last] = polyp ? [polyp.first_frame, polyp.last_frame] : [me.start_frame, me.stop_frame - 1];
    if (item.start_frame > last) return "later";
    return item.stop_frame <= first ? "earlier" : "away";
  }

  #effect(me, item, together) {
    if (together) return "This tracklet belongs to the same polyp.";
    if (me.polyp === null && item.polyp === null) return "Both become one new polyp.";
    if (item.polyp === null) return `The tracklet is added to polyp ${me.polyp}.`;
    if (me.polyp === null) return `The selected tracklet is added to polyp ${item.polyp}.`;
    return `Polyp ${item.polyp} becomes part of polyp ${me.polyp}.`;
  }
}
