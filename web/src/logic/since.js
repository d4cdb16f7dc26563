// Since when a server's trouble lasts, read backwards from the rows of its history. No DOM.

import { isSlow } from "./condition.js";
import { lastIn } from "./columns.js";

/** @typedef {import("./history.js").Frame} Frame */
/** @typedef {import("./history.js").Line} Line */

/** A run goes on over this long without a row that shows the trouble. */
const PAUSE_MS = 20_000;

/** The start of the run of rows, up to the frame's end, that show the trouble named by `word`; null if the newest
 * rows do not show it or the word has no column.
 * @param {Frame} frame @param {Line | undefined} line @param {string} word
 * @param {{p50: number | null, limit: number | null}} usual @returns {number | null} */
export function began(frame, line, word, usual) {
  const shows = line && shown(line, word, usual);
  if (!shows) return null;
  const end = frame.ended.at(-1) ?? 0;
  let start = null;
  let seen = end;
  for (let row = frame.ended.length - 1; row >= 0; row -= 1) {
    if (frame.ended[row] < seen - Math.max(PAUSE_MS, 3 * frame.stepMs)) break;
    if (!shows(row)) continue;
    seen = frame.ended[row];
    start = frame.ended[row] - frame.covered[row];
  }
  return start;
}

/** @param {Line} line @param {string} word @param {{p50: number | null, limit: number | null}} usual
 * @returns {((row: number) => boolean) | null} */
function shown({ columns }, word, usual) {
  switch (word) {
    case "slow":
      return (row) => {
        const us = columns.first_byte_p50_us?.[row];
        return us != null && isSlow(us / 1000, usual.p50);
      };
    case "failing":
      return (row) => (columns.failed?.[row] ?? 0) > 0;
    case "at its limit":
      return (row) => usual.limit != null && (columns.in_flight?.[row] ?? 0) >= usual.limit;
    default:
      return null;
  }
}

/** Moments at which a level of a service changed, such as the number of servers that are ready. A step that lasts
 * for one row only counts as well: a server that failed its checks once was away.
 * @param {Frame} frame @param {Line} line @param {string} name
 * @returns {{at: number, from: number, to: number}[]} */
export function steps(frame, line, name) {
  const column = line.columns[name] ?? [];
  const changes = [];
  let before = null;
  for (let row = 0; row < column.length; row += 1) {
    const value = column[row];
    if (value == null) continue;
    if (before != null && before !== value) changes.push({ at: frame.ended[row], from: before, to: value });
    before = value;
  }
  return changes;
}

/** The value of a level at the end of a frame.
 * @param {Frame} frame @param {Line | undefined} line @param {string} name */
export function latest(frame, line, name) {
  return lastIn(line?.columns[name], [0, frame.ended.length]);
}
