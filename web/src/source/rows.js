// Keeps one view's rows of history: all of its span at first, then only the rows that are new.

import { emptyFrame, merge, together } from "../logic/history.js";
import { HISTORY_SERIES_MAX } from "./source.js";

/** @typedef {HistoryQuery} Query */
/** @typedef {(path: string) => Promise<any>} Read */

/** Rows that are asked for again, in case the last answer came just before one was added. */
const OVERLAP_ROWS = 3;
/** By the minute for a day is the longest history; by the second it is 900 rows. */
const ROWS_MAX = 1500;
const STEP_MIN_MS = 1000;
/** Lengths of rows and how far back they reach, in seconds. */
const LENGTHS = [
  { step: 1, reach: 900 },
  { step: 10, reach: 7200 },
  { step: 60, reach: 86_400 },
];
/** The most numbers in an answer. */
const NUMBERS_MAX = 300_000;

export class History {
  /** @param {Query} query @param {(reading: HistoryReading) => void} listener */
  constructor(query, listener) {
    this.query = query;
    this.listener = listener;
    this.frame = emptyFrame();
    this.due = 0;
  }

  /** Passes on that the balancer did not answer, and why.
   * @param {string} error @param {number} again When to ask again, in ms. */
  refused(error, again) {
    this.due = performance.now() + again;
    this.listener({ frame: this.frame, error });
  }

  /** Reads what is missing, and returns what passes it on.
   * @param {Read} read @param {number} now @returns {Promise<() => void>} */
  async read(read, now) {
    const { query } = this;
    const fixed = query.until != null && query.until < now - STEP_MIN_MS;
    const last = this.frame.ended.at(-1);
    const stepS = Math.max(STEP_MIN_MS, this.frame.stepMs) / 1000;
    // The API chooses the length of rows by how far back an answer reaches, so only rows by the second can be
    // continued with a short answer. The others are few, and read again as a whole.
    // A clock that was set back starts the rows again.
    const continued = last != null && stepS === 1 && !fixed && last < now + 2 * STEP_MIN_MS;
    const whole = spanFor(query);
    const missing = continued ? Math.ceil((now - last) / 1000) + OVERLAP_ROWS : whole;
    const span = Math.min(whole, Math.max(OVERLAP_ROWS, missing));
    const answers = await Promise.all(query.kinds.map((kind) => read(this.path(kind, span))));
    const answer = answers.length > 1 ? answers.reduce(together) : answers[0];
    const rowsMax = Math.min(ROWS_MAX, Math.ceil((whole * 1000) / Math.max(STEP_MIN_MS, answer.step_ms)));
    this.frame = merge(continued ? this.frame : emptyFrame(), answer, rowsMax);
    this.due = fixed ? Infinity : performance.now() + Math.max(STEP_MIN_MS, answer.step_ms / 2) - 125;
    return () => this.listener({ frame: this.frame, error: null });
  }

  /** @param {string} kind @param {number} span */
  path(kind, span) {
    const { service, columns, until } = this.query;
    const parameters = new URLSearchParams({ kind, span_s: String(span), limit: String(HISTORY_SERIES_MAX) });
    if (columns.length) parameters.set("columns", columns.join(","));
    if (service) parameters.set("service", service);
    if (until != null) parameters.set("until_unix_ms", String(Math.round(until)));
    return `history?${parameters}`;
  }
}

/** The span to ask for. With many series the rows of the span would be too many for one answer; a span that reaches
 * back further than rows of that length are kept gets longer rows.
 * @param {Query} query */
function spanFor({ span, columns, series }) {
  const able = LENGTHS.filter(({ reach }) => reach >= span);
  const numbers = series * Math.max(1, columns.length);
  const length = able.find(({ step }) => (span / step) * numbers <= NUMBERS_MAX) ?? LENGTHS[LENGTHS.length - 1];
  const finer = LENGTHS[LENGTHS.indexOf(length) - 1];
  return Math.max(span, finer ? finer.reach + length.step : 0);
}
