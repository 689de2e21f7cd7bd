// When each frame is shown. Where the frame rate varies, the server sends a table of it: [frame, seconds], both rising.

/** Whether the times of the frames are known. */
export const hasTimes = (video) => Boolean(video.times || video.fps);

/** When a frame is shown, in seconds; null where that is not known. */
export function secondsOf({ fps, times }, frame) {
  if (times) return between(times, frame, 0, 1);
  return fps ? frame / fps : null;
}

/** Where in the recording a time lies: a frame, with its fraction. Only where times are known. */
export function frameAt({ fps, times }, seconds) {
  return times ? between(times, seconds, 1, 0) : seconds * fps;
}

/** How many frames pass in a second where this frame is shown; null where that is not known. */
export function paceAt(video, frame) {
  const seconds = secondsOf(video, frame + 1) - secondsOf(video, frame);
  return seconds > 0 ? 1 / seconds : video.fps;
}

// Follows the line between the two knots around a value, from one column of the table to the other.
function between(knots, value, from, to) {
  let [low, high] = [0, knots.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (knots[middle][from] <= value) low = middle;
    else high = middle;
  }
  const [one, other] = [knots[low], knots[high]];
  const length = other[from] - one[from];
  const share = length > 0 ? Math.min(1, Math.max(0, (value - one[from]) / length)) : 0;
  return one[to] + share * (other[to] - one[to]);
}
