// The chart of requests that were not served, by cause.

import { html } from "../html.js";
import { figure } from "../logic/figures.js";
import { coarser, linesOf } from "../logic/history.js";
import { STACK_ROWS, endings, stacked } from "../logic/stack.js";
import { Chart } from "./chart.js";

/** Rows in which the chart can be read, and the causes in them.
 * @param {Frame} frame @param {"listener" | "service"} kind @param {number} layersMax */
export function notServed(frame, kind, layersMax) {
  const coarse = coarser(frame, STACK_ROWS);
  return { coarse, layers: endings(coarse, linesOf(coarse, kind), layersMax) };
}

/** @param {ReturnType<typeof notServed> & {unit: string, height?: number}} props */
export function NotServed({ coarse, layers, unit, height }) {
  const areas = stacked(layers);
  const series = layers.length
    ? layers.map((layer, at) => ({
        label: layer.name || "rarer causes",
        values: areas[at],
        color: `--c${at + 1}`,
        fill: true,
      }))
    : [{ label: "none in this span", values: coarse.ended.map(() => 0), color: "--c0" }];
  return html`<${Chart} title="Not served" unit=${unit} stack=${true} height=${height} frame=${coarse} format=${figure} series=${series} />`;
}
