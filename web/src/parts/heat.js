// Heat strips: response times of a server over time, against what is usual for its service. A slower time is darker and
// taller.

import { html } from "../html.js";
import { LEVELS, marks, runs } from "../logic/heat.js";
import { aligned, condensed } from "../logic/columns.js";
import { count, duration } from "../logic/figures.js";

const CELLS = 60;
const ROW = 11;

/** @param {number} level */
function tall(level) {
  return 2 + (level * (ROW - 3)) / (LEVELS.length - 1);
}

/** What a screen reader says in place of a strip.
 * @param {Column[]} rows @param {Column} failed @param {number | null} usual */
function summary(rows, failed, usual) {
  const slowest = Math.max(0, ...rows.flat().map((value) => value ?? 0));
  const sum = failed.reduce((total, value) => Number(total) + (value ?? 0), 0);
  return `at most ${duration(slowest)}, usual is ${duration(usual)}; ${count(sum)} failed`;
}

/** @param {{frame: Frame, seconds: number, rows: Column[], failed: Column, usual: number | null,
 *   label: string}} props
 * rows: in ms, one strip each, the first on top. */
export function Heat({ frame, seconds, rows, failed, usual, label }) {
  const end = frame.ended.at(-1) ?? 0;
  const cells = (/** @type {Column} */ column) => condensed(aligned(frame, column, [end - seconds * 1000, end]), CELLS);
  const cut = rows.map(cells);
  const width = Math.max(1, ...cut.map((row) => row.length));
  const height = rows.length * ROW + 3;
  return html`<svg class="heat" viewBox=${`0 0 ${width} ${height}`} height=${height} preserveAspectRatio="none"
    role="img" aria-label=${`${label}: ${summary(cut, cells(failed), usual)}`}>
    ${cut.map((row, at) =>
      runs(row, usual).map(
        (run) =>
          run.level >= 0 &&
          html`
      <rect class=${"h" + run.level} x=${run.x} y=${at * ROW + ROW - 1 - tall(run.level)} width=${run.width} height=${tall(run.level)} />`,
      ),
    )}
    ${marks(cells(failed)).map(
      (run) => html`
      <rect class="failed" x=${run.x} y=${rows.length * ROW} width=${run.width} height="3" />`,
    )}
  </svg>`;
}

/** What the shades mean.
 * @param {{usual: number | null}} props */
export function HeatKey({ usual }) {
  return html`<p class="key">
    <span>First byte against the service's median${usual == null ? "" : ` (${duration(usual)})`}:</span>
    ${LEVELS.map((times, at) => html`<span><i class=${"h" + at}></i>${at === 0 ? "usual" : `${times}×`}</span>`)}
    <span><i class="failed"></i>a request failed</span>
  </p>`;
}
