// Counts by cause as stacked areas: each line is the sum of itself and those below. No DOM.

/** @typedef {{name: string, total: number, values: Column}} Layer */

/** A response with a status of 500 and above that a server sent: it was forwarded, so its cause is `completed`. */
export const SERVER_5XX = "5xx from a server";
const COMPLETED = "completed";

/** How requests ended that were not served well: the most frequent causes of several lines as layers of rates, the
 * largest first, and the servers' 5xx among them; the rest is one layer.
 * @param {Frame} frame @param {Line[]} lines
 * @param {number} layersMax @returns {Layer[]} */
export function endings(frame, lines, layersMax) {
  /** @type {Map<string, number[]>} */
  const counts = new Map();
  /** @param {string} cause @param {number[]} values */
  const add = (cause, values) => {
    const sum = counts.get(cause);
    if (sum)
      values.forEach((value, row) => {
        sum[row] += value;
      });
    else counts.set(cause, [...values]);
  };
  for (const line of lines) {
    for (const [cause, values] of line.causes) if (cause !== COMPLETED) add(cause, values);
    const own = server5xx(line);
    if (own.some((value) => value > 0)) add(SERVER_5XX, own);
  }
  const all = [...counts]
    .map(([name, values]) => ({ name, values, total: values.reduce((sum, one) => sum + one, 0) }))
    .sort((a, b) => Number(a.name === "") - Number(b.name === "") || b.total - a.total);
  const kept = all.length > layersMax ? all.slice(0, layersMax - 1) : all;
  const rest = all.slice(kept.length);
  if (rest.length) {
    kept.push({
      name: "",
      values: frame.ended.map((_, row) => rest.reduce((sum, one) => sum + one.values[row], 0)),
      total: rest.reduce((sum, one) => sum + one.total, 0),
    });
  }
  return kept.map(({ name, total, values }) => ({
    name,
    total,
    values: values.map((value, row) => (frame.covered[row] ? (value * 1000) / frame.covered[row] : null)),
  }));
}

/** What counts as completed, but was not served: a row's requests are the failed, the refused, those that
 * failed because of the client, and the served ones.
 * @param {Line} line */
function server5xx({ columns, causes }) {
  return (causes.get(COMPLETED) ?? []).map((completed, row) => {
    const of = (/** @type {string} */ name) => columns[name]?.[row] ?? 0;
    return Math.max(0, completed - (of("requests") - of("failed") - of("refused") - of("client_faults")));
  });
}

/** Rows in which a stacked chart can still be read. */
export const STACK_ROWS = 180;

/** The columns that `endings` reads. */
export const ENDINGS = ["requests", "failed", "refused", "client_faults", "causes"];

/** @param {Layer[]} layers @returns {Column[]} */
export function stacked(layers) {
  /** @type {Column} */
  let below = [];
  return layers.map(({ values }) => {
    below = values.map((value, row) => (value == null ? null : value + (below[row] ?? 0)));
    return below;
  });
}

/** Times with nulls where rows are missing, so that a chart does not draw a line over a pause.
 * @param {Frame} frame @param {Column[]} columns
 * @returns {{times: number[], columns: Column[]}} Times in seconds. */
export function withGaps(frame, columns) {
  /** @type {number[]} */
  const times = [];
  /** @type {Column[]} */
  const out = columns.map(() => []);
  frame.ended.forEach((ended, row) => {
    const before = frame.ended[row - 1];
    if (row > 0 && ended - before > 2.5 * frame.stepMs) {
      times.push((before + frame.stepMs) / 1000);
      out.forEach((column) => column.push(null));
    }
    times.push(ended / 1000);
    out.forEach((column, at) => column.push(columns[at][row] ?? null));
  });
  return { times, columns: out };
}
