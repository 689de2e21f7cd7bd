// Starts the page: the list of procedures, or the review of one.

import { Actions } from "./actions.js";
import { listProcedures, loadState } from "./api.js";
import { rememberAuthor } from "./author.js";
import { TopBar, makeNotify } from "./bar.js";
import { Cards } from "./cards.js";
import { textureDefinitions } from "./colours.js";
import { Decisions } from "./decisions.js";
import { choosePolyp, fillAbout, fillHelp, fillHistory, openDialog, openExport, prepareDialogs, prepareExport } from "./dialogs.js";
import { byId, setAttribute, setText } from "./dom.js";
import { Dragging } from "./drag.js";
import { DrawBox } from "./drawbox.js";
import { keyTable, listenToKeys } from "./keys.js";
import { List } from "./list.js";
import { fitTimeline, preparePanels, showPanel } from "./panels.js";
import { Player } from "./player.js";
import { Queue } from "./queue.js";
import { Regroup } from "./regroup.js";
import { Similar } from "./similar.js";
import { Store } from "./state.js";
import { Timeline } from "./timeline.js";
import { Walk } from "./walk.js";
import { amount } from "./words.js";

const notify = makeNotify();

async function start() {
  // The token opened the page; it should not stay in the address, from where it is copied by accident.
  if (location.search) history.replaceState(null, "", location.pathname + location.hash);
  document.body.append(textureDefinitions());
  prepareDialogs();
  // Each procedure gets a fresh page, so that nothing of the one before stays behind.
  window.addEventListener("hashchange", () => location.reload());
  try {
    // One procedure opens without the list, for which the server must open all of them.
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (wanted) await review(wanted);
    else await listOrOnly();
  } catch (error) {
    console.error(error);
    setText(byId("starting"), `The page could not be opened: ${error.message}`);
    return;
  }
  byId("starting").hidden = true;
}

async function listOrOnly() {
  const answer = await listProcedures();
  const [first, ...others] = answer.procedures;
  if (others.length || first?.state !== "counted") return new List((id) => (location.hash = id), notify).start(answer);
  byId("to-list").hidden = true;
  return review(first.id);
}

// After a new count, nothing of the page may stay: not even an open window or a text that is being typed.
function startOver(message) {
  history.replaceState({ message }, "");
  location.reload();
}

async function review(id) {
  const store = new Store(id);
  const state = await loadState(id);
  byId("review").hidden = false;
  rememberAuthor();
  preparePanels();

  const decisions = new Decisions(store, notify, startOver);
  const actions = new Actions(store, decisions, notify);
  new TopBar(store, decisions);
  const player = new Player(store);
  const timeline = new Timeline(store, (frame) => player.seekRecording(frame));
  const regroup = new Regroup(store, decisions);
  const queue = new Queue(store, decisions);
  new Similar(store, actions);
  const walk = new Walk(store, timeline);
  const drawBox = new DrawBox(store, player, actions, notify);

  const open = {
    move: () => chooseTarget(store, actions),
    merge: () => (store.selectedPolyps().length > 1 ? actions.mergeSelected() : open.mergeOf(store.meantPolyp())),
    mergeOf: (number) => chooseMerge(store, actions, number),
    regroup: () => regroup.open(),
    panel: (name) => showPanel(name),
    history: () => fillHistory(store, actions) ?? openDialog("history-dialog"),
    export: () => openExport(store),
    about: () => fillAbout(store) ?? openDialog("about-dialog"),
    help: () => openDialog("help-dialog"),
  };
  new Cards(store, actions, {
    chooseMerge: (number) => open.mergeOf(number),
    showFrame: (item, frame) => {
      store.selectItem(item);
      player.seekRecording(frame);
    },
  });
  new Dragging(store, timeline, actions);
  prepareExport(store, decisions);
  const keys = keyTable({ store, timeline, player, actions, queue, walk, open, drawBox, decisions });
  fillHelp(keys);
  listenToKeys(keys);

  const clicks = {
    "undo": () => actions.undo(), "redo": () => actions.redo(),
    "regroup": open.regroup, "export": open.export, "help": open.help, "history": open.history, "about": open.about,
    "zoom-in": () => timeline.zoom(1), "zoom-out": () => timeline.zoom(-1), "zoom-whole": () => timeline.whole(), "zoom-fit": () => timeline.fitSelection(),
    "move": open.move, "new-polyp": () => actions.moveSelection("new"), "not-polyp": () => actions.moveSelection("none"),
    "merge": open.merge, "split": () => actions.splitAtPlayhead(),
  };
  for (const [name, react] of Object.entries(clicks)) byId(name).addEventListener("click", () => react());

  const showSelection = () => {
    setText(byId("selection"), actions.selectionText());
    const some = store.selected.size > 0;
    for (const name of ["move", "new-polyp", "not-polyp", "merge", "split"]) setAttribute(byId(name), "aria-disabled", some ? null : "true");
  };
  store.on("selection", showSelection);
  store.on("state", showSelection);
  store.on("state", () => byId("history-dialog").open && fillHistory(store, actions));

  store.take(state);
  fitTimeline(timeline.layout.height, timeline.layout.rest.height);
  showFirst(store, player);
  sayFirst(state);
  decisions.watch();
}

// Why the page was opened afresh, and what belongs to an older count.
function sayFirst({ earlier_decisions: earlier }) {
  const message = history.state?.message ?? "";
  const old = earlier ? `${amount(earlier, "decision")} belong${earlier === 1 ? "s" : ""} to an older count of this recording; see “History”.` : "";
  if (message || old) notify(`${message} ${old}`.trim(), message ? "error" : "info");
  if (message) history.replaceState(null, "");
}

// So that the page does not begin with an empty player.
function showFirst(store, player) {
  const first = store.state.polyps[0]?.best ?? store.state.items[0]?.id;
  if (!first) return player.seekRecording(0);
  const item = store.items.get(first);
  store.selectItem(first);
  player.seekRecording(item.whole?.frame ?? item.start_frame);
}

function chooseTarget(store, actions) {
  if (!store.selected.size) return notify("Select a tracklet first: click a bar of the timeline.");
  const ids = [...store.selected];
  choosePolyp(store, {
    title: `Move ${ids.length === 1 ? store.items.get(ids[0]).name : `${ids.length} tracklets`} to`,
    numbers: store.state.polyps.map((polyp) => polyp.number),
    extra: [{ value: "new", text: "A new polyp" }, { value: "none", text: "Not counted (not a polyp)" }],
    chosen: (target) => actions.moveTo(ids, target),
  });
}

function chooseMerge(store, actions, number) {
  if (number === null) return notify("Select a polyp first: click its name beside the timeline.");
  const others = store.state.polyps.map((polyp) => polyp.number).filter((other) => other !== number);
  if (!others.length) return notify("There is no other polyp to merge with.");
  choosePolyp(store, { title: `Polyp ${number} is the same polyp as`, numbers: others, chosen: (other) => actions.merge(number, other) });
}

start();
