// Reads the events that the balancer pushes. EventSource cannot send headers, so the stream is read with fetch.

import { EventParser } from "./sse.js";

/** Without a byte for this long the connection is lost: the balancer sends a comment every ten seconds. */
const SILENCE_MAX_MS = 15_000;
/** The most characters of one event: the traffic of 4,000 servers takes about 2 million. */
const EVENT_LENGTH_MAX = 32_000_000;

/**
 * @typedef {{kind: "refused", status: number, message: string} | {kind: "lost", why: string, silent: boolean}
 *   | {kind: "closing"} | {kind: "stopped"}} End
 */
/** @typedef {import("../types.js").Listener} Listener */

/** Reads events until the stream ends, and returns how it ended.
 * @param {string} path @param {Record<string, string>} headers @param {AbortSignal} stop @param {Listener} listener
 * @param {number} [silenceMaxMs] @returns {Promise<End>} */
export async function readStream(path, headers, stop, listener, silenceMaxMs = SILENCE_MAX_MS) {
  const reading = new AbortController();
  stop.addEventListener("abort", () => reading.abort());
  let timer = setTimeout(() => reading.abort(), silenceMaxMs);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => reading.abort(), silenceMaxMs);
    listener.heard();
  };
  try {
    const answer = await fetch(path, {
      headers: { ...headers, accept: "text/event-stream" },
      cache: "no-store",
      credentials: "same-origin",
      signal: reading.signal,
    });
    if (!answer.ok || !answer.body) {
      const body = await answer.json().catch(() => null);
      const message = body?.message ?? `the balancer answered ${answer.status} to ${path}`;
      return { kind: "refused", status: answer.status, message };
    }
    heard();
    const parser = new EventParser(EVENT_LENGTH_MAX);
    const decoder = new TextDecoder();
    const pieces = answer.body.getReader();
    for (;;) {
      const { done, value } = await pieces.read();
      if (done) return { kind: "lost", why: "The balancer closed the connection.", silent: false };
      heard();
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (event.event === "closing") return { kind: "closing" };
        listener.event(event);
      }
    }
  } catch (error) {
    if (stop.aborted) return { kind: "stopped" };
    const silent = reading.signal.aborted;
    const unreadable = error instanceof RangeError || error instanceof SyntaxError;
    const why = silent
      ? `Nothing was received for ${silenceMaxMs / 1000} s.`
      : unreadable
        ? "The balancer sent what the page cannot read."
        : "The admin API cannot be reached.";
    return { kind: "lost", why, silent };
  } finally {
    clearTimeout(timer);
    // Closes the connection if it is still open.
    reading.abort();
  }
}
