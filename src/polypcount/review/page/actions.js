// What a person can do with what is selected. Buttons, keys and dragging all come here.

import { amount } from "./words.js";

export class Actions {
  constructor(store, decisions, notify) {
    this.store = store;
    this.decisions = decisions;
    this.notify = notify;
  }

  /** Tracklets go to a polyp (its number), to "new", or to "none" (not counted). */
  async moveTo(ids, target) {
    const moved = [...ids].filter((id) => String(this.store.items.get(id)?.polyp ?? "none") !== String(target));
    if (!moved.length) return false;
    const decision = target === "none"
      ? { kind: "not a polyp", items: moved }
      : { kind: "move", items: moved, polyp: target === "new" ? null : Number(target) };
    const current = this.store.current;
    const taken = await this.decisions.decide(decision);
    // A polyp that was selected as a whole is now these tracklets somewhere else.
    if (taken && this.store.polyp === null && this.store.items.has(current)) this.store.tell("selection");
    return taken;
  }

  /** Moves what is selected, or says that nothing is. */
  moveSelection(target) {
    if (!this.store.selected.size) return this.#nothingSelected();
    return this.moveTo(this.store.selected, target);
  }

  merge(into, other) {
    if (into === other) return false;
    return this.decisions.decide({ kind: "merge", polyp: into, other });
  }

  /** Merges all polyps that have a selected tracklet into the one with the lowest number. */
  async mergeSelected() {
    const [into, ...others] = this.store.selectedPolyps();
    for (const other of others) if (!(await this.merge(into, other))) return;
  }

  unmerge(decision) {
    return this.decisions.decide({ kind: "unmerge", decision });
  }

  /** Everything of the polyp that starts at or after `frame` becomes a new polyp. */
  split(polyp, frame) {
    return this.decisions.decide({ kind: "split", polyp, frame });
  }

  splitAtPlayhead() {
    const polyp = this.store.meantPolyp();
    if (polyp === null) return this.#nothingSelected();
    const { items } = this.store.polyps.get(polyp);
    const starts = items.map((id) => this.store.items.get(id).start_frame);
    const later = starts.filter((start) => start >= this.store.playhead).length;
    if (!later || later === items.length) {
      this.notify(`Polyp ${polyp} has tracklets on one side of the playhead only. Move the playhead to a gap between its tracklets.`);
      return false;
    }
    return this.split(polyp, this.store.playhead);
  }

  /** "This tracklet shows the same polyp as that one", said about two tracklets of the page. */
  samePolyp(first, second) {
    const [one, two] = [this.store.items.get(first), this.store.items.get(second)];
    if (one.polyp === null && two.polyp === null) return this.decisions.decide({ kind: "move", items: [first, second], polyp: null });
    if (two.polyp === null) return this.moveTo([second], one.polyp);
    if (one.polyp === null) return this.moveTo([first], two.polyp);
    return this.merge(one.polyp, two.polyp);
  }

  describe(polyp, fields) {
    return this.decisions.decide({ kind: "describe", polyp, ...fields });
  }

  add(frame, box) {
    return this.decisions.decide({ kind: "add", frame, box });
  }

  undo() {
    if (this.store.state.undo || this.decisions.unsaved) return this.decisions.decide({ kind: "undo" });
    this.notify("There is nothing to undo.");
    return false;
  }

  redo() {
    if (this.store.state.redo || this.decisions.unsaved) return this.decisions.decide({ kind: "redo" });
    this.notify("There is nothing to redo.");
    return false;
  }

  /** One line about what is selected. */
  selectionText() {
    const { selected, polyp, current, items } = this.store;
    if (!selected.size) return "Nothing selected";
    if (polyp !== null) return `Polyp ${polyp}, ${amount(selected.size, "tracklet")}`;
    if (selected.size > 1) return `${selected.size} tracklets selected`;
    const item = items.get(current);
    const name = item.name[0].toUpperCase() + item.name.slice(1);
    return item.polyp === null ? `${name}, not counted` : `${name} of polyp ${item.polyp}`;
  }

  #nothingSelected() {
    this.notify("Select a tracklet first: click a bar of the timeline.");
    return false;
  }
}
