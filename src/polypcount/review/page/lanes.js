// Where each tracklet lies in the timeline, from the state alone.

const MOST_ROWS = 3;
const REST_ROW = 22;

/** The height of a lane: more room for pictures where there are few polyps. */
export function laneHeight(polyps) {
  if (polyps <= 4) return 46;
  return polyps <= 8 ? 38 : 30;
}

/**
 * One lane for each polyp: {lanes: [{number, top, height, items}], height}, items in order of time.
 * The lane of what is not counted is apart: {rows: [[item]], height}; what overlaps there goes into rows.
 */
export function layLanes(state) {
  const height = laneHeight(state.polyps.length);
  const of = new Map(state.polyps.map((polyp) => [polyp.number, []]));
  const rest = [];
  for (const item of state.items) (of.get(item.polyp) ?? rest).push(item);
  const inTime = (a, b) => a.start_frame - b.start_frame || a.stop_frame - b.stop_frame;
  const lanes = state.polyps.map((polyp, index) => ({
    number: polyp.number,
    top: index * height,
    height,
    items: of.get(polyp.number).sort(inTime),
  }));
  const rows = layRows(rest.sort(inTime));
  return { lanes, height: lanes.length * height, rest: { rows, height: Math.max(1, rows.length) * REST_ROW + 6, row: REST_ROW } };
}

// The last row takes what fits nowhere, so the lane never grows without end.
function layRows(items) {
  const rows = [];
  for (const item of items) {
    let row = rows.find((others) => others.at(-1).stop_frame <= item.start_frame);
    if (!row && rows.length < MOST_ROWS) rows.push((row = []));
    (row ?? rows.at(-1)).push(item);
  }
  return rows;
}

/** The spans [start, stop) of the recording in which nothing was seen at all. */
export function emptySpans(state, total) {
  const spans = [];
  let end = 0;
  for (const item of [...state.items].sort((a, b) => a.start_frame - b.start_frame)) {
    if (item.start_frame > end) spans.push([end, item.start_frame]);
    end = Math.max(end, item.stop_frame);
  }
  if (end < total) spans.push([end, total]);
  return spans;
}

/** The number of frames on the time axis. */
export function totalFrames(state) {
  return Math.max(1, state.video.frame_count ?? 0, ...state.items.map((item) => item.stop_frame));
}
