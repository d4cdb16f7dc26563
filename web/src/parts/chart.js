// A chart over time, drawn by uPlot. All charts of a page share one cursor and the same span; a click moves the page
// to that moment, dragging shows a part of the span, and events stand on the axis.

import { html, useEffect, useLayoutEffect, useRef } from "../html.js";
import { window as spanOf } from "../logic/address.js";
import { usePage, useWidth } from "../use.js";
import { createPlot, dataOf, restLegend } from "./plot.js";

/** @typedef {{label: string, values: Column, color: string, dash?: boolean, fill?: boolean}} Series Color: a custom property. */
/** @typedef {import("../types.js").Props} Props */

/** @param {Props} props */
export function Chart(props) {
  const { title, unit, frame, series, height = 150 } = props;
  const page = usePage();
  const { theme, address, board } = page;
  const span = spanOf(address, board.now);
  const [box, width] = useWidth();
  const legend = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {import("./plot.js").Plot} */ (null));
  const latest = useRef(/** @type {import("./plot.js").Latest} */ ({ ...props, page }));
  latest.current = { ...props, page };
  const names = series.map(({ label }) => label).join("\n");

  useLayoutEffect(() => {
    if (!box.current || width === 0) return undefined;
    const made = createPlot(box.current, legend.current, latest, width, height);
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [width > 0, names, theme, height]);

  useEffect(() => {
    if (plot.current && width > 0) plot.current.setSize({ width, height });
  }, [width, height]);

  useEffect(() => {
    plot.current?.setData(dataOf(latest.current), false);
    plot.current?.setScale("x", { min: span[0] / 1000, max: span[1] / 1000 });
    if (plot.current) restLegend(plot.current, address.at);
  }, [frame, span[0], span[1], names, width > 0, theme, address.at]);

  return html`<figure class="chart">
    <figcaption><b>${title}</b> <span>${unit}</span><div class="legend" ref=${legend}></div></figcaption>
    <div class="plot" ref=${box} role="img" aria-label=${`${title}, ${unit}: ${summary(props)}`}></div>
  </figure>`;
}

/** What a screen reader says.
 * @param {Props} props */
function summary({ series, format }) {
  return series
    .map(({ label, values }) => {
      const known = values.filter((value) => value != null).map(Number);
      return known.length
        ? `${label} now ${format(known[known.length - 1])}, at most ${format(Math.max(...known))}`
        : `${label} not measured`;
    })
    .join("; ");
}
