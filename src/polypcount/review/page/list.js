// The list of procedures: what is left to do in each, and counting those that are not counted yet.

import { NoAnswer, listProcedures, startCount, stopCount } from "./api.js";
import { byId, keepList, make, setAttribute, setText } from "./dom.js";
import { amount, percent } from "./words.js";

const POLL_MS = 1000;
const COLUMNS = ["name", "state", "count", "at first", "questions", "decisions", "action"];

const STATES = { "counted": "Counted", "not counted": "Not counted yet", "counting": "Counting", "failed": "Could not be counted" };

export class List {
  #asking = 0;
  #turn = 0;

  constructor(open, notify) {
    Object.assign(this, { open, notify });
  }

  /** Shows the list and keeps it up to date while the page is visible. */
  start(answer) {
    byId("list").hidden = false;
    this.#draw(answer);
    // A slow server is not asked again before it has answered.
    setInterval(() => document.hidden || this.#asking || this.#refresh(), POLL_MS);
  }

  async #refresh() {
    this.#turn += 1;
    const turn = this.#turn;
    this.#asking += 1;
    try {
      const answer = await listProcedures();
      // What was asked for last is the newest.
      if (turn === this.#turn) this.#draw(answer);
    } catch (error) {
      this.notify(error.message, "error");
    } finally {
      this.#asking -= 1;
    }
  }

  #draw({ folder, sums, procedures }) {
    document.title = `${folder}: procedures to review`;
    setText(byId("folder"), folder);
    setText(byId("sum-counted"), `${sums.counted} of ${procedures.length}`);
    setText(byId("sum-polyps"), sums.polyps);
    setText(byId("sum-questions"), sums.questions);
    byId("no-procedures").hidden = procedures.length > 0;
    keepList(byId("procedure-rows"), procedures, (one) => one.id, (one) => this.#makeRow(one), (row, one) => this.#updateRow(row, one));
  }

  #makeRow({ id }) {
    const cells = Object.fromEntries(COLUMNS.map((name) => [name, make("td", { class: name.replace(" ", "-") })]));
    const link = make("a", { href: `#${id}`, class: "procedure-link" });
    const heading = make("span");
    cells.name = make("th", { scope: "row" }, link, heading);
    const words = make("span", { class: "state-words" });
    const progress = make("progress", { max: 1 });
    const message = make("span", { class: "message" });
    cells.state.append(words, progress, message);
    const button = make("button", { type: "button" });
    cells.action.append(button);
    const row = make("tr", { "data-procedure": id }, ...COLUMNS.map((name) => cells[name]));
    button.addEventListener("click", () => this.#act(row.procedure));
    return Object.assign(row, { cellOf: cells, link, heading, words, progress, message, button });
  }

  #updateRow(row, one) {
    row.procedure = one;
    const counted = one.state === "counted";
    setText(row.link, counted ? one.name : "");
    row.link.hidden = !counted;
    setText(row.heading, counted ? "" : one.name);
    // A count that is there, but cannot be opened, cannot be made again from here.
    const broken = one.state === "failed" && one.counted;
    setText(row.words, counted && one.reviewed ? "Reviewed" : broken ? "Cannot be opened" : STATES[one.state] ?? one.state);
    setAttribute(row.words, "data-state", counted && one.reviewed ? "reviewed" : one.state);
    row.progress.hidden = one.state !== "counting";
    if (one.progress !== null) setAttribute(row.progress, "value", one.progress);
    setAttribute(row.progress, "aria-label", `Counting ${one.name}${one.progress === null ? "" : `: ${percent(one.progress)}`}`);
    setText(row.message, one.message);
    const interval = one.interval ? ` (${one.interval[0]} to ${one.interval[1]})` : "";
    setText(row.cellOf.count, one.count === null ? "" : `${one.count}${interval}`);
    setText(row.cellOf["at first"], one.original_count ?? "");
    setText(row.cellOf.questions, one.questions ?? "");
    setText(row.cellOf.decisions, counted ? one.decisions : "");
    const word = counted ? (one.decisions ? "Continue" : "Review") : one.state === "counting" ? "Stop" : one.state === "failed" ? "Try again" : "Count";
    row.button.hidden = broken;
    setText(row.button, word);
    row.button.classList.toggle("primary", counted);
    setAttribute(row.button, "aria-label", `${word}: ${one.name}`);
  }

  async #act(one) {
    if (one.state === "counted") return this.open(one.id);
    try {
      await (one.state === "counting" ? stopCount(one.id) : startCount(one.id));
      await this.#refresh();
    } catch (error) {
      const cause = error instanceof NoAnswer ? "The server does not answer." : error.message;
      this.notify(`${amount(1, "recording")} could not be ${one.state === "counting" ? "stopped" : "started"}: ${cause}`, "error");
    }
  }
}
