// The close-up: the surroundings of a tracklet's box, enlarged.

const TIMES_THE_BOX = 2.5;
// A view smaller than this share of the frame would show hardly more than its pixels.
const LEAST_SHARE = 0.1;
// A large box gets less around it, so that a close-up is always larger than the whole frame would be.
const MOST_SHARE = 0.6;
const TIMES_A_LARGE_BOX = 1.2;
// Boxes of a detector tremble. The mean over so many frames before and after follows the polyp calmly.
const REACH = 8;
const FARTHEST_BACK = 250;

/**
 * The part of a frame to show, [left, top, width, height] in pixels of the recording and in its shape; null where no
 * box is known. It depends on the frame alone, not on how one came there.
 */
export function surroundings(boxes, item, frame, { width: frameWidth, height: frameHeight }) {
  const last = item.stop_frame - 1;
  let here = Math.min(last, Math.max(item.start_frame, frame));
  const earliest = Math.max(item.start_frame, here - FARTHEST_BACK);
  // Without a box in this frame, the view stays where the last one was.
  while (here > earliest && !boxes.of(item.id, here)) here -= 1;
  const own = boxes.of(item.id, here);
  if (!own) return null;
  const reach = Math.min(REACH, here - item.start_frame, last - here);
  const mean = [0, 0, 0, 0];
  let weights = 0;
  for (let by = -reach; by <= reach; by += 1) {
    const box = boxes.of(item.id, here + by);
    if (!box) continue;
    const weight = reach + 1 - Math.abs(by);
    weights += weight;
    box.forEach((side, k) => (mean[k] += side * weight));
  }
  const [left, top, right, bottom] = mean.map((side) => side / weights);
  const shape = frameWidth / frameHeight;
  const box = Math.max(right - left, (bottom - top) * shape);
  const most = Math.min(frameWidth, Math.max(frameWidth * MOST_SHARE, box * TIMES_A_LARGE_BOX));
  const width = Math.min(most, Math.max(box * TIMES_THE_BOX, frameWidth * LEAST_SHARE));
  const height = width / shape;
  return [
    place((left + right) / 2, width, own[0], own[2], frameWidth),
    place((top + bottom) / 2, height, own[1], own[3], frameHeight),
    width,
    height,
  ];
}

// Where a view of this size begins: around the middle, with the box of the frame itself in it, and never outside the frame.
function place(middle, size, from, to, whole) {
  const withBox = Math.min(from, Math.max(to - size, middle - size / 2));
  return Math.min(whole - size, Math.max(0, withBox));
}
