// Where the nodes and links of the map stand in a drawing of a given width. No DOM.

import { figure, shortened } from "./figures.js";

/** @typedef {import("./flow.js").Flow} Flow */
/** @typedef {import("./flow.js").Node} Node */
/** @typedef {import("./flow.js").Link} Link */

const GAP = 10;
const HEIGHT_MIN = 34;
const BAND = 76;

/** @typedef {Node & {x: number, y: number, width: number, height: number, text: string, figure: string}} Box */
/** @typedef {Link & {path: string, width: number}} Ribbon */

/** Places the nodes in a drawing of the given width. The height depends on the number of nodes only, so that a page does
 * not move while rates change: a box has a minimum, and its part of the band that all traffic shares.
 * @param {Flow} whole @param {number} width */
export function layout({ columns, links }, width) {
  const boxWidth = Math.max(84, Math.min(176, width / (columns.length * 1.75)));
  const step = columns.length > 1 ? (width - boxWidth) / (columns.length - 1) : 0;
  const most = Math.max(1, ...columns.map(({ nodes }) => nodes.reduce((sum, one) => sum + one.rate, 0)));
  const scale = BAND / most;
  const heightOf = (/** @type {Node} */ one) => HEIGHT_MIN + one.rate * scale;
  const heights = columns.map(
    ({ nodes }) => nodes.reduce((sum, one) => sum + heightOf(one), 0) + GAP * Math.max(0, nodes.length - 1),
  );
  const top = 24;
  const longest = Math.max(1, ...columns.map(({ nodes }) => nodes.length));
  const height = longest * (HEIGHT_MIN + GAP) - GAP + BAND;

  /** @type {Map<string, Box>} */
  const boxes = new Map();
  columns.forEach(({ nodes }, at) => {
    const spread = nodes.length > 1 ? (height - heights[at]) / nodes.length : 0;
    let y = top + (nodes.length > 1 ? spread / 2 : (height - heights[at]) / 2);
    for (const one of nodes) {
      const own = heightOf(one);
      const letters = Math.floor((boxWidth - (one.word ? 32 : 18)) / 6.6);
      boxes.set(one.key, {
        ...one,
        x: at * step,
        y,
        width: boxWidth,
        height: own,
        text: shortened(one.label, letters),
        figure: `${figure(one.rate)}/s${one.word ? " · " + one.word : ""}`,
      });
      y += own + GAP + spread;
    }
  });
  return {
    width,
    height: top + height + 4,
    top,
    boxes: [...boxes.values()],
    ribbons: ribbons(links, boxes, scale),
    titles: columns.map(({ title, nodes }, at) => ({ title, x: at * step, empty: nodes.length === 0 })),
  };
}

/** @param {Link[]} links @param {Map<string, Box>} boxes @param {number} scale @returns {Ribbon[]} */
function ribbons(links, boxes, scale) {
  const place = (/** @type {string} */ key) => boxes.get(key);
  const thick = (/** @type {Link} */ one) =>
    one.rate == null ? 3 : Math.max(one.rate > 0 ? 1.5 : 0, one.rate * scale);
  const known = links.filter((one) => place(one.from) && place(one.to) && (one.rate == null || one.rate > 0));
  /** Where each link leaves or enters its box: side by side, in the order of the boxes at the other end.
   * @param {"from" | "to"} side @param {"from" | "to"} other */
  const offsets = (side, other) => {
    /** @type {Map<Link, number>} */
    const middles = new Map();
    for (const box of boxes.values()) {
      const own = known
        .filter((one) => one[side] === box.key)
        .sort((a, b) => (place(a[other])?.y ?? 0) - (place(b[other])?.y ?? 0));
      let y = box.y + (box.height - own.reduce((sum, one) => sum + thick(one), 0)) / 2;
      for (const one of own) {
        middles.set(one, y + thick(one) / 2);
        y += thick(one);
      }
    }
    return middles;
  };
  const starts = offsets("from", "to");
  const stops = offsets("to", "from");
  return known.map((one) => {
    const from = /** @type {Box} */ (place(one.from));
    const to = /** @type {Box} */ (place(one.to));
    const x1 = from.x + from.width;
    const middle = (x1 + to.x) / 2;
    const [y1, y2] = [starts.get(one) ?? 0, stops.get(one) ?? 0];
    const at = (/** @type {number} */ value) => value.toFixed(1);
    return {
      ...one,
      width: thick(one),
      path: `M${at(x1)},${at(y1)}C${at(middle)},${at(y1)} ${at(middle)},${at(y2)} ${at(to.x)},${at(y2)}`,
    };
  });
}
