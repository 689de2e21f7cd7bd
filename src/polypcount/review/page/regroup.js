// Regrouping: what would change is shown before it is accepted. The known number of polyps can be given here.

import { Refused, previewRegroup } from "./api.js";
import { badge } from "./colours.js";
import { byId, make, setText } from "./dom.js";
import { dialogOpen, openDialog } from "./dialogs.js";
import { clearestCrop, pictureFrame, showPicture } from "./pictures.js";
import { amount, itemSpan, range } from "./words.js";

const MOST_SHOWN = 100;

export class Regroup {
  #preview = null;

  constructor(store, decisions) {
    Object.assign(this, { store, decisions, dialog: byId("regroup-dialog") });
    byId("regroup-accept").addEventListener("click", () => this.#accept());
    byId("hint-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#giveHint();
    });
    byId("hint-clear").addEventListener("click", () => this.#sendHint(null, null));
    store.on("state", () => this.dialog.open && this.#load());
  }

  open() {
    if (dialogOpen()) return;
    this.#fillHint();
    openDialog("regroup-dialog");
    this.#load();
  }

  #fillHint() {
    const { hint } = this.store.state;
    byId("hint-fewest").value = hint?.fewest ?? "";
    byId("hint-most").value = hint?.most ?? "";
    byId("hint-clear").hidden = !hint;
  }

  #giveHint() {
    const [fewest, most] = ["hint-fewest", "hint-most"].map((id) => (byId(id).value === "" ? null : Number(byId(id).value)));
    if (fewest !== null && most !== null && fewest > most) return setText(byId("regroup-note"), "“At least” must not be above “at most”.");
    this.#sendHint(fewest, most);
  }

  async #sendHint(fewest, most) {
    await this.decisions.decide({ kind: "hint", fewest, most });
    this.#fillHint();
  }

  async #load() {
    const version = this.store.state.version;
    this.#show(null, "Grouping …");
    try {
      const preview = await previewRegroup(this.store.id);
      if (version === this.store.state.version) this.#show(preview, preview.note);
    } catch (error) {
      this.#show(null, error instanceof Refused ? error.message : "The server does not answer. Close this window and try again.");
    }
  }

  #show(preview, note) {
    this.#preview = preview;
    const { state, items } = this.store;
    setText(byId("regroup-note"), note);
    const changes = preview?.changes ?? [];
    byId("regroup-accept").disabled = !changes.length;
    setText(byId("regroup-summary"), !preview ? ""
      : !changes.length ? `Nothing would change: ${amount(state.count, "polyp")}.`
      : `${amount(preview.count, "polyp")} (${range(preview.low, preview.high)}) instead of ${state.count}; ${amount(changes.length, "tracklet")} would move.`);
    byId("regroup-changes").replaceChildren(...changes.slice(0, MOST_SHOWN).map((change) => {
      const item = items.get(change.item);
      const picture = showPicture(pictureFrame("picture small"), clearestCrop(this.store, change.item), change.from, "", { box: false });
      return make("li", { "data-item": change.item }, picture,
        make("span", { class: "change-item", text: item ? itemSpan(item) : change.item }),
        badge(change.from), make("span", { class: "soft", text: "to" }), badge(change.to));
    }));
    if (changes.length > MOST_SHOWN) byId("regroup-changes").append(make("li", { class: "soft", text: `and ${changes.length - MOST_SHOWN} more` }));
  }

  async #accept() {
    const preview = this.#preview;
    if (!preview || preview.version !== this.store.state.version) return this.#load();
    this.dialog.close();
    await this.decisions.decide({ kind: "regroup", polyp_of: preview.polyp_of });
  }
}
