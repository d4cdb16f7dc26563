// What a chart draws and does, in the terms of uPlot: scales, axes, lines, moments, and what the pointer chooses.

import { format as addressOf, zoomed } from "../logic/address.js";
import { clock } from "../logic/figures.js";
import { withGaps } from "../logic/stack.js";

/** @typedef {any} Plot An instance of uPlot. */
/** @typedef {import("./chart.js").Props & {page: Page}} Latest What the drawing reads at each moment. */

/** Shorter movements of the pointer are clicks. */
const DRAG_MIN_PX = 6;
const WHOLE = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000].flatMap((power) => [power, 2 * power, 5 * power]);

/** @param {HTMLElement} box @param {HTMLElement | null} legend @param {{current: Latest}} latest
 * @param {number} width @param {number} height @returns {Plot} */
export function createPlot(box, legend, latest, width, height) {
  const [dim, rule, warn] = ["--dim", "--rule", "--warn"].map(color);
  const { series, stack } = latest.current;
  const strokes = series.map((one) => color(one.color));
  // Synchronised charts get the selection of each other; only the one under the pointer acts.
  let pressed = false;
  const made = new uPlot(
    /** @type {any} */ ({
      width,
      height,
      padding: [8, 18, 0, 0],
      cursor: {
        sync: { key: "weir" },
        drag: { x: true, y: false, setScale: false, dist: DRAG_MIN_PX },
        points: { size: 6 },
      },
      legend: legendOf(strokes, Boolean(stack), legend),
      scales: { x: { time: true }, y: scaleOf(latest.current) },
      axes: axesOf(latest, dim, rule),
      series: [
        {
          label: "",
          value: (/** @type {Plot} */ _plot, /** @type {number | null} */ at) => (at == null ? "" : clock(at * 1000)),
        },
        ...linesOf(latest, strokes),
      ],
      bands: stack ? series.slice(1).map((_, place) => ({ series: [place + 2, place + 1] })) : undefined,
      hooks: {
        setSelect: [
          (/** @type {Plot} */ plot) => {
            const span = takeSelection(plot);
            if (span && pressed) location.hash = zoomed(latest.current.page.address, span[0], span[1]);
            pressed = false;
          },
        ],
        draw: [(/** @type {Plot} */ plot) => drawMoments(plot, latest.current, { dim, warn })],
      },
    }),
    dataOf(latest.current),
    box,
  );
  made.over.addEventListener("mousedown", () => (pressed = true));
  made.over.addEventListener("mouseleave", () => restLegend(made, latest.current.page.address.at));
  made.over.addEventListener("click", () => pick(made, latest.current.page.address));
  return made;
}

/** Times and values as uPlot takes them.
 * @param {Pick<Latest, "frame" | "series">} latest */
export function dataOf({ frame, series }) {
  const { times, columns } = withGaps(
    frame,
    series.map(({ values }) => values),
  );
  return /** @type {any} */ ([times, ...columns]);
}

/** Without a cursor the legend shows the figures of the chosen moment, or the newest.
 * @param {Plot} plot @param {number | null} at */
export function restLegend(plot, at) {
  if (plot.cursor.left != null && plot.cursor.left >= 0) return;
  const times = /** @type {number[]} */ (plot.data[0]);
  const after = at == null ? -1 : times.findIndex((time) => time * 1000 >= at);
  plot.setLegend({ idx: after >= 0 ? after : times.length - 1 });
}

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

/** @param {string[]} strokes @param {boolean} stack @param {HTMLElement | null} legend */
function legendOf(strokes, stack, legend) {
  const stroke = (/** @type {Plot} */ _plot, /** @type {number} */ at) => strokes[at - 1];
  return {
    show: true,
    live: true,
    markers: { width: stack ? 0 : 2, stroke, fill: stack ? stroke : () => "transparent" },
    mount: (/** @type {Plot} */ _plot, /** @type {HTMLElement} */ table) => legend?.append(table),
  };
}

/** From zero, with room above; or whole powers of ten.
 * @param {Latest} latest */
function scaleOf({ log }) {
  if (!log) {
    const range = (/** @type {Plot} */ _plot, /** @type {number} */ _low, /** @type {number} */ high) => [
      0,
      high > 0 ? high * 1.1 : 1,
    ];
    return { range };
  }
  const range = (/** @type {Plot} */ _plot, /** @type {number | null} */ low, /** @type {number | null} */ high) => {
    const from = 10 ** Math.floor(Math.log10(Math.max(low ?? 1, 0.01)));
    return [from, Math.max(from * 10, 10 ** Math.ceil(Math.log10(Math.max(high ?? 1, 0.01))))];
  };
  return { distr: 3, range };
}

/** @param {{current: Latest}} latest @param {string} stroke @param {string} rule */
function axesOf(latest, stroke, rule) {
  const { whole, log } = latest.current;
  const font = "11px " + getComputedStyle(document.body).fontFamily;
  const axis = { stroke, font, ticks: { show: false } };
  const times = (/** @type {Plot} */ _plot, /** @type {number[]} */ ticks) =>
    ticks.map((at, place) => clock(at * 1000, place > 0 && ticks[place] - ticks[place - 1] < 60));
  // A logarithmic scale leaves out ticks that have no room.
  const values = (/** @type {Plot} */ _plot, /** @type {(number | null)[]} */ ticks) =>
    ticks.map((value) => (value == null ? "" : latest.current.format(value)));
  return [
    { ...axis, grid: { show: false }, size: 24, space: 70, values: times },
    {
      ...axis,
      grid: { stroke: rule, width: 1 },
      size: 52,
      space: 34,
      values,
      ...(whole && { incrs: WHOLE }),
      ...(log && { splits: powers }),
    },
  ];
}

/** @param {Plot} _plot @param {number} _axis @param {number} low @param {number} high */
function powers(_plot, _axis, low, high) {
  const all = [];
  for (let power = Math.round(Math.log10(low)); power <= Math.round(Math.log10(high)); power += 1)
    all.push(10 ** power);
  return all;
}

/** @param {{current: Latest}} latest @param {string[]} strokes */
function linesOf(latest, strokes) {
  const { series, stack } = latest.current;
  return series.map(({ label, dash, fill }, place) => ({
    label,
    stroke: strokes[place],
    width: stack ? 0 : 1.4,
    spanGaps: false,
    points: { show: false },
    dash: dash ? [5, 4] : undefined,
    fill: fill ? faint(strokes[place], stack ? 0.9 : 0.13) : undefined,
    // A stacked line is drawn with those below it; its figure is its own.
    value(
      /** @type {Plot} */ plot,
      /** @type {number | null} */ value,
      /** @type {number} */ _series,
      /** @type {number | null} */ row,
    ) {
      const below = stack && place > 0 && row != null ? (plot.data[place]?.[row] ?? 0) : 0;
      return latest.current.format(value == null ? null : value - below);
    },
  }));
}

/** Moves the page to the moment under the pointer.
 * @param {Plot} plot @param {Address} address */
function pick(plot, address) {
  const { left } = plot.cursor;
  if (left == null || left < 0) return;
  location.hash = addressOf({ ...address, at: Math.round(plot.posToVal(left, "x") * 1000) });
}

/** The moments between which the pointer was dragged. The mark of the selection ends.
 * @param {Plot} plot @returns {[number, number] | null} */
function takeSelection(plot) {
  const { left, width } = plot.select;
  if (width < DRAG_MIN_PX) return null;
  plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  return [plot.posToVal(left, "x") * 1000, plot.posToVal(left + width, "x") * 1000];
}

/** @param {Plot} plot @param {Latest} latest @param {{dim: string, warn: string}} colors */
function drawMoments(plot, { page }, { dim, warn }) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const line = (
    /** @type {number} */ moment,
    /** @type {string} */ stroke,
    /** @type {number[]} */ dash,
    /** @type {number} */ width,
  ) => {
    const x = plot.valToPos(moment / 1000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.strokeStyle = stroke;
    ctx.setLineDash(dash);
    ctx.lineWidth = width;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  for (const { at, kind } of page.board.events) {
    line(at, kind === "bad" || kind === "warn" ? warn : dim, [2 * ratio, 3 * ratio], ratio);
  }
  if (page.address.at != null) line(page.address.at, dim, [], 2 * ratio);
  ctx.restore();
}
