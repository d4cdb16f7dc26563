// The overview: the sentence, the figures, the map, what happened, and every service.

import { html, useCallback, useEffect, useState } from "../html.js";
import { link } from "../logic/address.js";
import { count, moment, plural, rate } from "../logic/figures.js";
import { usePage } from "../use.js";
import { Banner } from "../parts/banner.js";
import { Tiles } from "../parts/tiles.js";
import { EventList, Timeline } from "../parts/events.js";
import { Mark } from "../parts/mark.js";
import { FlowMap } from "../parts/flowmap.js";
import { Servers } from "../parts/servers.js";
import { Services, perSecond } from "../parts/services.js";

/** Services in trouble whose servers are listed here; the others are in the table below. */
const DETAILED_MAX = 4;

export function Overview() {
  const { board, address } = usePage();
  const [frames, setFrames] = useState(/** @type {Map<string, import("../logic/history.js").Frame>} */ (new Map()));
  const keep = useCallback(
    (/** @type {string} */ name, /** @type {import("../logic/history.js").Frame | null} */ frame) =>
      setFrames((old) => {
        const next = new Map(old);
        if (frame) next.set(name, frame);
        else next.delete(name);
        return next;
      }),
    [],
  );
  const resting = (board.status?.maintenance ?? []).filter((one) => one.on);
  const troubled = board.services.filter((one) => one.troubled.length > 0);
  const busyFirst = [...troubled].sort((a, b) => perSecond(b) - perSecond(a));
  const detailed = new Set(busyFirst.slice(0, DETAILED_MAX));
  const others = board.services.filter((one) => !detailed.has(one));
  return html`
    <h1 class="hidden">Overview</h1>
    <${Banner} frames=${frames} />
    ${resting.length > 0 && html`<p class="calm"><${Mark} kind="aside" />In maintenance, answered with 503: ${resting.map((one) => `${one.kind} ${one.name}`).join(", ")}.</p>`}
    <${Tiles} />
    ${!board.frame.enabled && html`<p class="lead">No history is kept, because history_memory_max is 0 in the configuration: there are no lines and no comparisons.</p>`}
    ${board.frame.leftOut > 0 && html`<p class="lead">The history of ${plural(board.frame.leftOut, "service")} does not fit into one answer and is left out.</p>`}
    <${Timeline} />
    ${
      address.at != null &&
      html`<p class="lead">The figures and lines above, and the figures of services without trouble, are those of
      ${" "}${moment(address.at, board.now)}. The sentence, the map and the figures of servers are those of now.</p>`
    }
    <div class="two">
      <div>
        <${FlowMap} />
        ${board.services
          .filter((one) => detailed.has(one))
          .map(
            (row, at) => html`
          <${Detailed} key=${row.service.name} row=${row} first=${at === 0} keep=${keep} />`,
          )}
        ${
          others.length > 0 &&
          html`<section class="card" aria-labelledby="others">
          <h2 id="others">${detailed.size ? "Other services" : "Services"}</h2>
          <${Services} rows=${others} /></section>`
        }
      </div>
      <div><${EventList} /></div>
    </div>`;
}

/** @param {{row: import("../logic/services.js").ServiceRow, first: boolean,
 *   keep: (name: string, frame: import("../logic/history.js").Frame | null) => void}} props */
function Detailed({ row, first, keep }) {
  const { address } = usePage();
  const { service, traffic } = row;
  useEffect(() => () => keep(service.name, null), [service.name]);
  const window = traffic?.windows[0];
  const queue = service.queue.length
    ? ` · ${plural(service.queue.length, "request")} of ${count(service.queue.length_max)} waiting`
    : "";
  return html`<section class="card" aria-label=${service.name}>
    <h2><a href=${link(address, "service", service.name)}>${service.name}</a>
      <span>${rate(window && perSecond(row))}/s · ${count(service.eligible)} of ${plural(service.servers.length, "server")} receive requests${queue}</span></h2>
    <${Servers} row=${row} full=${false} explain=${first} onFrame=${(/** @type {import("../logic/history.js").Frame} */ frame) => keep(service.name, frame)} />
  </section>`;
}
