// Figures as text: counts, rates, durations, shares, sizes, moments. No DOM.
// A value that was not measured is a dash; it is never shown as zero.

const NONE = "–";
const SPACE = "\u00a0";

/** A count with a comma between thousands.
 * @param {number | null | undefined} value */
export function count(value) {
  if (value == null || !Number.isFinite(value)) return NONE;
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** At most three significant digits below 100, whole numbers above.
 * @param {number} value */
function short(value) {
  if (value === 0) return "0";
  if (value < 0.01) return "<" + SPACE + "0.01";
  if (value < 1) return trimmed(value, 2);
  if (value < 9.95) return trimmed(value, 1);
  return count(value);
}

/** @param {number} value @param {number} digits */
function trimmed(value, digits) {
  return value.toFixed(digits).replace(/\.?0+$/, "");
}

/** A rate or a time without its unit, for a column, tile or sentence that names it.
 * @param {number | null | undefined} value */
export function figure(value) {
  if (value == null || !Number.isFinite(value)) return NONE;
  return short(value);
}

/** A duration in a sentence, with its unit.
 * @param {number | null | undefined} ms */
export function duration(ms) {
  if (ms == null || !Number.isFinite(ms)) return NONE;
  if (ms < 999.5) return short(ms) + SPACE + "ms";
  if (ms < 59_950) return trimmed(ms / 1000, 1) + SPACE + "s";
  const seconds = Math.round(ms / 1000);
  if (seconds < 600) return twoParts(seconds, 60, "min", "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return minutes + SPACE + "min";
  if (minutes < 48 * 60) return twoParts(minutes, 60, "h", "min");
  return count(minutes / 1440) + SPACE + "d";
}

/** @param {number} value @param {number} size @param {string} large @param {string} small */
function twoParts(value, size, large, small) {
  const whole = Math.floor(value / size) + SPACE + large;
  return value % size ? whole + SPACE + (value % size) + SPACE + small : whole;
}

/** A part of a whole in per cent, without the sign.
 * @param {number | null | undefined} part @param {number | null | undefined} whole */
export function percent(part, whole) {
  if (part == null || !whole) return NONE;
  return short((part / whole) * 100);
}

/** A part of a whole, with the sign.
 * @param {number | null | undefined} part @param {number | null | undefined} whole */
export function share(part, whole) {
  const text = percent(part, whole);
  return text === NONE || text === "0" ? text : text + SPACE + "%";
}

/** @param {number | null | undefined} value */
export function bytes(value) {
  if (value == null || !Number.isFinite(value)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return short(value) + SPACE + units[at];
}

/** @param {number} number @param {string} one @param {string} [many] */
export function plural(number, one, many = one + "s") {
  return count(number) + SPACE + (number === 1 ? one : many);
}

const pad = (/** @type {number} */ value) => String(value).padStart(2, "0");

/** The time of day in the reader's zone.
 * @param {number} unixMs @param {boolean} [seconds] */
export function clock(unixMs, seconds = true) {
  const time = new Date(unixMs);
  const text = `${pad(time.getHours())}:${pad(time.getMinutes())}`;
  return seconds ? `${text}:${pad(time.getSeconds())}` : text;
}

/** The time of day, with the date if it is not today's.
 * @param {number} unixMs @param {number} nowMs */
export function moment(unixMs, nowMs) {
  const day = date(unixMs);
  return day === date(nowMs) ? clock(unixMs) : `${day} ${clock(unixMs)}`;
}

/** @param {number} unixMs */
export function date(unixMs) {
  const time = new Date(unixMs);
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

/** How long ago, in a sentence.
 * @param {number} ms */
export function ago(ms) {
  return ms < 1500 ? "just now" : `${duration(ms)} ago`;
}

/** A figure of a finding's evidence with its unit.
 * @param {import("../api.js").Evidence} evidence */
export function evidence(evidence) {
  const value = evidence.figure;
  const text = typeof value === "number" ? (Number.isInteger(value) ? count(value) : short(value)) : value;
  const unit = evidence.unit ? SPACE + evidence.unit : "";
  return evidence.in_all == null ? text + unit : `${text}${unit}; ${count(evidence.in_all)} in all`;
}

/** A name shortened in the middle, where names differ least.
 * @param {string} name @param {number} lengthMax */
export function shortened(name, lengthMax) {
  const letters = [...name];
  if (letters.length <= lengthMax) return name;
  const end = Math.floor((lengthMax - 1) / 3);
  return letters.slice(0, lengthMax - 1 - end).join("") + "…" + (end ? letters.slice(-end).join("") : "");
}

// Control characters, those that change the direction of text, and those without a width: they would let a client's path
// look like another. Line breaks and tabs of longer texts stay.
const INVISIBLE =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Text with every character visible.
 * @param {string} text */
export function visible(text) {
  return text.replace(INVISIBLE, (letter) => `\\u{${letter.codePointAt(0)?.toString(16)}}`);
}
