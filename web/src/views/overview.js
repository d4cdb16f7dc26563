// The overview: the summary, the figures, the map, the events, and every service.

import { html } from "../html.js";
import { link } from "../logic/address.js";
import { count, figure, plural } from "../logic/figures.js";
import { usePage } from "../use.js";
import { Banner } from "../parts/banner.js";
import { Tiles } from "../parts/tiles.js";
import { EventList, Timeline } from "../parts/events.js";
import { Mark } from "../parts/mark.js";
import { FlowMap } from "../parts/flowmap.js";
import { Servers } from "../parts/servers.js";
import { MomentNote } from "../parts/moment.js";
import { Services } from "../parts/services.js";
import { newest, requestRate } from "../logic/traffic.js";

/** Services in trouble whose servers are listed here; the others are in the table below. */
const DETAILED_MAX = 4;

export function Overview() {
  const { board } = usePage();
  const maintained = (board.status?.maintenance ?? []).filter((one) => one.on);
  const troubled = board.services.filter((one) => one.troubled.length > 0);
  const busyFirst = [...troubled].sort((a, b) => requestRate(newest(b.traffic)) - requestRate(newest(a.traffic)));
  const detailed = new Set(busyFirst.slice(0, DETAILED_MAX));
  const others = board.services.filter((one) => !detailed.has(one));
  return html`
    <h1 class="hidden">Overview</h1>
    <${Banner} />
    ${maintained.length > 0 && html`<p class="calm"><${Mark} kind="disabled" />In maintenance, answered with 503: ${maintained.map((one) => `${one.kind} ${one.name}`).join(", ")}.</p>`}
    <${Tiles} />
    ${!board.frame.enabled && html`<p class="lead">No history is kept, because history_memory_max is 0 in the configuration: there are no lines and no comparisons.</p>`}
    ${board.frame.leftOut > 0 && html`<p class="lead">The history of ${plural(board.frame.leftOut, "service")} does not fit into one answer and is left out.</p>`}
    <${Timeline} />
    <${MomentNote} now="The summary, the map and the figures of servers"
      then="The figures and lines above, and the figures of services without trouble, are those of" />
    <div class="two">
      <div>
        <${FlowMap} />
        ${board.services
          .filter((one) => detailed.has(one))
          .map(
            (row, at) => html`
          <${Detailed} key=${row.service.name} row=${row} first=${at === 0} />`,
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

/** @param {{row: ServiceRow, first: boolean}} props */
function Detailed({ row, first }) {
  const { address } = usePage();
  const { service, traffic } = row;
  const queue = service.queue.length
    ? ` · ${plural(service.queue.length, "request")} of ${count(service.queue.length_max)} queued`
    : "";
  return html`<section class="card" aria-label=${service.name}>
    <h2><a href=${link(address, "service", service.name)}>${service.name}</a>
      <span>${figure(traffic && requestRate(newest(traffic)))}/s · ${count(service.eligible)} of ${plural(service.servers.length, "server")} receive requests${queue}</span></h2>
    <${Servers} row=${row} full=${false} explain=${first} />
  </section>`;
}
