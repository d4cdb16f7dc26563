// A chart over time, drawn by uPlot. All charts of a page share one cursor and the same span; a click moves the page
// to that moment, and events stand on the axis.

import { html, useEffect, useLayoutEffect, useRef } from "../html.js";
import { clock } from "../logic/figures.js";
import { withGaps } from "../logic/stack.js";
import { usePage, useWidth } from "../use.js";

/** @typedef {import("../logic/history.js").Column} Column */
/** @typedef {{label: string, values: Column, color: string, dash?: boolean, fill?: boolean}} Series Color: a custom property. */
/**
 * @typedef {object} Props
 * @property {string} title @property {string} unit
 * @property {import("../logic/history.js").Frame} frame @property {[number, number]} span In ms.
 * @property {Series[]} series @property {(value: number | null) => string} format
 * @property {import("../logic/events.js").Event[]} events @property {number | null} at
 * @property {(at: number) => void} onPick @property {boolean} [stack] Areas on top of each other: values are sums, the lowest first.
 * @property {boolean} [whole] Only whole numbers on the scale: what is counted has no halves.
 * @property {boolean} [log] A logarithmic scale, for times whose quantiles lie far apart.
 * @property {number} [height]
 */

const WHOLE = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].flatMap((power) => [power, 2 * power, 5 * power]);

/** The browser's value of a custom property that is a colour.
 * @param {string} name */
function color(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** @param {string} css @param {number} alpha */
const faint = (css, alpha) => css.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

/** @param {Props} props */
export function Chart(props) {
  const { title, unit, frame, series, span, height = 150 } = props;
  const [box, width] = useWidth();
  const legend = useRef(/** @type {HTMLElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const latest = useRef(props);
  latest.current = props;
  const names = series.map(({ label }) => label).join("\n");
  const { theme } = usePage();

  useLayoutEffect(() => {
    if (!box.current || width === 0) return undefined;
    const made = create(box.current, legend.current, latest, width, height);
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
    if (plot.current) restLegend(plot.current, latest.current.at);
  }, [frame, span[0], span[1], names, width > 0, theme, props.at]);

  return html`<figure class="chart">
    <figcaption><b>${title}</b> <span>${unit}</span><div class="legend" ref=${legend}></div></figcaption>
    <div class="plot" ref=${box} role="img" aria-label=${`${title}, ${unit}: ${summary(props)}`}></div>
  </figure>`;
}

/** @param {Props} props */
function dataOf({ frame, series }) {
  const { times, columns } = withGaps(
    frame,
    series.map(({ values }) => values),
  );
  return /** @type {any} */ ([times, ...columns]);
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

/** @param {HTMLElement} box @param {HTMLElement | null} legend @param {{current: Props}} latest
 * @param {number} width @param {number} height */
function create(box, legend, latest, width, height) {
  const [dim, rule, warn] = ["--dim", "--rule", "--warn"].map(color);
  const { series, stack, log, whole } = latest.current;
  const strokes = series.map((one) => color(one.color));
  const font = "11px " + getComputedStyle(document.body).fontFamily;
  const axis = { stroke: dim, font, ticks: { show: false }, grid: { stroke: rule, width: 1 } };
  const made = new uPlot(
    /** @type {any} */ ({
      width,
      height,
      padding: [8, 18, 0, 0],
      cursor: { sync: { key: "weir" }, drag: { x: false, y: false }, points: { size: 6 } },
      legend: {
        show: true,
        live: true,
        markers: {
          width: stack ? 0 : 2,
          stroke: (/** @type {any} */ _plot, /** @type {number} */ at) => strokes[at - 1],
          fill: (/** @type {any} */ _plot, /** @type {number} */ at) => (stack ? strokes[at - 1] : "transparent"),
        },
        mount: (/** @type {any} */ _plot, /** @type {HTMLElement} */ table) => legend?.append(table),
      },
      scales: {
        x: { time: true },
        y: log
          ? {
              distr: 3,
              range: (/** @type {any} */ _plot, /** @type {number | null} */ low, /** @type {number | null} */ high) =>
                decades(low, high),
            }
          : {
              range: (/** @type {any} */ _plot, /** @type {number} */ _low, /** @type {number} */ high) => [
                0,
                high > 0 ? high * 1.1 : 1,
              ],
            },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 24,
          space: 70,
          values: (/** @type {any} */ _plot, /** @type {number[]} */ ticks) =>
            ticks.map((at, place) => clock(at * 1000, place > 0 && ticks[place] - ticks[place - 1] < 60)),
        },
        {
          ...axis,
          size: 52,
          space: 34,
          ...(whole && { incrs: WHOLE }),
          ...(log && {
            splits: (
              /** @type {any} */ _plot,
              /** @type {any} */ _at,
              /** @type {number} */ low,
              /** @type {number} */ high,
            ) => powers(low, high),
          }),
          values: (/** @type {any} */ _plot, /** @type {number[]} */ ticks) =>
            ticks.map((value) => latest.current.format(value)),
        },
      ],
      series: [
        {
          label: "",
          value: (/** @type {any} */ _plot, /** @type {number | null} */ at) => (at == null ? "" : clock(at * 1000)),
        },
        ...series.map(({ label, dash, fill }, place) => {
          const stroke = strokes[place];
          return {
            label,
            stroke,
            width: stack ? 0 : 1.4,
            spanGaps: false,
            points: { show: false },
            dash: dash ? [5, 4] : undefined,
            fill: fill ? faint(stroke, stack ? 0.9 : 0.13) : undefined,
            // A stacked line is drawn with those below it; its figure is its own.
            value: (
              /** @type {any} */ plot,
              /** @type {number | null} */ value,
              /** @type {any} */ _at,
              /** @type {number | null} */ row,
            ) => {
              const under = stack && row != null ? plot.data[place]?.[row] : 0;
              const below = stack && place > 0 ? (under ?? 0) : 0;
              return latest.current.format(value == null ? null : value - below);
            },
          };
        }),
      ],
      bands: stack ? series.slice(1).map((_, place) => ({ series: [place + 2, place + 1] })) : undefined,
      hooks: { draw: [(/** @type {any} */ plot) => drawMoments(plot, latest.current, { dim, warn })] },
    }),
    dataOf(latest.current),
    box,
  );
  made.over.addEventListener("mouseleave", () => restLegend(made, latest.current.at));
  made.over.addEventListener("click", () => {
    const left = made.cursor.left;
    if (left != null && left >= 0) latest.current.onPick(Math.round(made.posToVal(left, "x") * 1000));
  });
  return made;
}

/** Whole powers of ten around the values.
 * @param {number | null} low @param {number | null} high @returns {[number, number]} */
function decades(low, high) {
  const from = 10 ** Math.floor(Math.log10(Math.max(low ?? 1, 0.01)));
  return [from, Math.max(from * 10, 10 ** Math.ceil(Math.log10(Math.max(high ?? 1, 0.01))))];
}

/** @param {number} low @param {number} high */
function powers(low, high) {
  const all = [];
  for (let power = Math.round(Math.log10(low)); power <= Math.round(Math.log10(high)); power += 1)
    all.push(10 ** power);
  return all;
}

/** Without a cursor the legend shows the figures of the chosen moment, or the newest.
 * @param {any} plot @param {number | null} at */
function restLegend(plot, at) {
  if (plot.cursor.left != null && plot.cursor.left >= 0) return;
  const times = /** @type {number[]} */ (plot.data[0]);
  const after = at == null ? -1 : times.findIndex((time) => time * 1000 >= at);
  plot.setLegend({ idx: after >= 0 ? after : times.length - 1 });
}

/** @param {any} plot @param {Props} props @param {{dim: string, warn: string}} colors */
function drawMoments(plot, { events, at }, { dim, warn }) {
  const { ctx, bbox } = plot;
  const line = (
    /** @type {number} */ moment,
    /** @type {string} */ stroke,
    /** @type {number[]} */ dash,
    /** @type {number} */ lineWidth,
  ) => {
    const x = plot.valToPos(moment / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.strokeStyle = stroke;
    ctx.setLineDash(dash);
    ctx.lineWidth = lineWidth;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  const ratio = devicePixelRatio;
  for (const event of events) {
    const trouble = event.kind === "bad" || event.kind === "warn";
    line(event.at, trouble ? warn : dim, [2 * ratio, 3 * ratio], ratio);
  }
  if (at != null) line(at, dim, [], 2 * ratio);
  ctx.restore();
}
