// A small line of the recent past.

import { html } from "../html.js";
import { spark } from "../logic/spark.js";
import { condensed } from "../logic/columns.js";

/** @param {{line: Column, height: number, warn?: boolean, label: string,
 *   cells?: number, marker?: number | null, floor?: number}} props
 * marker: a place between 0 and 1; floor: the scale reaches at least this far, so that noise is not a mountain. */
export function Spark({ line, height, warn = false, label, cells = 120, marker = null, floor = 0 }) {
  const cut = condensed(line, cells);
  const most = Math.max(floor, ...cut.map((value) => value ?? 0));
  const { stroke, area } = spark(cut, 120, height, { min: 0, max: most });
  return html`<svg class=${"spark" + (warn ? " warn" : "")} viewBox=${`0 0 120 ${height}`} height=${height}
    preserveAspectRatio="none" role="img" aria-label=${label}>
    <path class="area" d=${area} /><path class="stroke" d=${stroke} />
    ${marker != null && html`<path class="moment" d=${`M${(marker * 120).toFixed(1)},0V${height}`} />`}
  </svg>`;
}
