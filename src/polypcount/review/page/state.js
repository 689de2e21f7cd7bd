// What the page knows: the state as the server sent it last, and what the person has selected.

/** Names of what can be listened to: "state", "selection", "playhead", "questions", "saving". */
export class Store {
  #listeners = new Map();

  constructor(id) {
    this.id = id;
    this.state = null;
    this.items = new Map();
    this.polyps = new Map();
    this.selected = new Set();
    this.current = null;
    this.polyp = null;
    this.playhead = 0;
    this.skipped = new Set();
  }

  on(name, react) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, []);
    this.#listeners.get(name).push(react);
  }

  tell(name, detail = null) {
    for (const react of this.#listeners.get(name) ?? []) react(detail);
  }

  /** Takes a new state; what is selected stays selected as far as it still exists. */
  take(state) {
    this.state = state;
    this.items = new Map(state.items.map((item) => [item.id, item]));
    this.polyps = new Map(state.polyps.map((polyp) => [polyp.number, polyp]));
    for (const id of this.selected) if (!this.items.has(id)) this.selected.delete(id);
    if (!this.items.has(this.current)) this.current = null;
    if (this.polyp !== null) this.#followPolyp();
    this.tell("state");
  }

  // The selected polyp may have gained or lost tracklets, or have become part of another one.
  #followPolyp() {
    if (!this.polyps.has(this.polyp)) this.polyp = this.items.get(this.current)?.polyp ?? null;
    if (this.polyp !== null) this.selected = new Set(this.polyps.get(this.polyp).items);
  }

  /** Selects one tracklet alone. */
  selectItem(id) {
    this.#select([id], id, null);
  }

  /** Selects several tracklets; `current` is the one that is shown. */
  selectItems(ids, current) {
    this.#select(ids, current, null);
  }

  /** Adds a tracklet to the selection, or takes it out. */
  toggleItem(id) {
    const ids = new Set(this.selected);
    if (ids.has(id)) ids.delete(id);
    else ids.add(id);
    const current = ids.has(id) ? id : ([...ids].at(-1) ?? null);
    this.#select(ids, current, null);
  }

  /** Selects a polyp with all its tracklets. */
  selectPolyp(number) {
    const polyp = this.polyps.get(number);
    if (polyp) this.#select(polyp.items, polyp.best ?? polyp.items[0], number);
  }

  clearSelection() {
    this.#select([], null, null);
  }

  #select(ids, current, polyp) {
    this.selected = new Set(ids);
    this.current = current;
    this.polyp = polyp;
    this.tell("selection");
  }

  /** The numbers of the polyps that the selected tracklets belong to, in order. */
  selectedPolyps() {
    const numbers = new Set([...this.selected].map((id) => this.items.get(id).polyp));
    numbers.delete(null);
    return [...numbers].sort((a, b) => a - b);
  }

  /** The polyp that is meant: the selected one, or that of the tracklet which is shown. */
  meantPolyp() {
    return this.polyp ?? this.items.get(this.current)?.polyp ?? null;
  }

  setPlayhead(frame) {
    this.playhead = frame;
    this.tell("playhead");
  }
}

/** The tracklets of a lane in order of time; null for those that are not counted. */
export function itemsOf(store, number) {
  return store.state.items
    .filter((item) => item.polyp === number)
    .sort((a, b) => a.start_frame - b.start_frame || a.stop_frame - b.stop_frame);
}
