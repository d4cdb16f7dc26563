// Figures from the columns of a frame: rows of a span, sums, rates, and columns made for drawing. What was not measured
// stays null. No DOM.

/** The rows that ended within `spanMs` before `until`, as a half-open range of positions.
 * @param {Frame} frame @param {number} until @param {number} spanMs @returns {[number, number]} */
export function rowsBefore(frame, until, spanMs) {
  let end = frame.ended.length;
  while (end > 0 && frame.ended[end - 1] > until) end -= 1;
  let start = end;
  while (start > 0 && frame.ended[start - 1] > until - spanMs) start -= 1;
  return [start, end];
}

/** Sum of a count in a range of rows; null if nothing was measured.
 * @param {Column | undefined} column @param {[number, number]} rows @returns {number | null} */
export function total(column, [start, end]) {
  let sum = null;
  for (let row = start; row < end; row += 1) {
    const value = column?.[row];
    if (value != null) sum = (sum ?? 0) + value;
  }
  return sum;
}

/** The time that a range of rows covers, in seconds.
 * @param {Frame} frame @param {[number, number]} rows */
export function seconds(frame, [start, end]) {
  let sum = 0;
  for (let row = start; row < end; row += 1) sum += frame.covered[row];
  return sum / 1000;
}

/** A count of a range of rows per second; null if nothing was measured.
 * @param {Frame} frame @param {Column | undefined} column @param {[number, number]} rows */
export function rateIn(frame, column, rows) {
  const sum = total(column, rows);
  const time = seconds(frame, rows);
  return sum == null || time === 0 ? null : sum / time;
}

/** The last value of a range of rows.
 * @param {Column | undefined} column @param {[number, number]} rows */
export function lastIn(column, [start, end]) {
  for (let row = end - 1; row >= start; row -= 1) {
    const value = column?.[row];
    if (value != null) return value;
  }
  return null;
}

/** A count of each row as a rate per second.
 * @param {Frame} frame @param {Column | undefined} column @returns {Column} */
export function perSecond(frame, column) {
  return frame.covered.map((covered, row) => {
    const value = column?.[row];
    return value == null || covered === 0 ? null : (value * 1000) / covered;
  });
}

/** A column in milliseconds instead of microseconds.
 * @param {Column | undefined} column @returns {Column} */
export function inMillis(column) {
  return (column ?? []).map((value) => (value == null ? null : value / 1000));
}

/** The sum of a column over several lines, row by row.
 * @param {Frame} frame @param {Line[]} lines @param {string} name @returns {Column} */
export function sumOf(frame, lines, name) {
  /** @type {Column} */
  const sum = new Array(frame.ended.length).fill(null);
  for (const one of lines) {
    const column = one.columns[name];
    if (!column) continue;
    for (let row = 0; row < sum.length; row += 1) {
      const value = column[row];
      if (value != null) sum[row] = (sum[row] ?? 0) + value;
    }
  }
  return sum;
}

/** A column with a cell for each step of a span, so that lines of different lengths share one axis of time: what was not
 * measured, or has left the history, is a gap.
 * @param {Frame} frame @param {Column | undefined} column @param {[number, number]} span In ms. @returns {Column} */
export function aligned(frame, column, [start, end]) {
  const step = frame.stepMs || 1000;
  /** @type {Column} */
  const cells = new Array(Math.max(1, Math.round((end - start) / step))).fill(null);
  frame.ended.forEach((ended, row) => {
    // A row that ends with the span is its last cell.
    const at = cells.length - 1 - Math.round((end - ended) / step);
    if (at >= 0 && at < cells.length) cells[at] = column?.[row] ?? null;
  });
  return cells;
}

/** At most `cells` values, each the largest of the rows that it stands for, so that a short spike stays visible.
 * Cells are aligned to the end.
 * @param {Column} column @param {number} cells @returns {Column} */
export function condensed(column, cells) {
  const width = Math.ceil(column.length / cells);
  if (width <= 1) return column;
  /** @type {Column} */
  const out = [];
  for (let end = column.length; end > 0; end -= width) {
    let largest = null;
    for (let row = Math.max(0, end - width); row < end; row += 1) {
      const value = column[row];
      if (value != null && (largest == null || value > largest)) largest = value;
    }
    out.push(largest);
  }
  return out.reverse();
}
