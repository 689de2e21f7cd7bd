// The parts of the page: which panel is shown where there is no room for all, and how high the timeline is.

import { byId, setAttribute } from "./dom.js";

const LEAST = 130;
const LEAST_PANELS = 220;
const STEP = 24;

/** Shows "polyps" or "similar" in the side column; on wide screens both are visible anyway. */
export function showPanel(name) {
  setAttribute(byId("review"), "data-panel", name);
  for (const tab of document.querySelectorAll("[data-show]")) setAttribute(tab, "aria-pressed", String(tab.dataset.show === name));
}

/** Makes the tabs of the side column and the line under the timeline work. */
export function preparePanels() {
  for (const tab of document.querySelectorAll("[data-show]")) tab.addEventListener("click", () => showPanel(tab.dataset.show));
  showPanel("polyps");
  const divider = byId("divider");
  const timeline = byId("timeline");
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (divider.hasPointerCapture(event.pointerId)) setHeight(event.clientY - timeline.getBoundingClientRect().top - 4);
  });
  divider.addEventListener("keydown", (event) => {
    const by = { ArrowUp: -STEP, ArrowDown: STEP }[event.key];
    if (!by) return;
    event.preventDefault();
    setHeight(timeline.clientHeight + by);
  });
}

function setHeight(height) {
  const most = byId("review").clientHeight - LEAST_PANELS;
  const bounded = Math.round(Math.max(LEAST, Math.min(most, height)));
  byId("timeline").style.height = `${bounded}px`;
  for (const [name, value] of [["valuemin", LEAST], ["valuemax", most], ["valuenow", bounded]]) setAttribute(byId("divider"), `aria-${name}`, value);
}

/** As high as its lanes need, but never more than about a third of the window. */
export function fitTimeline(lanesHeight, restHeight) {
  const others = byId("timeline").clientHeight - byId("lane-scroll").clientHeight;
  const most = Math.max(LEAST + 70, byId("review").clientHeight * 0.36);
  setHeight(Math.min(most, Math.max(lanesHeight, 60) + Math.max(others, restHeight)));
}
