// The live source: reads the admin API of the balancer that serves this page.
//
// What the balancer pushes arrives by a stream of events. All else is polled: one loop reads everything that is due, side
// by side, and passes it on together, so that a page never shows figures of different seconds. Without a stream the loop
// polls its topics, too. Both rest while the page is hidden and wait longer after each failure, and the loop never spends
// more than a tenth of the time on reading: large answers make it slower.

import { API, Api, SignedOut, explained } from "./api.js";
import { History } from "./rows.js";
import { Session } from "./session.js";
import { PARAMETERS } from "./source.js";
import { readStream } from "./stream.js";

/** @typedef {import("./source.js").Listener} Listener */
/** @typedef {{path: string, everyMs: number, due: number, listeners: Set<Listener>, last: Reading | null}} Watch */
/** @typedef {{pass: () => void, failure: string | null}} Result Failure: why there was no answer at all. */

/** The paths that the stream pushes. */
const TOPICS = ["traffic", "status", "services", "findings", "reloads", "changes"];
const RETRY_MS = [1000, 2000, 4000, 8000, 15_000];
/** After an answer that refuses, or no answer to one path: it is asked again, but seldom. */
const REFUSED_MS = 15_000;
/** Polling goes on for this long before the stream is tried again. */
const STREAM_AGAIN_MS = 30_000;
/** Timers of the loop: finer than the shortest interval, so that reads do not drift apart. */
const TURN_MS = 250;
const REST_FACTOR = 10;

/** @returns {Source} */
export function live() {
  const session = new Session();
  const api = new Api(session, (key) => signedOut(key));
  /** @type {Map<string, Watch>} */
  const watches = new Map();
  /** @type {Set<History>} */
  const histories = new Set();
  /** @type {Set<(connection: Connection) => void>} */
  const connections = new Set();
  /** @type {Connection} */
  let connection = { phase: "connecting", since: null, retryAt: null, why: "", session: session.key != null };
  /** The stream, while it is open or being opened. @type {{stop: AbortController, heard: boolean} | null} */
  let stream = null;
  /** The last event of each topic. @type {Map<string, Reading>} */
  const pushed = new Map();
  let streamAgain = 0;
  let failures = 0;
  /** When the next attempt begins after a failure. */
  let again = 0;
  let heardAt = Date.now();
  let busy = false;
  let restUntil = 0;
  /** The balancer's clock minus this browser's. */
  let skewMs = 0;
  const now = () => Date.now() + skewMs;

  /** @param {Partial<Connection> & {phase: Connection["phase"]}} change */
  function become(change) {
    const next = { since: null, retryAt: null, why: "", ...change, session: session.key != null };
    const keys = /** @type {(keyof Connection)[]} */ (Object.keys(next));
    if (keys.every((key) => next[key] === connection[key])) return;
    connection = next;
    for (const listener of connections) listener(connection);
  }

  function connected() {
    failures = 0;
    heardAt = Date.now();
    become({ phase: "connected" });
  }

  /** @param {string} why */
  function lost(why) {
    const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)];
    failures += 1;
    again = performance.now() + wait;
    become({ phase: "lost", since: heardAt, retryAt: Date.now() + wait, why });
  }

  /** @param {string | null} key The key that was refused. @param {string} [why] */
  function signedOut(key, why = key == null ? "" : "The session has ended.") {
    session.forget(key);
    stopStream();
    become({ phase: "signed-out", why });
  }

  /** Passes an answer to those who watch its path.
   * @param {Watch} watch @param {Reading} reading */
  function deliver(watch, reading) {
    if (watch.path === "traffic" && reading.value) skewMs = reading.value.at_unix_ms - Date.now();
    // An answer stays when there is no newer one.
    watch.last = { value: reading.value ?? watch.last?.value ?? null, error: reading.error };
    for (const listener of watch.listeners) listener(watch.last);
  }

  /** @param {import("./sse.js").ServerEvent} event */
  function push({ event, data }) {
    const value = JSON.parse(data);
    const topic = event === "unavailable" ? value.topic : event;
    if (!TOPICS.includes(topic)) return;
    const reading = event === "unavailable" ? { value: null, error: value.message } : { value, error: null };
    pushed.set(topic, reading);
    const watch = watches.get(topic);
    if (watch) deliver(watch, reading);
  }

  async function openStream() {
    const own = { stop: new AbortController(), heard: false };
    stream = own;
    const key = session.key;
    const opened = performance.now();
    const end = await readStream(`${API}stream?topics=${TOPICS.join(",")}`, session.headers(), own.stop.signal, {
      heard() {
        own.heard = true;
        connected();
      },
      event: push,
    });
    if (stream !== own) return;
    stream = null;
    pushed.clear();
    if (end.kind === "refused" && end.status === 401) return signedOut(key);
    // Where nothing at all arrives, something between may hold the stream back: polling shows whether the balancer answers.
    if (end.kind === "refused" || (end.kind === "lost" && end.silent && !own.heard))
      streamAgain = performance.now() + STREAM_AGAIN_MS;
    else if (end.kind === "lost") lost(end.why);
    else if (performance.now() - opened < RETRY_MS[0]) lost("The balancer is closing its connections.");
    turn();
  }

  function stopStream() {
    stream?.stop.abort();
    stream = null;
    pushed.clear();
  }

  async function turn() {
    const started = performance.now();
    if (document.hidden) {
      stopStream();
      // What is shown when the page comes back is old until there is an answer.
      if (connection.phase !== "signed-out") become({ phase: "connecting" });
      return;
    }
    if (connection.phase === "signed-out") {
      // Another tab may have signed in.
      if (session.key == null) return;
      become({ phase: "connecting" });
    }
    if (started < again && connection.phase === "lost") return;
    const pushes = TOPICS.some((topic) => watches.has(topic));
    if (!pushes) stopStream();
    else if (stream == null && started >= streamAgain) void openStream();
    await poll(started);
  }

  /** @param {number} started */
  async function poll(started) {
    if (busy) return;
    // What a view has just asked for does not wait for the rest to end.
    const latest = started < restUntil ? 0 : started;
    const due = [...watches.values()].filter(({ path, due }) => due <= latest && !(stream && TOPICS.includes(path)));
    const wanting = [...histories].filter((history) => history.due <= latest);
    if (due.length === 0 && wanting.length === 0) return;
    busy = true;
    try {
      const done = await Promise.all([...due.map(readWatch), ...wanting.map(readHistory)]);
      // It may have been signed out meanwhile.
      if (/** @type {string} */ (connection.phase) === "signed-out") return;
      const answered = done.some(({ failure }) => failure == null);
      if (answered || stream?.heard) for (const { pass } of done) pass();
      if (answered) connected();
      else if (!stream?.heard) lost(done[0].failure ?? "");
    } catch (error) {
      if (!(error instanceof SignedOut)) throw error;
    } finally {
      busy = false;
      restUntil = performance.now() + Math.min(10_000, (performance.now() - started) * REST_FACTOR - 1000);
    }
  }

  /** @param {Watch} watch @returns {Promise<Result>} */
  async function readWatch(watch) {
    try {
      const value = await api.read(watch.path + (PARAMETERS[watch.path] ?? ""));
      watch.due = performance.now() + watch.everyMs - TURN_MS / 2;
      return { pass: () => deliver(watch, { value, error: null }), failure: null };
    } catch (error) {
      if (error instanceof SignedOut) throw error;
      const { why, answered } = explained(error);
      const pass = () => {
        watch.due = performance.now() + Math.max(REFUSED_MS, watch.everyMs);
        deliver(watch, { value: null, error: why });
      };
      return { pass, failure: answered ? null : why };
    }
  }

  /** @param {History} history @returns {Promise<Result>} */
  async function readHistory(history) {
    try {
      return { pass: await history.read((path) => api.read(path), now()), failure: null };
    } catch (error) {
      if (error instanceof SignedOut) throw error;
      const { why, answered } = explained(error);
      return { pass: () => history.refused(why, REFUSED_MS), failure: answered ? null : why };
    }
  }

  setInterval(turn, TURN_MS);
  document.addEventListener("visibilitychange", turn);

  return {
    mode: "live",
    recording: null,
    now,
    watch(path, everyMs, listener) {
      const watch = watches.get(path) ?? {
        path,
        everyMs,
        due: 0,
        listeners: new Set(),
        last: pushed.get(path) ?? null,
      };
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
    read: (path) => api.read(path),
    async act(path, body) {
      const outcome = await api.act(path, body);
      for (const watch of watches.values()) watch.due = 0;
      return outcome;
    },
    preview: (path, body) => api.preview(path, body),
    async signIn(token) {
      const failure = await session.signIn(token);
      if (failure == null) become({ phase: "connecting" });
      return failure;
    },
    async signOut() {
      const { key } = session;
      signedOut(key, await session.signOut());
    },
  };
}
