// A card for each polyp: what it looks like, when it was seen, how certain it is, and how it is described.

import { badge, paintBadge } from "./colours.js";
import { byId, keepList, lessMotion, make, setAttribute, setText } from "./dom.js";
import { Fields } from "./fields.js";
import { bestPicture, pictureFrame, picturesOverTime, showPicture } from "./pictures.js";
import { itemsOf } from "./state.js";
import { amount, certaintyWord, duration, itemSpan, percent, polypTitle, timeOr } from "./words.js";

const STRIP = 8;

export class Cards {
  constructor(store, actions, { chooseMerge, showFrame }) {
    Object.assign(this, { store, actions, chooseMerge, showFrame, list: byId("cards") });
    store.on("state", () => this.#update());
    store.on("selection", () => this.#markSelected());
  }

  #update() {
    const { polyps } = this.store.state;
    byId("no-polyps").hidden = polyps.length > 0;
    setText(byId("polyps-count"), polyps.length || "");
    keepList(this.list, polyps, (polyp) => polyp.number, (polyp) => this.#make(polyp), (card, polyp) => this.#updateCard(card, polyp));
    this.#markSelected({ scroll: false });
  }

  #make({ number }) {
    const sign = badge(number);
    const heading = make("span", { class: "card-title" });
    const show = make("button", { type: "button", class: "card-show", on: { click: () => this.store.selectPolyp(number) } }, sign, heading);
    const chip = make("span", { class: "chip" });
    const picture = pictureFrame();
    const facts = make("dl");
    const strip = make("ol", { class: "strip", "aria-label": `Polyp ${number} over time` });
    const more = make("details", { class: "more", on: { toggle: () => this.#fillMore(card) } },
      make("summary", { text: "Describe and edit" }));
    const card = make("article", { class: "card", "data-polyp": number, "data-drop": number },
      make("h3", {}, show, chip),
      make("div", { class: "card-body" }, picture, facts),
      strip, more);
    return Object.assign(card, { number, sign, heading, chip, picture, facts, strip, more });
  }

  #updateCard(card, polyp) {
    const { store } = this;
    paintBadge(card.sign, polyp.number);
    setText(card.heading, polyp.name || `Polyp ${polyp.number}`);
    setAttribute(card, "aria-label", polypTitle(store.state, polyp.number));
    card.chip.hidden = polyp.certainty === null;
    if (polyp.certainty !== null) {
      const word = certaintyWord(polyp.certainty);
      setAttribute(card.chip, "data-certainty", word);
      setText(card.chip, `${word} certainty`);
      setAttribute(card.chip, "title", `${percent(polyp.certainty)} of this group is found again when the count is repeated`);
    }
    showPicture(card.picture, bestPicture(store, polyp.best), polyp.number, `Best frame of polyp ${polyp.number}`);
    const facts = [
      ["First seen", timeOr(polyp.first_frame, polyp.first_seconds)],
      ["Last seen", timeOr(polyp.last_frame, polyp.last_seconds)],
      ["Visible for", polyp.visible_seconds === null ? "" : duration(polyp.visible_seconds)],
      ["Tracklets", polyp.items.length],
      ["Site", polyp.site],
      ["Size", polyp.size_mm === null ? "" : `${polyp.size_mm} mm`],
      ["Histology", polyp.histology],
    ].filter(([, value]) => value !== "");
    keepList(card.facts, facts, ([name]) => name,
      ([name]) => make("div", {}, make("dt", { text: name }), make("dd")),
      (row, [, value]) => setText(row.lastChild, value));
    keepList(card.strip, picturesOverTime(store, polyp.items, STRIP), (picture) => picture.address,
      (picture) => this.#makeView(picture),
      (view, picture) => showPicture(view.picture, picture, polyp.number, "", { box: false }));
    if (card.more.open) this.#fillMore(card);
  }

  #makeView(picture) {
    const frame = pictureFrame("picture small");
    const when = timeOr(picture.frame, picture.seconds);
    const show = make("button", { type: "button", class: "picture-button", "aria-label": `Show the frame at ${when}`, title: when,
      on: { click: () => this.showFrame(picture.item, picture.frame) } }, frame);
    return Object.assign(make("li", { "data-item": picture.item }, show), { picture: frame });
  }

  // What is folded away is made when it is opened: with hundreds of polyps the page stays light.
  #fillMore(card) {
    if (!card.more.open) return;
    const polyp = this.store.polyps.get(card.number);
    if (!card.fields) {
      card.fields = new Fields(card.number, (values) => this.actions.describe(card.number, values));
      card.items = make("ol", { class: "card-items" });
      card.merges = make("ul", { class: "card-merges" });
      card.more.append(card.fields.form, make("h4", { text: "Tracklets" }), card.items, card.merges,
        make("div", { class: "row" },
          make("button", { type: "button", text: "Merge with …", on: { click: () => this.chooseMerge(card.number) } }),
          make("button", { type: "button", text: "Not a polyp", on: { click: () => this.actions.moveTo(this.store.polyps.get(card.number).items, "none") } })));
    }
    card.fields.update(polyp);
    const items = itemsOf(this.store, card.number);
    keepList(card.items, items, (item) => item.id, (item) => this.#makeItem(card, item), (row, item) => {
      const first = item === items[0];
      setText(row.show, `${itemSpan(item)}, ${item.name}`);
      row.split.hidden = first;
    });
    const merges = this.store.state.merges.filter((merge) => merge.into === card.number);
    keepList(card.merges, merges, (merge) => merge.decision,
      (merge) => make("li", {},
        make("span", { text: `Polyp ${merge.from} was merged into this one.` }),
        make("button", { type: "button", class: "unmerge", "data-decision": merge.decision, text: "Take back", on: { click: () => this.actions.unmerge(merge.decision) } })));
  }

  #makeItem(card, item) {
    const show = make("button", { type: "button", class: "link", on: { click: () => this.store.selectItem(item.id) } });
    const split = make("button", { type: "button", class: "split", text: "Split before this", title: "This tracklet and all later ones become a new polyp",
      on: { click: () => this.actions.split(card.number, this.store.items.get(item.id).start_frame) } });
    return Object.assign(make("li", { "data-item": item.id }, show, split), { show, split });
  }

  #markSelected({ scroll = true } = {}) {
    const meant = this.store.meantPolyp();
    for (const card of this.list.children) {
      const chosen = card.number === meant;
      if (chosen && scroll && !card.classList.contains("chosen") && !card.contains(document.activeElement)) {
        card.scrollIntoView({ block: "nearest", behavior: lessMotion() ? "auto" : "smooth" });
      }
      card.classList.toggle("chosen", chosen);
    }
  }
}
