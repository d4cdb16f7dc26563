// The live source: reads the admin API of the balancer that serves this page. The only module that fetches.
//
// One loop reads everything that is due, side by side, and passes it on together, so that a page never shows figures
// of different seconds. It rests while the page is hidden, waits longer after each failure, and never spends more
// than a tenth of the time on reading: large answers make it slower. `deliver` is where pushed events can enter
// in place of polling, since they carry the same JSON as the paths.

import { History } from "./rows.js";

/** @typedef {import("./source.js").Connection} Connection */
/** @typedef {import("./source.js").Listener} Listener */
/** @typedef {import("./source.js").Source} Source */
/** @typedef {{path: string, everyMs: number, due: number, listeners: Set<Listener>, last: import("./source.js").Reading | null}} Watch */

const API = "/api/v1/";
const TIMEOUT_MS = 5000;
const RETRY_MS = [1000, 2000, 4000, 8000, 15_000];
/** After an answer that says no: it is asked again, but seldom. */
const REFUSED_MS = 15_000;
/** Timers of the loop: finer than the shortest interval, so that reads do not drift apart. */
const TURN_MS = 250;
const REST_FACTOR = 10;

/** The server answered, but not with what was asked for. */
class Refused extends Error {}
class SignedOut extends Error {}

/** @returns {Source} */
export function live() {
  /** @type {Map<string, Watch>} */
  const watches = new Map();
  /** @type {Set<History>} */
  const histories = new Set();
  /** @type {Set<(connection: Connection) => void>} */
  const connections = new Set();
  /** @type {Connection} */
  let connection = { phase: "connecting", since: null, retryAt: null, why: "" };
  let failures = 0;
  let busy = false;
  let restUntil = 0;
  /** The balancer's clock minus this browser's. */
  let skewMs = 0;
  const now = () => Date.now() + skewMs;

  /** @param {Connection} next */
  function become(next) {
    if (next.phase === connection.phase && next.why === connection.why && next.retryAt === connection.retryAt) return;
    connection = next;
    for (const listener of connections) listener(connection);
  }

  /** @param {string} path */
  async function read(path) {
    const answer = await fetch(API + path, {
      headers: { accept: "application/json" },
      cache: "no-store",
      credentials: "same-origin",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (answer.status === 401) throw new SignedOut();
    const body = await answer.json().catch(() => null);
    if (!answer.ok || body == null) {
      throw new Refused(body?.message ?? `the balancer answered ${answer.status} to ${API}${path}`);
    }
    return body;
  }

  /** Passes an answer to those who watch its path.
   * @param {Watch} watch @param {import("./source.js").Reading} reading */
  function deliver(watch, reading) {
    if (watch.path.startsWith("traffic") && reading.value) skewMs = reading.value.at_unix_ms - Date.now();
    watch.last = reading;
    for (const listener of watch.listeners) listener(reading);
  }

  async function turn() {
    const started = performance.now();
    if (busy || document.hidden || connection.phase === "signed-out") return;
    if (connection.retryAt != null && Date.now() < connection.retryAt) return;
    // What a view has just asked for does not wait for the rest to end.
    const latest = started < restUntil ? 0 : started;
    const due = [...watches.values()].filter((watch) => watch.due <= latest);
    const wanting = [...histories].filter((history) => history.due <= latest);
    if (due.length === 0 && wanting.length === 0) return;
    busy = true;
    try {
      const done = await Promise.all([...due.map(readWatch), ...wanting.map(readHistory)]);
      for (const pass of done) pass();
      failures = 0;
      become({ phase: "connected", since: null, retryAt: null, why: "" });
    } catch (error) {
      failed(error);
    }
    busy = false;
    restUntil = performance.now() + Math.min(10_000, (performance.now() - started) * REST_FACTOR - 1000);
  }

  /** @param {Watch} watch @returns {Promise<() => void>} */
  async function readWatch(watch) {
    try {
      const value = await read(watch.path);
      watch.due = performance.now() + watch.everyMs - TURN_MS / 2;
      return () => deliver(watch, { value, error: null });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      watch.due = performance.now() + Math.max(REFUSED_MS, watch.everyMs);
      return () => deliver(watch, { value: null, error: error.message });
    }
  }

  /** @param {History} history @returns {Promise<() => void>} */
  async function readHistory(history) {
    try {
      return await history.read(read, now());
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return history.refused(error.message, REFUSED_MS);
    }
  }

  /** @param {unknown} error */
  function failed(error) {
    if (error instanceof SignedOut) {
      become({ phase: "signed-out", since: null, retryAt: null, why: "The admin API requires a token." });
      return;
    }
    const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
    failures += 1;
    const timedOut = error instanceof DOMException && error.name === "TimeoutError";
    become({
      phase: "lost",
      since: connection.since ?? Date.now(),
      retryAt: Date.now() + wait,
      why: timedOut ? `No answer within ${TIMEOUT_MS / 1000} s.` : "The admin API cannot be reached.",
    });
  }

  setInterval(turn, TURN_MS);
  document.addEventListener("visibilitychange", turn);

  return {
    mode: "live",
    now,
    watch(path, everyMs, listener) {
      const watch = watches.get(path) ?? { path, everyMs, due: 0, listeners: new Set(), last: null };
      watch.everyMs = Math.min(watch.everyMs, everyMs);
      watches.set(path, watch);
      watch.listeners.add(listener);
      if (watch.last) listener(watch.last);
      queueMicrotask(turn);
      return () => {
        watch.listeners.delete(listener);
        if (watch.listeners.size === 0) watches.delete(path);
      };
    },
    history(query, listener) {
      const history = new History(query, listener);
      histories.add(history);
      queueMicrotask(turn);
      return () => histories.delete(history);
    },
    connection(listener) {
      connections.add(listener);
      listener(connection);
      return () => connections.delete(listener);
    },
    async act(path, body) {
      try {
        const answer = await fetch(API + path, {
          method: "POST",
          headers: { "content-type": "application/json", "weir-request": "1" },
          body: JSON.stringify(body),
          credentials: "same-origin",
          signal: AbortSignal.timeout(4 * TIMEOUT_MS),
        });
        if (answer.status === 401) failed(new SignedOut());
        const value = await answer.json().catch(() => null);
        for (const watch of watches.values()) watch.due = 0;
        const message = value?.message ?? (answer.ok ? "" : `The balancer answered ${answer.status}.`);
        return { ok: answer.ok, message, value };
      } catch {
        return {
          ok: false,
          message: "The admin API cannot be reached; it is not known whether the change took effect.",
          value: null,
        };
      }
    },
    async signIn(token) {
      try {
        const answer = await fetch("/ui/session", {
          method: "POST",
          headers: { "content-type": "application/json", "weir-request": "1" },
          body: JSON.stringify({ token }),
          credentials: "same-origin",
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        if (!answer.ok)
          return answer.status === 401 ? "This is not the token." : `The balancer answered ${answer.status}.`;
        become({ phase: "connecting", since: null, retryAt: null, why: "" });
        return null;
      } catch {
        return "The admin API cannot be reached.";
      }
    },
  };
}
