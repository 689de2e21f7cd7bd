// The keys: one table, for the page and for the help.

import { dialogOpen } from "./dialogs.js";

/**
 * The keys in groups: [{title, keys: [{keys, shown, text, run}]}]. `keys` are values of `KeyboardEvent.key` in small
 * letters, with "ctrl+" or "shift+" before them; `run(event)` may return false to leave the key to the browser.
 */
export function keyTable({ store, timeline, player, actions, queue, walk, open, drawBox, decisions }) {
  return [
    { title: "Questions", keys: [
      { keys: ["y"], shown: "Y", text: "Yes, one polyp; or yes, a polyp", run: () => queue.answer(true) },
      { keys: ["n"], shown: "N", text: "No, two polyps; or no polyp", run: () => queue.answer(false) },
      { keys: ["s"], shown: "S", text: "Skip this question for now", run: () => queue.skip() },
    ] },
    { title: "Player", keys: [
      { keys: [" "], shown: "Space", text: "Play or pause", run: () => player.toggle() },
      { keys: [","], shown: ",", text: "One frame back", run: () => player.step(-1) },
      { keys: ["."], shown: ".", text: "One frame forward", run: () => player.step(1) },
      { keys: ["shift+,", "shift+;", "shift+<"], shown: "Shift ,", text: "Ten frames back", run: () => player.step(-10) },
      { keys: ["shift+.", "shift+:", "shift+>"], shown: "Shift .", text: "Ten frames forward", run: () => player.step(10) },
      { keys: ["z"], shown: "Z", text: "Close-up of the selected tracklet; again: the whole frame", run: () => player.toggleCloseUp() },
      { keys: ["a"], shown: "A", text: "Add a polyp by hand: draw a box on the frame", run: () => drawBox.begin() },
    ] },
    { title: "Select", keys: [
      { keys: ["x", "ctrl+ "], shown: "X", text: "Add the focused tracklet to the selection, or take it out (also Ctrl and click)", run: () => walk.toggle() },
      { keys: ["ctrl+arrowleft"], shown: "Ctrl ←", text: "Move the focus only, to select several with X", run: (event) => walk.across(-1, event, { focusOnly: true }) },
      { keys: ["ctrl+arrowright"], shown: "Ctrl →", text: "The same to the right", run: (event) => walk.across(1, event, { focusOnly: true }) },
      { keys: ["p"], shown: "P", text: "Select the whole polyp of the tracklet", run: () => store.selectPolyp(store.meantPolyp()) },
      { keys: ["escape"], shown: "Esc", text: "Select nothing", run: () => store.clearSelection() },
    ] },
    { title: "Timeline", keys: [
      { keys: ["+", "=", "shift++", "shift+="], shown: "+", text: "Zoom in", run: () => timeline.zoom(1) },
      { keys: ["-", "shift+_"], shown: "-", text: "Zoom out", run: () => timeline.zoom(-1) },
      { keys: ["0"], shown: "0", text: "Show the whole procedure", run: () => timeline.whole() },
      { keys: ["f"], shown: "F", text: "Fill the view with what is selected", run: () => timeline.fitSelection() },
      { keys: ["arrowleft"], shown: "←", text: "Previous tracklet; move the view if none is selected", run: (event) => walk.across(-1, event) },
      { keys: ["arrowright"], shown: "→", text: "Next tracklet; move the view if none is selected", run: (event) => walk.across(1, event) },
      { keys: ["arrowup"], shown: "↑", text: "The lane above", run: (event) => walk.lanes(-1, event) },
      { keys: ["arrowdown"], shown: "↓", text: "The lane below", run: (event) => walk.lanes(1, event) },
      { keys: ["shift+arrowleft"], shown: "Shift ←", text: "Move the view to earlier", run: (event) => walk.pan(-1, event) },
      { keys: ["shift+arrowright"], shown: "Shift →", text: "Move the view to later", run: (event) => walk.pan(1, event) },
    ] },
    { title: "Correct", keys: [
      { keys: ["m"], shown: "M", text: "Move what is selected to another polyp", run: () => open.move() },
      { keys: ["w"], shown: "W", text: "Make what is selected a new polyp", run: () => actions.moveSelection("new") },
      { keys: ["delete", "backspace"], shown: "Delete", text: "What is selected is not a polyp", run: () => actions.moveSelection("none") },
      { keys: ["j"], shown: "J", text: "Join (merge) polyps", run: () => open.merge() },
      { keys: ["c"], shown: "C", text: "Cut (split) the polyp at the playhead", run: () => actions.splitAtPlayhead() },
      { keys: ["ctrl+z"], shown: "Ctrl Z", text: "Undo", run: () => actions.undo() },
      { keys: ["ctrl+shift+z", "ctrl+y"], shown: "Ctrl Shift Z", text: "Redo", run: () => actions.redo() },
    ] },
    { title: "Page", keys: [
      { keys: ["r"], shown: "R", text: "Regroup, or give the known number of polyps", run: () => open.regroup() },
      { keys: ["l"], shown: "L", text: "What else looks like this", run: () => open.panel("similar") },
      { keys: ["k"], shown: "K", text: "The cards of the polyps", run: () => open.panel("polyps") },
      { keys: ["h"], shown: "H", text: "What was decided so far", run: () => open.history() },
      { keys: ["e"], shown: "E", text: "Export", run: () => open.export() },
      { keys: ["t"], shown: "T", text: "Try again to save", run: () => decisions.retry() },
      { keys: ["?", "shift+?", "f1"], shown: "?", text: "This help", run: () => open.help() },
    ] },
  ];
}

const name = (event) => [
  event.ctrlKey || event.metaKey ? "ctrl+" : "",
  event.shiftKey ? "shift+" : "",
  event.key.toLowerCase(),
].join("");

// Where somebody types, letters are text; where a control has the focus, its own keys stay its own.
function belongsToControl(event) {
  const target = event.target;
  if (target.matches?.("textarea, select, input:not([type=range], [type=checkbox])")) return true;
  if (event.key === " " && !event.ctrlKey) return Boolean(target.closest?.("button, summary, a, input"));
  if (event.key.startsWith("Arrow")) return Boolean(target.matches?.("input, [role=separator]"));
  return false;
}

/** Lets the page react to the keys of the table. */
export function listenToKeys(groups) {
  const table = new Map(groups.flatMap((group) => group.keys).flatMap((key) => key.keys.map((one) => [one, key])));
  window.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing || dialogOpen() || belongsToControl(event)) return;
    const key = table.get(name(event));
    if (!key || (event.repeat && !/arrow|[,.+-]/.test(name(event)))) return;
    if (key.run(event) !== false) event.preventDefault();
  });
}
