// How numbers, times and names are written on the page.

import { secondsOf } from "./times.js";

/** "1 polyp", "3 polyps". */
export function amount(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

/** Seconds as "0:07", "12:30" or "1:02:03"; with `digits` decimals of the second. */
export function clock(seconds, digits = 0) {
  const scale = 10 ** digits;
  const total = Math.round(Math.max(0, seconds) * scale);
  const hours = Math.floor(total / scale / 3600);
  const minutes = Math.floor(total / scale / 60) % 60;
  const rest = (total % (60 * scale)) / scale;
  const tail = rest.toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** A length of time: "0.4 s", "12 s", "3 min 20 s". */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const minutes = Math.floor(whole / 60) % 60;
  const hours = Math.floor(whole / 3600);
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** "87 %". */
export const percent = (share) => `${Math.round(share * 100)}\u00a0%`;

/** "3", or "3 to 5". */
export function range(low, high) {
  if (low === null || high === null) return "";
  return low === high ? `exactly ${low}` : `${low} to ${high}`;
}

/** "high", "moderate" or "low", with the limits of the report. */
export function certaintyWord(certainty) {
  if (certainty >= 0.9) return "high";
  return certainty >= 0.7 ? "moderate" : "low";
}

/** "0:12 to 0:15", or frames where the recording has no times. */
export function itemSpan(item) {
  if (item.start_seconds === null || item.start_seconds === undefined) {
    return `frames ${item.start_frame} to ${item.stop_frame - 1}`;
  }
  const digits = item.stop_seconds - item.start_seconds < 1 ? 1 : 0;
  return `${clock(item.start_seconds, digits)} to ${clock(item.stop_seconds, digits)}`;
}

/** The time of a frame, or its number where its time is not known. */
export function timeOr(frame, seconds, digits = 0) {
  return seconds === null ? `frame ${Math.round(frame)}` : clock(seconds, digits);
}

/** The same, where only the frame is known. */
export const frameTime = (video, frame, digits = 0) => timeOr(frame, secondsOf(video, frame), digits);

/** "Polyp 2", with its name if it has one; "Not counted" without a polyp. */
export function polypTitle(state, number) {
  if (number === null || number === undefined) return "Not counted";
  const name = state?.polyps.find((polyp) => polyp.number === number)?.name;
  return name ? `Polyp ${number}, ${name}` : `Polyp ${number}`;
}

const KINDS = {
  "counted": "",
  "perhaps no polyp": "perhaps no polyp",
  "too short": "too short to be counted",
  "by hand": "added by hand",
};

/** Everything a screen reader should say about a tracklet. */
export function itemLabel(state, item) {
  const parts = [polypTitle(state, item.polyp), item.name, itemSpan(item)];
  if (KINDS[item.kind]) parts.push(KINDS[item.kind]);
  return parts.join(", ");
}

/** The kind of a tracklet in words; empty for a counted one. */
export const kindText = (item) => KINDS[item.kind] ?? item.kind;

/** "2026-11-18 10:00" in the person's own time zone. */
export function dateTime(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return text;
  const two = (number) => String(number).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}`;
}
