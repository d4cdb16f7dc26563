// What can be seen of a server or a service without a diagnosis: its state as a word, and whether it differs
// from its peers. Findings say why; a condition is only what the figures show. No DOM.

import { count, duration, plural, share } from "./figures.js";

/** @typedef {import("../api.js").Server} Server */
/** @typedef {import("../api.js").ServiceTraffic} ServiceTraffic */
/** @typedef {import("../api.js").Finding} Finding */
/** @typedef {"bad" | "warn" | "aside" | "fine"} Level bad: requests are lost; warn: trouble; aside: an operator's wish. */
/**
 * @typedef {object} Condition
 * @property {Level} level
 * @property {string} word One or two words for a table.
 * @property {string} why A sentence.
 */

/** A server's response times are compared with its peers' if it has answered this many requests in the window. */
const TIMES_MIN = 8;
/** Slow: this many times its peers' median, and this much more. */
const SLOW_RATIO = 4;
const SLOW_MORE_MS = 50;
/** Failing: this share of its requests, of so many, and so many of them, and five times its peers' share. */
const REQUESTS_MIN = 20;
const FAILING_SHARE = 0.05;
const FAILING_MIN = 5;
const FAILING_RATIO = 5;

/** What rules about servers say, in a word. */
const WORDS = /** @type {Record<string, string>} */ ({
  server_slow: "slow",
  server_failing: "failing",
  checks_blind: "failing",
});

/** The window that comparisons use: the minute.
 * @template T @param {{windows: T[]} | undefined} traffic @returns {T | undefined} */
export function minute(traffic) {
  return traffic?.windows[1] ?? traffic?.windows[0];
}

/** The newest window: ten seconds.
 * @template T @param {{windows: T[]} | undefined} traffic @returns {T | undefined} */
export function newest(traffic) {
  return traffic?.windows[0];
}

/** @param {number[]} values */
export function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/**
 * @typedef {object} Peers
 * @property {number | null} p50 The median of the servers' medians.
 * @property {number} requests
 * @property {number} failed
 * @property {number} compared How many servers have enough requests to be compared.
 */

/** What is usual among a service's servers, as the minute has them.
 * @param {ServiceTraffic | undefined} traffic @returns {Peers} */
export function peersOf(traffic) {
  const medians = [];
  let requests = 0;
  let failed = 0;
  for (const server of traffic?.servers ?? []) {
    const window = minute(server);
    const p50 = comparable(server);
    if (p50 != null) medians.push(p50);
    requests += window?.requests ?? 0;
    failed += window?.failed ?? 0;
  }
  return { p50: median(medians), requests, failed, compared: medians.length };
}

/** A server's median response time, of the newest window that has enough requests.
 * @param {import("../api.js").ServerTraffic | undefined} server */
function comparable(server) {
  return server?.windows.find((window) => window.requests >= TIMES_MIN)?.first_byte.p50_ms ?? null;
}

/** Whether a response time is out of line with the peers' median.
 * @param {number | null | undefined} ms @param {number | null} peers */
export function isSlow(ms, peers) {
  return ms != null && peers != null && ms >= peers * SLOW_RATIO && ms >= peers + SLOW_MORE_MS;
}

/** The condition of a server: what keeps requests from it first, then a finding about it, then what its figures
 * show.
 * @param {Server} server @param {import("../api.js").ServerTraffic | undefined} traffic @param {Peers} peers
 * @param {Finding | undefined} finding @returns {Condition} */
export function serverCondition(server, traffic, peers, finding) {
  if (server.state === "maintenance") {
    return { level: "aside", word: "maintenance", why: "An operator put it into maintenance; it is not checked." };
  }
  if (server.state === "drain") {
    const left = server.in_flight ? `${plural(server.in_flight, "request")} to finish` : "nothing left to finish";
    return { level: "aside", word: "draining", why: `An operator drained it; ${left}.` };
  }
  if (server.health === "down") return { level: "bad", word: "down", why: "Its health checks fail." };
  if (server.ejected_for_ms != null) {
    return {
      level: "bad",
      word: "ejected",
      why: `Passive health checks ejected it; it returns in ${duration(server.ejected_for_ms)}.`,
    };
  }
  if (server.weight === 0)
    return { level: "aside", word: "weight 0", why: "Its weight is 0: it gets no new requests." };
  const figures = figuresCondition(server, traffic, peers);
  if (finding) {
    return {
      level: finding.severity === "critical" ? "bad" : "warn",
      word: figures?.word ?? WORDS[finding.rule] ?? "see finding",
      why: finding.what,
    };
  }
  if (figures) return figures;
  if (!server.eligible) return { level: "fine", word: "standby", why: "Healthy; other servers are preferred now." };
  if (server.slow_start_share < 1) {
    return { level: "fine", word: "starting", why: `Slow start: ${share(server.slow_start_share, 1)} of its weight.` };
  }
  if (server.health === "unknown") return { level: "fine", word: "ready", why: "No result of a health check." };
  return { level: "fine", word: "up", why: "Its health checks pass." };
}

/** @param {Server} server @param {import("../api.js").ServerTraffic | undefined} traffic @param {Peers} peers
 * @returns {Condition | null} */
function figuresCondition(server, traffic, peers) {
  const window = minute(traffic);
  if (window && window.requests >= REQUESTS_MIN) {
    const others = peers.requests - window.requests;
    const usual = others > 0 ? (peers.failed - window.failed) / others : 0;
    const failing = window.failed / window.requests;
    if (window.failed >= FAILING_MIN && failing >= FAILING_SHARE && failing >= usual * FAILING_RATIO) {
      return {
        level: "bad",
        word: "failing",
        why:
          `${share(window.failed, window.requests)} of its requests failed in the last minute, ` +
          `${others > 0 ? `${share(peers.failed - window.failed, others)} of its peers'` : "and it has no peers"}.`,
      };
    }
  }
  const p50 = comparable(traffic);
  if (p50 != null && peers.compared >= 2 && isSlow(p50, peers.p50)) {
    return {
      level: "warn",
      word: "slow",
      why: `Its median response time is ${duration(p50)}, that of its peers ${duration(peers.p50)}.`,
    };
  }
  if (server.in_flight_max != null && server.in_flight >= server.in_flight_max) {
    return {
      level: "warn",
      word: "at its limit",
      why: `All ${count(server.in_flight_max)} concurrent requests of its limit are in use.`,
    };
  }
  return null;
}
