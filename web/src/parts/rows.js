// A table that draws only the rows in view, so that a thousand rows cost what thirty do.

import { html, useState } from "../html.js";

const ROW_PX = 34;
const VIEW_ROWS = 16;
const SPARE = 6;
/** Up to this many rows are drawn as they are, in the flow of the page. */
const PLAIN_MAX = 40;

/** @template T
 * @param {{rows: T[], columns: TableColumn<T>[], caption: string, keyOf: (row: T) => string,
 *   kind?: (row: T) => string, detail?: (row: T) => any, empty?: string, steady?: boolean}} props
 * detail: a line below a row, of any height; only in tables that are short enough.
 * steady: a box of constant height, for rows whose number changes all the time. */
export function Rows({ rows, columns, caption, keyOf, kind, detail, empty = "Nothing to show.", steady = false }) {
  const [sort, setSort] = useState(/** @type {{at: number, down: boolean} | null} */ (null));
  const [top, setTop] = useState(0);
  const sorted = sort ? ordered(rows, columns[sort.at], sort.down) : rows;
  const windowed = steady || rows.length > PLAIN_MAX;
  const first = windowed ? Math.max(0, Math.floor(top / ROW_PX) - SPARE) : 0;
  const shown = windowed ? sorted.slice(first, first + VIEW_ROWS + 2 * SPARE) : sorted;
  const after = windowed ? (sorted.length - first - shown.length) * ROW_PX : 0;
  const spacer = (/** @type {number} */ px) =>
    px > 0 &&
    html`<tr class="spacer" aria-hidden="true"><td colspan=${columns.length} style=${{ height: px + "px" }}></td></tr>`;
  const table = html`<table aria-rowcount=${windowed ? rows.length + 1 : undefined}>
    <caption class="hidden">${caption}</caption>
    <thead><tr>${columns.map(
      (column, at) => html`
      <th scope="col" class=${classes(column)} style=${column.width ? { width: column.width + "px" } : undefined} aria-sort=${sort?.at === at ? (sort.down ? "descending" : "ascending") : undefined}>
        ${
          column.order
            ? html`<button type="button" class="sort" onClick=${() => setSort(next(sort, at, Boolean(column.number)))}>
              ${column.title}${column.unit && html`<small> ${column.unit}</small>`}<i aria-hidden="true">${sort?.at === at ? (sort.down ? "↓" : "↑") : ""}</i></button>`
            : html`${column.title}${column.unit && html`<small> ${column.unit}</small>`}`
        }
      </th>`,
    )}</tr></thead>
    <tbody>
      ${spacer(first * ROW_PX)}
      ${shown.map((row, at) => {
        const below = windowed ? null : detail?.(row);
        return html`<tr key=${keyOf(row)} class=${(kind?.(row) ?? "") + (below ? " open" : "")}
            aria-rowindex=${windowed ? first + at + 2 : undefined}>
          ${columns.map((column, place) =>
            place === 0
              ? html`<th scope="row" class=${classes(column)}>${column.cell(row)}</th>`
              : html`<td class=${classes(column)}>${column.cell(row)}</td>`,
          )}
        </tr>
        ${
          below &&
          html`<tr key=${keyOf(row) + " detail"} class=${"detail " + (kind?.(row) ?? "")}>
          <td colspan=${columns.length}>${below}</td></tr>`
        }`;
      })}
      ${spacer(after)}
    </tbody>
  </table>`;
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return windowed
    ? html`<div class=${"rows long" + (steady ? " steady" : "")} tabindex="0" role="region" aria-label=${caption}
        onScroll=${(/** @type {any} */ event) => setTop(event.currentTarget.scrollTop)}>${table}</div>`
    : html`<div class="rows">${table}</div>`;
}

/** @param {TableColumn<any>} column */
function classes({ number, kind }) {
  return [number ? "num" : "", kind ?? ""].join(" ").trim() || undefined;
}

/** @param {{at: number, down: boolean} | null} sort @param {number} at @param {boolean} down */
function next(sort, at, down) {
  if (sort?.at !== at) return { at, down };
  return sort.down === down ? { at, down: !down } : null;
}

/** @template T @param {T[]} rows @param {TableColumn<T>} column @param {boolean} down */
function ordered(rows, column, down) {
  const order = column.order ?? (() => 0);
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [order(a), order(b)];
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * String(x).localeCompare(String(y), "en", { numeric: true });
  });
}
