// A heat strip: one cell for each span of time, darker the further a response time is above what is usual for the
// service. Equal neighbours are joined, so that a calm strip is one shape. No DOM.

/** @typedef {{x: number, width: number, level: number}} Run Level -1: nothing measured. */

/** How many times the usual time each level begins at. */
export const LEVELS = [0, 2, 4, 8, 16];

/** @param {number | null} value @param {number | null} usual */
export function level(value, usual) {
  if (value == null) return -1;
  if (!usual) return 0;
  let at = 0;
  while (at + 1 < LEVELS.length && value >= usual * LEVELS[at + 1]) at += 1;
  return at;
}

/** @param {Column} column @param {number | null} usual @returns {Run[]} */
export function runs(column, usual) {
  /** @type {Run[]} */
  const out = [];
  column.forEach((value, x) => {
    const own = level(value, usual);
    const last = out.at(-1);
    if (last && last.level === own) last.width += 1;
    else out.push({ x, width: 1, level: own });
  });
  return out;
}

/** Positions of cells in which something failed.
 * @param {Column} failed @returns {Run[]} */
export function marks(failed) {
  return runs(
    failed.map((value) => (value ? 1 : null)),
    null,
  ).filter((run) => run.level >= 0);
}
