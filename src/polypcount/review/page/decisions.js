// Decisions on their way to the server: one after the other, each with the newest version.

import { NoAnswer, Refused, loadState, loadVersion, sendDecision } from "./api.js";
import { author } from "./author.js";

const POLL_MS = 1000;
const LOOK = "The page now shows the newest state; please look and decide again.";

export class Decisions {
  #waiting = [];
  #running = false;
  #doubt = false;
  #looking = false;
  #over = false;

  /** `startOver(message)` opens the page afresh, and says why there. */
  constructor(store, notify, startOver) {
    Object.assign(this, { store, notify, startOver });
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
      const state = await sendDecision(this.store.id, this.store.state, author(), decision);
      this.#waiting.shift();
      this.connected = true;
      this.savedAny = true;
      this.#doubt = false;
      resolve(true);
      this.store.take(state);
    } catch (error) {
      if (error instanceof NoAnswer) this.#wait();
      else await this.#refused(error);
    }
    this.store.tell("saving");
  }

  async #refused(error) {
    this.connected = true;
    if (error.status === 409) this.#overtaken(error.body?.state);
    else if (error.status >= 500) await this.#broken(error);
    else {
      const words = error.status === 401 ? `Not saved. ${error.message}` : error.message;
      const rest = "What you decided after that was not taken either; please look and decide again.";
      this.notify(this.#drop() > 1 ? `${sentence(words)} ${rest}` : words, "error");
    }
  }

  // What was decided after a decision that was not taken was meant for a state that never came, so none of it is sent.
  #drop() {
    const lost = this.#waiting.splice(0);
    for (const { resolve } of lost) resolve(false);
    return lost.length;
  }

  // The server may or may not have taken the decision before the connection broke. `#doubt` keeps that in mind.
  #wait() {
    this.connected = false;
    this.stuck = true;
    this.#doubt = true;
    this.notify("Not saved: the server does not answer. Your decision is kept here; try again when the server runs.", "error");
  }

  // Somebody else decided meanwhile, or the recording was counted again.
  #overtaken(state) {
    const words = notTaken(this.#drop());
    if (state && this.#isRecounted(state)) return this.#leave(`${words}, because this recording was counted anew.`);
    if (state) this.store.take(state);
    if (this.#doubt && state) this.notify(`The connection broke while a decision was being saved. ${onRecord(state)}`, "error");
    else this.notify(`${words}, because the review was changed in another window. ${LOOK}`, "error");
    this.#doubt = false;
    return undefined;
  }

  // The server has a fault. To send the same again would meet it again, and only the record tells what was saved.
  async #broken(error) {
    const before = this.store.state.version;
    const state = await loadState(this.store.id).catch(() => null);
    const words = notTaken(this.#drop());
    if (state && this.#isRecounted(state)) return this.#leave(`${words}, because this recording was counted anew.`);
    if (state) this.store.take(state);
    const outcome = !state ? "It is not known whether your decision was saved; please look."
      : state.version === before ? `${words}.` : onRecord(state);
    this.notify(`${sentence(error.message)} ${outcome}`, "error");
    this.#doubt = false;
    return undefined;
  }

  #isRecounted(state) {
    return state.count_id !== this.store.state.count_id;
  }

  // Another count has other tracklets under the same names.
  #leave(message) {
    if (this.#over) return;
    this.#over = true;
    this.startOver(message);
  }

  /** Asks once a second whether another window has changed something. Nothing is asked while the page is hidden. */
  watch() {
    const timer = setInterval(() => this.#look(), POLL_MS);
    return () => clearInterval(timer);
  }

  async #look() {
    if (document.hidden || this.#running || this.#looking || this.#over) return;
    this.#looking = true;
    try {
      const newest = await loadVersion(this.store.id);
      if (!this.connected && !this.#waiting.length) this.notify("The server answers again.");
      this.connected = true;
      // What waits was decided on the state that is shown, and only its version tells whether the server has it already.
      const shown = this.store.state;
      if (this.#waiting.length || (newest.version === shown.version && !this.#isRecounted(newest))) return;
      const state = await loadState(this.store.id);
      // A decision of this window may have been answered while the state was on its way.
      if (this.#waiting.length || this.store.state !== shown) return;
      if (this.#isRecounted(state)) return this.#leave("This recording was counted anew.");
      if (state.version === shown.version) return;
      this.store.take(state);
      this.notify("The review was changed in another window.");
    } catch (error) {
      if (error.status === 401 && this.connected) this.notify(error.message, "error");
      if (error instanceof NoAnswer || error.status === 401) this.connected = false;
    } finally {
      this.#looking = false;
      this.store.tell("saving");
    }
  }
}

const sentence = (text) => `${text.replace(/\.$/, "")}.`;

const notTaken = (lost) => `${lost === 1 ? "Your decision was" : `Your last ${lost} decisions were`} not taken`;

function onRecord({ decisions }) {
  const newest = decisions.at(-1)?.text ?? "none";
  return `The newest decision on record is now: ${newest}. If that is not yours, please decide again.`;
}
