// The six figures at the top of the overview.

import { html } from "../html.js";
import { isSerious } from "../logic/findings.js";
import { isMarked, levels, lineText, tiles } from "../logic/tiles.js";
import { aligned } from "../logic/columns.js";
import { shownSpan, usePage } from "../use.js";
import { Mark } from "./mark.js";
import { Spark } from "./spark.js";

export function Tiles() {
  const { board, address } = usePage();
  const { frame } = board;
  const now =
    address.at == null
      ? { services: board.traffic?.services ?? [], levels: levels(board.services.map((one) => one.service)) }
      : null;
  const until = address.at ?? frame.ended.at(-1) ?? board.now;
  const span = shownSpan(frame, address, board.now);
  const place = address.at == null ? null : (address.at - span[0]) / (span[1] - span[0]);
  const marker = place != null && place >= 0 && place <= 1 ? place : null;
  const serious = now ? (board.findings?.findings ?? []).filter(isSerious) : [];
  return html`<div class="tiles">${tiles(frame, until, now).map((tile) => {
    const marked = isMarked(tile, serious);
    return html`<section key=${tile.label} class=${"tile" + (marked ? " warn" : "")}>
      <h2 title=${tile.label}>${marked && html`<${Mark} kind="warn" />`}${tile.label}</h2>
      <p class="value">${tile.value}<small> ${tile.value === "–" ? "" : tile.unit}</small></p>
      <${Spark} line=${aligned(frame, tile.line, span)} height=${30} warn=${marked} floor=${tile.unit === "ms" ? 5 : 1} marker=${marker}
        label=${lineText(tile, frame)} />
      <p class="note" title=${tile.note}>${tile.note}</p>
    </section>`;
  })}</div>`;
}
