// The bar at the top: the count, whether everything is saved, and what concerns the whole procedure.

import { byId, lessMotion, setAttribute, setText } from "./dom.js";
import { range } from "./words.js";

export class TopBar {
  #count = null;

  constructor(store, decisions) {
    Object.assign(this, { store, decisions });
    byId("retry").addEventListener("click", () => decisions.retry());
    store.on("state", () => this.#update());
    store.on("saving", () => this.#showSaved());
    window.addEventListener("beforeunload", (event) => decisions.unsaved && event.preventDefault());
  }

  #update() {
    const { state } = this.store;
    const { count, low, high, original } = state;
    document.title = `${state.name}: review`;
    setText(byId("procedure-name"), state.name);
    setAttribute(byId("procedure-name"), "title", state.name);
    setText(byId("count"), count);
    setText(byId("count-word"), count === 1 ? "distinct polyp" : "distinct polyps");
    const interval = low === null || high === null ? "" : range(low, high);
    setText(byId("interval"), interval);
    setText(byId("original"), count === original.count ? "as counted at first" : `counted at first: ${original.count}`);
    if (this.#count !== null && this.#count !== count) this.#flash();
    if (this.#count !== null) setText(byId("announce"), `${count} polyps${interval ? `, ${interval}` : ""}`);
    this.#count = count;
    this.#name(byId("undo"), "Undo", state.undo, "Ctrl+Z");
    this.#name(byId("redo"), "Redo", state.redo, "Ctrl+Shift+Z");
    this.#showSaved();
  }

  #name(button, word, text, keys) {
    setAttribute(button, "title", text ? `${word}: ${text} (${keys})` : `Nothing to ${word.toLowerCase()}`);
    setAttribute(button, "aria-label", text ? `${word}: ${text}` : word);
    setAttribute(button, "aria-disabled", text ? null : "true");
  }

  #flash() {
    if (lessMotion()) return;
    byId("count").animate([{ transform: "scale(1.25)" }, { transform: "none" }], { duration: 350, easing: "ease-out" });
  }

  // "Saved" is said only when the server has confirmed everything.
  #showSaved() {
    const { unsaved, stuck, connected, savedAny } = this.decisions;
    const lost = unsaved > 0 && stuck;
    const words = lost ? `Not saved: ${unsaved} waiting`
      : unsaved ? "Saving …"
      : !connected ? "No connection"
      : savedAny || this.store.state?.decisions.length ? "Saved" : "No changes yet";
    const kind = lost || !connected ? "lost" : unsaved ? "saving" : "saved";
    setText(byId("saved"), words);
    setAttribute(byId("saved"), "data-state", kind);
    byId("retry").hidden = !lost;
  }
}

/** Shows one sentence about what just happened. Errors stay longer. */
export function makeNotify() {
  const root = byId("notice");
  const text = byId("notice-text");
  let timer = null;
  byId("notice-close").addEventListener("click", () => (root.hidden = true));
  return (message, kind = "info") => {
    clearTimeout(timer);
    root.hidden = false;
    setAttribute(root, "data-kind", kind);
    // Said again even if it is the same sentence as before.
    text.textContent = "";
    text.textContent = message[0].toUpperCase() + message.slice(1);
    timer = setTimeout(() => (root.hidden = true), kind === "error" ? 15000 : 6000);
  };
}
