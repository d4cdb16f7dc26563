// The six figures of the overview, each with its line, its span and a comparison. Counts are sums over the rows of
// the history. The API keeps no quantiles over all services, so p50 is that of the busiest service and p99 that of
// the slowest; both name it. No DOM.

import { clock, count, duration, millis, percent, plural, rate } from "./figures.js";
import { inMillis, lastIn, perSecond, rateIn, rowsBefore, sumOf, total } from "./columns.js";
import { linesOf } from "./history.js";

/** @typedef {import("./history.js").Frame} Frame */
/** @typedef {import("./history.js").Line} Line */
/** @typedef {import("./history.js").Column} Column */
/**
 * @typedef {object} Tile
 * @property {string} label @property {string} value @property {string} unit
 * @property {string} note @property {Column} line @property {boolean} warn
 */

const WINDOW_MS = 10_000;
const MINUTE_MS = 60_000;
/** A service counts for p99 if it has this many requests in a minute. */
const REQUESTS_MIN = 20;
/** p99 is marked if it is this many times what it was a minute ago, and this much more. */
const WORSE_RATIO = 3;
const WORSE_MORE_MS = 100;

/** @param {Frame} frame Services, and listeners for requests that reach no service.
 * @param {number} until The moment that the figures are of.
 * @param {{inFlight: number, limit: number | null, waiting: number} | null} now Levels of this moment; null: of the rows.
 * @returns {Tile[]} */
export function tiles(frame, until, now) {
  const listeners = linesOf(frame, "listener");
  const services = linesOf(frame, "service");
  const span = Math.max(WINDOW_MS, frame.stepMs);
  const rows = rowsBefore(frame, until, span);
  const before = rowsBefore(frame, until - Math.max(MINUTE_MS, span), span);
  const minute = rowsBefore(frame, until, Math.max(MINUTE_MS, span));
  const requests = sumOf(frame, listeners, "requests");
  const failed = sumOf(frame, listeners, "failed");
  const refused = sumOf(frame, listeners, "refused");
  const then = span > MINUTE_MS / 2 ? `${duration(span)} before` : "a minute before";
  const compared = (/** @type {string} */ text) => (text === "–" ? "no earlier figure" : `${text} ${then}`);
  const failedInMinute = total(failed, minute);
  const refusedRate = rateIn(frame, refused, rows);
  return [
    {
      label: "Requests",
      value: rate(rateIn(frame, requests, rows)),
      unit: "/s",
      note: compared(rate(rateIn(frame, requests, before))),
      line: perSecond(frame, requests),
      warn: false,
    },
    {
      label: "Failed",
      value: percent(total(failed, rows), total(requests, rows)),
      unit: "%",
      note: failedInMinute == null ? "nothing measured" : `${count(failedInMinute)} in the last ${spanName(frame)}`,
      line: perSecond(frame, failed),
      warn: (total(failed, rows) ?? 0) > 0.01 * (total(requests, rows) ?? Infinity),
    },
    {
      label: "Refused here",
      value: rate(refusedRate),
      unit: "/s",
      note: compared(rate(rateIn(frame, refused, before))),
      line: perSecond(frame, refused),
      warn: (refusedRate ?? 0) > 0,
    },
    quantile(busiest(services, minute), "p50", "total_p50_us", rows, before, then),
    quantile(slowest(services, minute, rows), "p99", "total_p99_us", rows, before, then),
    inFlight(frame, services, rows, now),
  ];
}

/** @param {Frame} frame */
function spanName(frame) {
  return frame.stepMs > MINUTE_MS / 2 ? duration(frame.stepMs) : "minute";
}

/** @param {Line[]} services @param {[number, number]} rows */
function busiest(services, rows) {
  let most = 0;
  let found = null;
  for (const one of services) {
    const requests = total(one.columns.requests, rows) ?? 0;
    if (requests > most) [most, found] = [requests, one];
  }
  return found;
}

/** @param {Line[]} services @param {[number, number]} minute @param {[number, number]} rows */
function slowest(services, minute, rows) {
  let most = -1;
  let found = null;
  for (const one of services) {
    const p99 = largest(one.columns.total_p99_us, rows);
    if (p99 == null || (total(one.columns.requests, minute) ?? 0) < REQUESTS_MIN) continue;
    if (p99 > most) [most, found] = [p99, one];
  }
  return found ?? busiest(services, minute);
}

/** @param {Column | undefined} column @param {[number, number]} rows */
function largest(column, [start, end]) {
  let most = null;
  for (let row = start; row < end; row += 1) {
    const value = column?.[row];
    if (value != null && (most == null || value > most)) most = value;
  }
  return most;
}

/** The middle of the rows' quantiles for p50, the largest for p99: rows cannot be joined into one quantile.
 * @param {Line | null} line @param {"p50" | "p99"} label @param {string} name
 * @param {[number, number]} rows @param {[number, number]} before @param {string} then @returns {Tile} */
function quantile(line, label, name, rows, before, then) {
  const column = line?.columns[name];
  const of = (/** @type {[number, number]} */ range) => {
    const us = label === "p99" ? largest(column, range) : middle(column, range);
    return us == null ? null : us / 1000;
  };
  const [value, earlier] = [of(rows), of(before)];
  const warn =
    label === "p99" &&
    value != null &&
    earlier != null &&
    value > earlier * WORSE_RATIO &&
    value > earlier + WORSE_MORE_MS;
  const service = line?.service ?? "";
  return {
    label: service ? `${label} of ${service}` : label,
    value: millis(value),
    unit: "ms",
    note: earlier == null ? "no earlier figure" : `${millis(earlier)}\u00a0ms ${then}`,
    line: inMillis(column),
    warn,
  };
}

/** @param {Column | undefined} column @param {[number, number]} rows */
function middle(column, [start, end]) {
  const values = (column ?? []).slice(start, end).filter((value) => value != null);
  values.sort((a, b) => Number(a) - Number(b));
  return values.length ? Number(values[Math.floor((values.length - 1) / 2)]) : null;
}

/** @param {Frame} frame @param {Line[]} services @param {[number, number]} rows
 * @param {{inFlight: number, limit: number | null, waiting: number} | null} now @returns {Tile} */
function inFlight(frame, services, rows, now) {
  const column = sumOf(frame, services, "in_flight");
  const waiting = now ? now.waiting : lastIn(sumOf(frame, services, "queue_length"), rows);
  return {
    label: "In flight",
    value: count(now ? now.inFlight : lastIn(column, rows)),
    unit: now?.limit == null ? "" : `of ${count(now.limit)}`,
    note: waiting ? `${plural(waiting, "request")} waiting` : "nothing waits",
    line: column,
    warn: Boolean(waiting) || (now?.limit != null && now.inFlight >= now.limit),
  };
}

/** The levels of this moment. Services that share an address share its requests, so each address counts once.
 * @param {import("../api.js").Service[]} services */
export function levels(services) {
  /** @type {Map<string, {inFlight: number, limit: number | null}>} */
  const addresses = new Map();
  let waiting = 0;
  for (const service of services) {
    waiting += service.queue.length;
    for (const one of service.servers)
      addresses.set(one.address, { inFlight: one.in_flight, limit: one.in_flight_max });
  }
  const all = [...addresses.values()];
  const limited = all.length > 0 && all.every(({ limit }) => limit != null);
  return {
    inFlight: all.reduce((sum, one) => sum + one.inFlight, 0),
    limit: limited ? all.reduce((sum, one) => sum + (one.limit ?? 0), 0) : null,
    waiting,
  };
}

/** What a screen reader says in place of a tile's line.
 * @param {Tile} tile @param {Frame} frame */
export function lineText(tile, frame) {
  const values = tile.line.filter((value) => value != null).map(Number);
  if (values.length === 0 || frame.ended.length === 0) return "nothing measured";
  const from = clock(frame.ended[0], false);
  return `between ${rate(Math.min(...values))} and ${rate(Math.max(...values))} since ${from}`;
}
