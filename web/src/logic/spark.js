// A small line, and the areas of a stacked one, as SVG paths. Gaps stay gaps. No DOM.

/** The largest value of a column, at least `floor`.
 * @param {Column} column @param {number} floor */
function top(column, floor) {
  let most = floor;
  for (const value of column) if (value != null && value > most) most = value;
  return most;
}

/** @param {Column} column @param {number} width @param {number} height
 * @param {{min?: number, max?: number}} [range] Zero to the largest value without it.
 * @returns {{stroke: string, area: string}} */
export function spark(column, width, height, { min = 0, max = top(column, 0) } = {}) {
  const across = column.length > 1 ? width / (column.length - 1) : 0;
  const inner = height - 3;
  const y = (/** @type {number} */ value) =>
    (1.5 + (max > min ? inner * (1 - (value - min) / (max - min)) : inner)).toFixed(1);
  let stroke = "";
  let area = "";
  let start = -1;
  for (let at = 0; at <= column.length; at += 1) {
    const value = column[at];
    if (value != null && start < 0) start = at;
    if (value == null && start >= 0) {
      const points = column
        .slice(start, at)
        .map((one, offset) => `${((start + offset) * across).toFixed(1)},${y(Number(one))}`);
      stroke += points.length === 1 ? `M${points[0]}h0.01` : "M" + points.join("L");
      area += `M${(start * across).toFixed(1)},${height}L${points.join("L")}L${((at - 1) * across).toFixed(1)},${height}Z`;
      start = -1;
    }
  }
  return { stroke, area };
}
