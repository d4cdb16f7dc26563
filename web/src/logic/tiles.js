// The six figures of the overview, each with its line, its span and a comparison. Figures of now are those of the
// windows, as in the tables; figures of a chosen moment come from rows of the history. There are no quantiles over all
// services, so p50 is that of the busiest service and p99 that of the slowest; both name it. No DOM.

import { clock, count, duration, figure, percent, plural } from "./figures.js";
import { inMillis, lastIn, perSecond, rateIn, rowsBefore, sumOf, total } from "./columns.js";
import { failsWrongly } from "./findings.js";
import { line, linesOf } from "./history.js";
import { minute, newest } from "./traffic.js";

/** @typedef {[number, number]} Rows */
/** @typedef {import("../types.js").Now} Now */
/** @typedef {{label: string, value: number | null, service: string}} Quantile */

const WINDOW_MS = 10_000;
const MINUTE_MS = 60_000;
/** A service counts for p99 if it has this many requests in a minute. */
const REQUESTS_MIN = 20;

/** @param {Frame} frame Services, and listeners for requests that reach no service.
 * @param {number} until The moment that the figures are of. @param {Now | null} now Null at a chosen moment.
 * @returns {Tile[]} */
export function tiles(frame, until, now) {
  const listeners = linesOf(frame, "listener");
  const services = linesOf(frame, "service");
  const span = Math.max(WINDOW_MS, frame.stepMs);
  const rows = rowsBefore(frame, until, span);
  const before = rowsBefore(frame, until - Math.max(MINUTE_MS, span), span);
  const lastMinute = rowsBefore(frame, until, Math.max(MINUTE_MS, span));
  const requests = sumOf(frame, listeners, "requests");
  const failed = sumOf(frame, listeners, "failed");
  const refused = sumOf(frame, listeners, "refused");
  const then = span > MINUTE_MS / 2 ? `${duration(span)} before` : "a minute before";
  const spanName = span > MINUTE_MS / 2 ? duration(span) : "minute";
  const compared = (/** @type {string} */ text) => (text === "–" ? "no earlier figure" : `${text} ${then}`);
  const failedInMinute = total(failed, lastMinute);
  const quantile = (/** @type {Quantile} */ of) => {
    const column = line(frame, "service", of.service)?.columns[`total_${of.label}_us`];
    const earlier = of.label === "p99" ? largest(column, before) : middle(column, before);
    return {
      label: of.service ? `${of.label} of ${of.service}` : of.label,
      value: figure(of.value),
      unit: "ms",
      note: earlier == null ? "no earlier figure" : `${figure(earlier / 1000)}\u00a0ms ${then}`,
      line: inMillis(column),
    };
  };
  return [
    {
      label: "Requests",
      value: figure(rateIn(frame, requests, rows)),
      unit: "/s",
      note: compared(figure(rateIn(frame, requests, before))),
      line: perSecond(frame, requests),
    },
    {
      label: "Failed",
      value: percent(total(failed, rows), total(requests, rows)),
      unit: "%",
      note: failedInMinute == null ? "nothing measured" : `${count(failedInMinute)} in the last ${spanName}`,
      line: perSecond(frame, failed),
    },
    {
      label: "Refused here",
      value: figure(rateIn(frame, refused, rows)),
      unit: "/s",
      note: compared(figure(rateIn(frame, refused, before))),
      line: perSecond(frame, refused),
    },
    ...(now ? quantilesNow(now.services) : quantilesThen(services, lastMinute, rows)).map(quantile),
    inFlight(frame, services, rows, lastMinute, now),
  ];
}

/** The element with the largest value; of equal ones the first.
 * @template T @param {T[]} all @param {(one: T) => number} valueOf @returns {T | undefined} */
function most(all, valueOf) {
  /** @type {T | undefined} */
  let found;
  for (const one of all) if (found === undefined || valueOf(one) > valueOf(found)) found = one;
  return found;
}

/** @param {Now["services"]} services @returns {Quantile[]} */
function quantilesNow(services) {
  const requestsOf = (/** @type {Now["services"][number]} */ one) => minute(one)?.requests ?? 0;
  const busiest = most(services, requestsOf);
  const able = services.filter((one) => requestsOf(one) >= REQUESTS_MIN);
  const slowest = most(able, (one) => newest(one)?.total.p99_ms ?? -1) ?? busiest;
  return [
    { label: "p50", value: newest(busiest)?.total.p50_ms ?? null, service: busiest?.name ?? "" },
    { label: "p99", value: newest(slowest)?.total.p99_ms ?? null, service: slowest?.name ?? "" },
  ];
}

/** The middle of the rows' quantiles for p50, the largest for p99: rows cannot be joined into one quantile.
 * @param {Line[]} services @param {Rows} lastMinute @param {Rows} rows @returns {Quantile[]} */
function quantilesThen(services, lastMinute, rows) {
  const requestsOf = (/** @type {Line} */ one) => total(one.columns.requests, lastMinute) ?? 0;
  const p99Of = (/** @type {Line | undefined} */ one) => largest(one?.columns.total_p99_us, rows);
  const busiest = most(services, requestsOf);
  const able = services.filter((one) => requestsOf(one) >= REQUESTS_MIN);
  const slowest = most(able, (one) => p99Of(one) ?? -1) ?? busiest;
  const inMs = (/** @type {number | null} */ us) => (us == null ? null : us / 1000);
  return [
    { label: "p50", value: inMs(middle(busiest?.columns.total_p50_us, rows)), service: busiest?.service ?? "" },
    { label: "p99", value: inMs(p99Of(slowest)), service: slowest?.service ?? "" },
  ];
}

/** @param {Column | undefined} column @param {Rows} rows */
function known(column, [start, end]) {
  return (column ?? []).slice(start, end).flatMap((value) => value ?? []);
}

/** @param {Column | undefined} column @param {Rows} rows */
function largest(column, rows) {
  const values = known(column, rows);
  return values.length ? Math.max(...values) : null;
}

/** @param {Column | undefined} column @param {Rows} rows */
function middle(column, rows) {
  const values = known(column, rows).sort((a, b) => a - b);
  return values.length ? values[Math.floor((values.length - 1) / 2)] : null;
}

/** @param {Frame} frame @param {Line[]} services @param {Rows} rows @param {Rows} lastMinute @param {Now | null} now
 * @returns {Tile} */
function inFlight(frame, services, rows, lastMinute, now) {
  const column = sumOf(frame, services, "in_flight");
  const levels = now?.levels;
  const waiting = levels ? levels.waiting : lastIn(sumOf(frame, services, "queue_length"), rows);
  const peak = largest(column, lastMinute);
  // The history has the largest levels of each row, and counts shared servers once for each service.
  const peakText = peak == null || levels?.shared ? "" : `; peak ${count(peak)} in 1\u00a0min`;
  return {
    label: "In flight",
    value: count(levels ? levels.inFlight : lastIn(column, rows)),
    unit: levels?.limit == null ? "" : `of ${count(levels.limit)}`,
    note: waiting ? `${plural(waiting, "request")} queued` : `queue empty${peakText}`,
    line: levels?.shared ? [] : column,
  };
}

/** The levels of this moment. Services that share an address share its requests, so each address counts once.
 * @param {import("../api.js").Service[]} services @returns {Now["levels"]} */
export function levels(services) {
  /** @type {Map<string, {inFlight: number, limit: number | null}>} */
  const addresses = new Map();
  let waiting = 0;
  let servers = 0;
  for (const service of services) {
    waiting += service.queue.length;
    servers += service.servers.length;
    for (const one of service.servers)
      addresses.set(one.address, { inFlight: one.in_flight, limit: one.in_flight_max });
  }
  const all = [...addresses.values()];
  const limited = all.length > 0 && all.every(({ limit }) => limit != null);
  return {
    inFlight: all.reduce((sum, one) => sum + one.inFlight, 0),
    limit: limited ? all.reduce((sum, one) => sum + (one.limit ?? 0), 0) : null,
    waiting,
    shared: all.length < servers,
  };
}

/** What a screen reader says in place of a tile's line.
 * @param {Tile} tile @param {Frame} frame */
export function lineText(tile, frame) {
  const values = tile.line.flatMap((value) => value ?? []);
  if (values.length === 0 || frame.ended.length === 0) return "no line";
  const from = clock(frame.ended[0], false);
  return `between ${figure(Math.min(...values))} and ${figure(Math.max(...values))} since ${from}`;
}

/** The tile that shows what a rule is about.
 * @type {Record<string, string>} */
const TILES = {
  server_slow: "p99",
  service_failing: "Failed",
  server_failing: "Failed",
  checks_blind: "Failed",
  service_saturated: "In flight",
  queue_growing: "In flight",
};

/** Whether a finding is about the figure of a tile; a quantile is that of one service.
 * @param {Tile} tile @param {Finding[]} serious */
export function isMarked({ label }, serious) {
  return serious.some((finding) => {
    const { rule, service } = finding;
    const name = failsWrongly(finding) ? null : TILES[rule];
    return name != null && (label === name || label === `${name} of ${service}`);
  });
}
