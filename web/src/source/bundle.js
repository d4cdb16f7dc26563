// Reads a recorded file: what `weir bundle` writes, what this page saves, and recordings of older pages, which have only
// `at_unix_ms`, `answers` and `history`. What the page cannot read is left out with a reason. No DOM.

import { SHAPES, misfit } from "./shapes.js";

import { together } from "../logic/history.js";

export const FORMAT = "weir-bundle";
export const VERSION = 1;

/** What else Weir writes as JSON, by a member that only it has. */
const OTHERS = /** @type {[string, string][]} */ ([
  ["variants", "This is a result of weir lab, not a recording: `weir lab run --report FILE` writes a page of it."],
  [
    "ran_out",
    "This is a result of weir bench, not a recording: `weir bench compare FILE --html PAGE` makes a page of it.",
  ],
]);

/** The recording in a file's text, or one sentence on why there is none.
 * @param {string} text @returns {{recording: Recording, problem: null} | {recording: null, problem: string}} */
export function readRecording(text) {
  const refused = (/** @type {string} */ problem) => ({ recording: null, problem });
  let file;
  try {
    file = JSON.parse(text);
  } catch {
    return refused("This file is not JSON, so it is not a recording of Weir.");
  }
  if (!isObject(file)) return refused("This file is not a recording of Weir.");
  const other = OTHERS.find(([member]) => member in file);
  if (other && file.answers == null) return refused(other[1]);
  if (file.format != null && file.format !== FORMAT) {
    return refused(`This file has the format ${named(file.format)}; a recording of Weir has the format "${FORMAT}".`);
  }
  if (file.format != null && file.version !== VERSION) {
    const version = named(file.version);
    return refused(
      `This recording has version ${version}; this page reads version ${VERSION}. Use the page of the Weir that wrote it.`,
    );
  }
  if (!isObject(file.answers) || !Array.isArray(file.history)) {
    return refused("This file is not a recording of Weir: it has no answers and no history.");
  }
  const failed = failures(file.failed);
  const answers = readAnswers(file.answers, failed);
  const history = readHistory(file.history, failed);
  const ends = history.flatMap((one) => one.ended_unix_ms.at(-1) ?? []);
  const at = moment(file.at_unix_ms) ?? moment(answers.traffic?.at_unix_ms) ?? (ends.length ? Math.max(...ends) : null);
  if (at == null) return refused("This recording does not say of which time it is.");
  if (Object.keys(answers).length === 0 && history.length === 0) {
    return refused("This recording contains nothing that this page can show.");
  }
  const starts = history.map((one) => one.ended_unix_ms[0] - one.step_ms);
  const from = Math.min(at, moment(file.from_unix_ms) ?? Math.min(at, ...starts));
  const host = typeof file.host === "string" && file.host !== "" ? file.host : null;
  return { recording: { host, from, at, answers, history, failed }, problem: null };
}

/** @param {unknown} value @returns {value is Record<string, any>} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value */
function named(value) {
  const text = JSON.stringify(value) ?? "none";
  return text.length > 40 ? text.slice(0, 40) + "…" : text;
}

/** @param {unknown} value */
function moment(value) {
  return typeof value === "number" && value > 0 && value < 8.64e15 ? value : null;
}

/** Reasons by path, without the prefix and parameters of each request.
 * @param {unknown} failed */
function failures(failed) {
  /** @type {Record<string, string>} */
  const all = {};
  if (!isObject(failed)) return all;
  for (const [key, why] of Object.entries(failed)) {
    const path = key.replace(/^\/?(api\/v1\/)?/, "").split("?")[0];
    const said = [all[path], String(why)].filter(Boolean);
    all[path] = said.join("; ");
  }
  return all;
}

/** @param {Record<string, unknown>} given @param {Record<string, string>} failed Gets what cannot be read. */
function readAnswers(given, failed) {
  /** @type {Record<string, any>} */
  const answers = {};
  for (const [path, value] of Object.entries(given)) {
    if (value == null || !Object.hasOwn(SHAPES, path)) continue;
    const differs = misfit(value, SHAPES[path]);
    if (differs == null) answers[path] = value;
    else failed[path] = `the recorded answer has a form that this page cannot read: ${differs} is missing or different`;
  }
  return answers;
}

/** Rows that the page can draw: those that have a time, in order.
 * @param {unknown[]} given @param {Record<string, string>} failed @returns {import("../api.js").History[]} */
function readHistory(given, failed) {
  const kept = given.filter((one) => misfit(one, SHAPES.history) == null && isDrawable(/** @type {any} */ (one)));
  const lost = given.length - kept.length;
  if (lost > 0) failed.history = `${lost} of ${given.length} recorded histories have a form that this page cannot read`;
  return joined(/** @type {import("../api.js").History[]} */ (kept));
}

/** One answer for each length of rows: a file may have read the services one by one. Answers of another span are not
 * joined, because only the rows that both have would be left; the later one is kept.
 * @param {import("../api.js").History[]} answers */
function joined(answers) {
  /** @type {Map<number, import("../api.js").History>} */
  const bySteps = new Map();
  for (const one of answers) {
    const before = bySteps.get(one.step_ms);
    const both = before && together(before, one);
    const rows = Math.min(before?.ended_unix_ms.length ?? 0, one.ended_unix_ms.length);
    if (both && both.ended_unix_ms.length >= rows / 2) bySteps.set(one.step_ms, both);
    else if (!before || endOf(one) > endOf(before)) bySteps.set(one.step_ms, one);
  }
  return [...bySteps.values()];
}

/** @param {import("../api.js").History} answer */
function endOf({ ended_unix_ms: ended }) {
  return ended[ended.length - 1];
}

/** @param {import("../api.js").History} answer */
function isDrawable({ step_ms: step, ended_unix_ms: ended, covered_ms: covered, series }) {
  const rows = ended.length;
  return (
    step > 0 &&
    rows > 0 &&
    covered.length === rows &&
    ended.every((one, row) => row === 0 || one > ended[row - 1]) &&
    series.every((one) => Object.values(one.columns).every((column) => Array.isArray(column) && column.length === rows))
  );
}
