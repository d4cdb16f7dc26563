// Heat strips: response times of a server over time, against what is usual for its service.

import { html } from "../html.js";
import { LEVELS, marks, runs } from "../logic/heat.js";
import { aligned, condensed } from "../logic/columns.js";
import { duration } from "../logic/figures.js";

/** @typedef {import("../logic/history.js").Column} Column */

const CELLS = 60;
const ROW = 9;

/** @param {{frame: import("../logic/history.js").Frame, seconds: number, rows: Column[], failed: Column, usual: number | null,
 *   label: string}} props
 * rows: in ms, one strip each, the first on top. */
export function Heat({ frame, seconds, rows, failed, usual, label }) {
  const end = frame.ended.at(-1) ?? 0;
  const cells = (/** @type {Column} */ column) => condensed(aligned(frame, column, [end - seconds * 1000, end]), CELLS);
  const cut = rows.map(cells);
  const width = Math.max(1, ...cut.map((row) => row.length));
  const height = rows.length * ROW + 3;
  return html`<svg class="heat" viewBox=${`0 0 ${width} ${height}`} height=${height} preserveAspectRatio="none"
    role="img" aria-label=${label}>
    ${cut.map((row, at) =>
      runs(row, usual).map(
        (run) =>
          run.level >= 0 &&
          html`
      <rect class=${"h" + run.level} x=${run.x} y=${at * ROW} width=${run.width} height=${ROW - 1} />`,
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
