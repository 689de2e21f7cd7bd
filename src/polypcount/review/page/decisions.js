// Decisions on their way to the server: one after the other, each with the newest version.

import { NoAnswer, Refused, loadState, loadVersion, sendDecision } from "./api.js";
import { author } from "./author.js";

const POLL_MS = 1000;

export class Decisions {
  #waiting = [];
  #running = false;
  #doubt = false;
  #original = null;
  #looking = false;

  constructor(store, notify) {
    this.store = store;
    this.notify = notify;
    this.connected = true;
    this.stuck = false;
    this.savedAny = false;
  }

  /** How many decisions the server has not confirmed. */
  get unsaved() {
    return this.#waiting.length;
  }

  /** Sends a decision; resolves to whether it was taken. Decisions that come fast wait for those before them. */
  decide(decision) {
    return new Promise((resolve) => {
      this.#waiting.push({ decision, resolve });
      this.store.tell("saving");
      this.#run();
    });
  }

  /** Tries again after the connection was lost. */
  retry() {
    this.stuck = false;
    this.#run();
  }

  async #run() {
    if (this.#running || this.stuck) return;
    this.#running = true;
    while (this.#waiting.length && !this.stuck) await this.#sendFirst();
    this.#running = false;
    this.store.tell("saving");
  }

  async #sendFirst() {
    const { decision, resolve } = this.#waiting[0];
    try {
      const state = await sendDecision(this.store.id, this.store.state.version, author(), decision);
      this.#waiting.shift();
      this.connected = true;
      this.savedAny = true;
      this.#doubt = false;
      this.store.take(state);
      resolve(true);
    } catch (error) {
      if (error instanceof Refused) this.connected = true;
      if (error instanceof NoAnswer) this.#wait();
      else if (error instanceof Refused && error.status === 409) this.#overtaken(error);
      else {
        this.#waiting.shift();
        this.notify(error.status === 401 ? `Not saved. ${error.message}` : error.message, "error");
        resolve(false);
      }
    }
    this.store.tell("saving");
  }

  // The server may or may not have taken the decision before the connection broke. `#doubt` keeps that in mind.
  #wait() {
    this.connected = false;
    this.stuck = true;
    this.#doubt = true;
    this.notify("Not saved: the server does not answer. Your decision is kept here; try again when the server runs.", "error");
  }

  // Somebody else decided meanwhile. What still waits was decided on an old view, so none of it is sent.
  #overtaken(error) {
    const lost = this.#waiting.splice(0);
    const newest = error.body?.state?.decisions?.at(-1)?.text;
    if (error.body?.state) this.store.take(error.body.state);
    for (const { resolve } of lost) resolve(false);
    const what = lost.length === 1 ? "Your decision was" : `Your last ${lost.length} decisions were`;
    if (this.#doubt && newest) {
      this.notify(`The connection broke while a decision was being saved. The newest decision on record is now: ${newest}. `
        + "If that is not yours, please decide again.", "error");
    } else {
      this.notify(`${what} not taken, because the review was changed in another window. `
        + "The page now shows the newest state; please look and decide again.", "error");
    }
    this.#doubt = false;
  }

  /** Asks once a second whether another window has changed something. Nothing is asked while the page is hidden. */
  watch() {
    const timer = setInterval(() => this.#look(), POLL_MS);
    return () => clearInterval(timer);
  }

  async #look() {
    if (document.hidden || this.#running || this.#looking) return;
    this.#looking = true;
    try {
      const { version, original } = await loadVersion(this.store.id);
      const recounted = this.#original !== null && original !== this.#original;
      this.#original = original;
      if (!this.connected && !this.#waiting.length) this.notify("The server answers again.");
      this.connected = true;
      // What waits was decided on the state that is shown, and only its version tells whether the server has it already.
      if (this.#waiting.length || (version === this.store.state.version && !recounted)) return;
      const state = await loadState(this.store.id);
      // A decision of this window may have been answered while the state was on its way.
      if (this.#waiting.length || (state.version === this.store.state.version && !recounted)) return;
      this.store.take(state);
      this.notify(recounted ? "This recording was counted anew." : "The review was changed in another window.");
    } catch (error) {
      if (error.status === 401 && this.connected) this.notify(error.message, "error");
      if (error instanceof NoAnswer || error.status === 401) this.connected = false;
    } finally {
      this.#looking = false;
      this.store.tell("saving");
    }
  }
}
