// A recorded source: the answers of one moment and its history, from a file. Nothing is fetched, nothing changes.

import { emptyFrame, merge } from "../logic/history.js";

/** @param {Recording} recording @returns {Source} */
export function recorded(recording) {
  const { host, from, at, answers, failed } = recording;
  const missing = (/** @type {string} */ path) => failed[path] ?? "it was not recorded";
  return {
    mode: "recorded",
    recording: { host, from, at },
    now: () => at,
    watch(path, _everyMs, listener) {
      const value = answers[path] ?? null;
      listener({ value, error: value == null ? missing(path) : null });
      return () => {};
    },
    history(query, listener) {
      const answer = best(recording.history, (query.until ?? at) - query.span * 1000);
      const frame = answer ? cut(answer, query, at) : emptyFrame();
      listener({ frame, error: answer ? (failed.history ?? null) : missing("history") });
      return () => {};
    },
    connection(listener) {
      listener({ phase: "connected", since: null, retryAt: null, why: "", session: false });
      return () => {};
    },
    async read(path) {
      // Of one service the recording has what it has of all.
      const [whole] = path.split("?");
      const name = Object.hasOwn(answers, whole) ? whole : whole.split("/")[0];
      const answer = name === "history" ? recording.history : answers[name];
      if (answer == null || (Array.isArray(answer) && answer.length === 0)) throw new Error(missing(name));
      return answer;
    },
    act: null,
    preview: null,
    signIn: null,
    signOut: null,
  };
}

/** The finest recorded rows that reach back as far as is asked, or as the longest ones do.
 * @param {import("../api.js").History[]} answers @param {number} startMs When the asked span begins. */
function best(answers, startMs) {
  const startOf = (/** @type {import("../api.js").History} */ one) => (one.ended_unix_ms[0] ?? Infinity) - one.step_ms;
  const sorted = answers.filter((one) => one.ended_unix_ms.length > 0).sort((a, b) => a.step_ms - b.step_ms);
  const longest = sorted.at(-1);
  // The first of the longest rows began up to a row before those of the finer ones.
  const earliest = longest ? startOf(longest) + longest.step_ms : Infinity;
  return sorted.find((one) => startOf(one) <= Math.max(startMs, earliest)) ?? longest;
}

/** @param {import("../api.js").History} answer @param {HistoryQuery} query @param {number} end */
function cut(answer, query, end) {
  const until = query.until ?? end;
  const from = until - query.span * 1000;
  const inside = answer.ended_unix_ms.map((ended) => ended > from && ended <= until);
  const first = inside.indexOf(true);
  const rows = inside.filter(Boolean).length;
  const wanted = (/** @type {string} */ name) => query.columns.length === 0 || query.columns.includes(name);
  const series = answer.series
    .filter((one) => query.kinds.some((kind) => kind === one.kind) && (!query.service || one.service === query.service))
    .map((one) => ({
      ...one,
      columns: Object.fromEntries(
        Object.entries(one.columns)
          .filter(([name]) => wanted(name))
          .map(([name, values]) => [name, values.slice(first, first + rows)]),
      ),
      causes: (wanted("causes") ? one.causes : [])
        .filter(({ row }) => inside[row])
        .map((cause) => ({ ...cause, row: cause.row - first })),
    }));
  return merge(
    emptyFrame(),
    {
      ...answer,
      ended_unix_ms: answer.ended_unix_ms.slice(first, first + rows),
      covered_ms: answer.covered_ms.slice(first, first + rows),
      series: first < 0 ? [] : series,
    },
    Math.max(1, rows),
  );
}
