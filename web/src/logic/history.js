// The recent past as the page keeps it: a frame of rows, merged from answers of /api/v1/history and bounded.
// Frames are values: merging makes a new one. No DOM.

/** @typedef {import("../api.js").History} Answer */
/** @typedef {(number | null)[]} Column */

/** @returns {Frame} */
export function emptyFrame() {
  return { enabled: true, stepMs: 0, ended: [], covered: [], lines: new Map(), leftOut: 0 };
}

/** The key of a series in a frame.
 * @param {{kind: string, listener?: string | null, service?: string | null, server?: string | null}} series */
function lineKey({ kind, listener, service, server }) {
  return JSON.stringify([kind, listener ?? null, service ?? null, server ?? null]);
}

/** @param {Frame} frame @param {string} kind @param {string | null} [service] @param {string | null} [server] */
export function line(frame, kind, service = null, server = null) {
  return frame.lines.get(lineKey({ kind, service, server }));
}

/** @param {Frame} frame @param {string} kind */
export function linesOf(frame, kind) {
  return [...frame.lines.values()].filter((one) => one.kind === kind);
}

/** Adds the rows of an answer that the frame does not have yet, and keeps the newest `rowsMax`. An answer with
 * rows of another length starts a new frame, since rows of different lengths cannot stand side by side.
 * @param {Frame} frame @param {Answer} answer @param {number} rowsMax @returns {Frame} */
export function merge(frame, answer, rowsMax) {
  if (frame.stepMs !== answer.step_ms) frame = { ...emptyFrame(), stepMs: answer.step_ms };
  const last = frame.ended.at(-1) ?? -Infinity;
  // Half a step of tolerance: a corrected clock may shift the end of a row that is already here.
  const first = answer.ended_unix_ms.findIndex((ended) => ended > last + answer.step_ms / 2);
  const from = first < 0 ? answer.ended_unix_ms.length : first;
  const added = answer.ended_unix_ms.length - from;
  const kept = Math.min(frame.ended.length, Math.max(0, rowsMax - added));
  const skipped = Math.max(0, added - rowsMax);

  /** @template T @param {T[]} before @param {T[]} after @param {T} missing @returns {T[]} */
  const joined = (before, after, missing) => {
    const old = before.length ? before.slice(before.length - kept) : new Array(kept).fill(missing);
    const fresh = after.length ? after.slice(from + skipped) : new Array(added - skipped).fill(missing);
    return kept === 0 ? fresh : old.concat(fresh);
  };

  /** @type {Map<string, Line>} */
  const lines = new Map();
  for (const series of answer.series) {
    const key = lineKey(series);
    const before = frame.lines.get(key);
    /** @type {Record<string, Column>} */
    const columns = {};
    for (const [name, values] of Object.entries(series.columns)) {
      columns[name] = joined(before?.columns[name] ?? [], values, null);
    }
    lines.set(key, {
      kind: series.kind,
      listener: series.listener,
      service: series.service,
      server: series.server,
      columns,
      causes: mergedCauses(before, series, answer.ended_unix_ms.length, joined),
    });
  }
  return {
    enabled: answer.enabled,
    stepMs: answer.step_ms,
    ended: joined(frame.ended, answer.ended_unix_ms, 0),
    covered: joined(frame.covered, answer.covered_ms, 0),
    lines,
    leftOut: answer.left_out,
  };
}

/** @param {Line | undefined} before @param {import("../api.js").Series} series @param {number} rows
 * @param {(before: number[], after: number[], missing: number) => number[]} joined */
function mergedCauses(before, series, rows, joined) {
  /** @type {Map<string, number[]>} */
  const fresh = new Map();
  for (const { row, cause, count } of series.causes) {
    const name = cause ?? "";
    let counts = fresh.get(name);
    if (!counts) fresh.set(name, (counts = new Array(rows).fill(0)));
    counts[row] = count;
  }
  /** @type {Map<string, number[]>} */
  const causes = new Map();
  for (const name of new Set([...(before?.causes.keys() ?? []), ...fresh.keys()])) {
    const counts = joined(before?.causes.get(name) ?? [], fresh.get(name) ?? [], 0);
    if (counts.some((count) => count > 0)) causes.set(name, counts);
  }
  return causes;
}

/** Two answers of the same span as one, with the rows that both have: they may be asked for a second apart.
 * @param {Answer} one @param {Answer} other @returns {Answer} */
export function together(one, other) {
  if (one.step_ms !== other.step_ms) return one;
  const inOther = new Map(other.ended_unix_ms.map((ended, row) => [ended, row]));
  const rows = one.ended_unix_ms.map((ended, row) => [row, inOther.get(ended) ?? -1]).filter(([, row]) => row >= 0);
  /** @param {Answer} answer @param {number} side @returns {import("../api.js").Series[]} */
  const picked = (answer, side) => {
    const place = new Map(rows.map((pair, at) => [pair[side], at]));
    return answer.series.map((series) => ({
      ...series,
      columns: Object.fromEntries(
        Object.entries(series.columns).map(([name, values]) => [name, rows.map((pair) => values[pair[side]])]),
      ),
      causes: series.causes.flatMap((cause) => {
        const row = place.get(cause.row);
        return row == null ? [] : [{ ...cause, row }];
      }),
    }));
  };
  return {
    ...one,
    ended_unix_ms: rows.map(([row]) => one.ended_unix_ms[row]),
    covered_ms: rows.map(([row]) => one.covered_ms[row]),
    series: [...picked(one, 0), ...picked(other, 1)],
    left_out: one.left_out + other.left_out,
  };
}

/** The same history in about `rowsMax` rows, each the sum of several: for counts, whose single seconds are too noisy to
 * stand beside each other. Rows begin at fixed times, so that they keep their shape while new ones arrive.
 * @param {Frame} frame @param {number} rowsMax @returns {Frame} */
export function coarser(frame, rowsMax) {
  const width = Math.ceil(frame.ended.length / rowsMax);
  if (width <= 1) return frame;
  const groupMs = width * frame.stepMs;
  /** @type {number[]} */
  const starts = [];
  frame.ended.forEach((ended, row) => {
    const group = Math.floor((ended - 1) / groupMs);
    if (row === 0 || group !== Math.floor((frame.ended[row - 1] - 1) / groupMs)) starts.push(row);
  });
  /** @template T @param {T[]} values @param {(group: T[]) => T} join @returns {T[]} */
  const grouped = (values, join) => starts.map((start, at) => join(values.slice(start, starts[at + 1])));
  const sum = (/** @type {number[]} */ group) => group.reduce((total, one) => total + one, 0);
  const sumKnown = (/** @type {Column} */ group) => {
    const known = group.filter((value) => value != null);
    return known.length ? sum(known) : null;
  };
  /** @type {Map<string, Line>} */
  const lines = new Map();
  for (const [key, line] of frame.lines) {
    const columns = Object.entries(line.columns).map(([name, values]) => [name, grouped(values, sumKnown)]);
    const causes = [...line.causes].map(([name, counts]) => /** @type {const} */ ([name, grouped(counts, sum)]));
    lines.set(key, { ...line, columns: Object.fromEntries(columns), causes: new Map(causes) });
  }
  return {
    ...frame,
    stepMs: groupMs,
    ended: grouped(frame.ended, (group) => group[group.length - 1]),
    covered: grouped(frame.covered, sum),
    lines,
  };
}
