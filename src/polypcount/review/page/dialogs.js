// The windows that lie over the page: help, choosing a polyp, what was decided, export.

import { Refused, exportCorrected } from "./api.js";
import { author } from "./author.js";
import { badge } from "./colours.js";
import { byId, make, setText } from "./dom.js";
import { clearestCrop, pictureFrame, showPicture } from "./pictures.js";
import { amount, dateTime, polypTitle, range } from "./words.js";

/** Whether a window lies over the page. */
export const dialogOpen = () => document.querySelector("dialog[open]") !== null;

/** Opens a window; the focus comes back to where it was when it is closed. */
export function openDialog(id) {
  const dialog = byId(id);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

/** Lets the close buttons, and a click beside the window, close it. */
export function prepareDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
  }
}

/** Lists the keys, from the same table that reacts to them. */
export function fillHelp(groups) {
  byId("help-keys").replaceChildren(...groups.map(({ title, keys }) => make("section", {},
    make("h3", { text: title }),
    make("dl", {}, ...keys.map(({ shown, text }) => make("div", {},
      make("dt", {}, ...shown.split(" ").map((key) => (key === "or" ? document.createTextNode(" or ") : make("kbd", { text: key })))),
      make("dd", { text })))))));
}

/** Lets the person choose a polyp. `extra`: further choices [{value, text}]; `chosen(value)` gets a number or a value. */
export function choosePolyp(store, { title, numbers, extra = [], chosen }) {
  const dialog = byId("choose-dialog");
  setText(byId("choose-title"), title);
  const choose = (value) => {
    dialog.close();
    chosen(value);
  };
  const polyps = numbers.map((number) => {
    const polyp = store.polyps.get(number);
    const picture = showPicture(pictureFrame("picture small"), clearestCrop(store, polyp.best), number, "", { box: false });
    return make("button", { type: "button", class: "choice", "data-choice": number, on: { click: () => choose(number) } },
      picture, badge(number), make("span", { text: polypTitle(store.state, number) }), make("span", { class: "soft", text: amount(polyp.items.length, "tracklet") }));
  });
  const others = extra.map(({ value, text }) =>
    make("button", { type: "button", class: "choice", "data-choice": value, on: { click: () => choose(value) } }, make("span", { text })));
  const list = byId("choices");
  list.replaceChildren(...polyps, ...others);
  list.onkeydown = (event) => moveInList(event, list);
  openDialog("choose-dialog");
  list.firstElementChild?.focus();
}

// Up and down go through the choices; digits go to the polyp with this number.
function moveInList(event, list) {
  const choices = [...list.children];
  const now = choices.indexOf(document.activeElement);
  const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: choices.length - 1 }[event.key];
  const target = next !== undefined
    ? choices[(next + choices.length) % choices.length]
    : choices.find((choice) => event.key.length === 1 && choice.dataset.choice.startsWith(event.key));
  if (!target) return;
  event.preventDefault();
  target.focus();
}

/** What was decided so far, newest first, and which merges can be taken back. */
export function fillHistory(store, actions) {
  const { decisions, merges, earlier_decisions: earlier } = store.state;
  const old = byId("history-earlier");
  old.hidden = !earlier;
  setText(old, `${amount(earlier, "decision")} belong${earlier === 1 ? "s" : ""} to an older count of this recording. They are kept, but have no effect here.`);
  byId("history-none").hidden = decisions.length > 0;
  const merge = new Map(merges.map((one) => [one.decision, one]));
  byId("history-rows").replaceChildren(...[...decisions].reverse().map((decision) => make("tr", { class: decision.undone ? "undone" : null },
    make("td", { class: "number", text: decision.number }),
    make("td", { text: dateTime(decision.time) }),
    make("td", { text: decision.author }),
    make("td", {}, make("span", { text: decision.text }), decision.undone ? make("span", { class: "soft", text: " (undone)" }) : null),
    make("td", {}, merge.has(decision.number)
      ? make("button", { type: "button", class: "unmerge", text: "Take back the merge", on: { click: () => actions.unmerge(decision.number) } })
      : null))));
}

/** The original count, and what the interval says. */
export function fillAbout(store) {
  const { original, certain, count, low, high } = store.state;
  setText(byId("about-now"), `${amount(count, "polyp")} after your review${low === null ? "" : `, ${range(low, high)}`}. ${certain ?? ""}`);
  setText(byId("about-original"), `Counted at first: ${amount(original.count, "polyp")}${original.low === null ? "" : `, ${range(original.low, original.high)}`}. ${original.meaning ?? ""}`);
  byId("about-remarks").replaceChildren(...(original.remarks ?? []).map((text) => make("li", { text })));
}

/** Writes the corrected files. All decisions must have been saved before. */
export function prepareExport(store, decisions) {
  const button = byId("export-start");
  const result = byId("export-result");
  button.addEventListener("click", async () => {
    if (decisions.unsaved) return setText(result, "Not all decisions are saved yet. Please wait, or try to save again.");
    const formats = [...document.querySelectorAll("#export-dialog input[name=format]:checked")].map((box) => box.value);
    button.disabled = true;
    setText(result, "Writing …");
    try {
      const { folder, files, count } = await exportCorrected(store.id, store.state, author(), formats);
      result.replaceChildren(
        make("p", {}, make("strong", { text: `Written: ${amount(count, "polyp")}.` }), make("span", { text: ` The files are in the folder “${folder}”.` })),
        make("ul", {}, ...files.map((file) => make("li", { text: file }))));
    } catch (error) {
      setText(result, error instanceof Refused ? error.message : "Not written: the server does not answer. Please try again.");
    } finally {
      button.disabled = false;
    }
  });
}

/** Opens the export with the name of who reviews. */
export function openExport(store) {
  byId("export-result").replaceChildren();
  setText(byId("export-author"), author() || "nobody named; the field is in the bar at the top");
  setText(byId("export-count"), amount(store.state.count, "polyp"));
  openDialog("export-dialog");
}
