// The table of a service's servers. Many servers are collapsed: those in trouble first, the others as one line.

import { html, useState } from "../html.js";
import { clock, count, duration, figure, percent } from "../logic/figures.js";
import { countsOf, orderOf } from "../logic/condition.js";
import { median, requestRate } from "../logic/traffic.js";
import { inMillis } from "../logic/columns.js";
import { line } from "../logic/history.js";
import { untilOf, useHistory, usePage } from "../use.js";
import { State } from "./mark.js";
import { Bar } from "./bar.js";
import { Heat, HeatKey } from "./heat.js";
import { Rows } from "./rows.js";
import { ChangeServer, proposed } from "./change.js";

/** Up to this many servers are all shown. */
const SHOWN_MAX = 24;

/** The strips of very large services show a minute, and no p99, so that an answer stays small. */
const LARGE = 60;
const [SPAN_S, SPAN_LARGE_S] = [300, 60];

/** The rows behind the strips of a service's servers.
 * @param {import("../api.js").Service} service @param {boolean} full */
function useServerRows(service, full) {
  const { board, address } = usePage();
  const large = service.servers.length > LARGE;
  const span = large ? SPAN_LARGE_S : SPAN_S;
  const columns = ["first_byte_p50_us", "failed", ...(full && !large ? ["first_byte_p99_us"] : [])];
  const until = untilOf({ ...address, to: null, span }, board.now);
  return {
    ...useHistory({ kinds: ["server"], series: service.servers.length, service: service.name, until, span, columns }),
    span,
    quantiles: full && !large ? ["first_byte_p50_us", "first_byte_p99_us"] : ["first_byte_p50_us"],
  };
}

/** @param {{row: ServiceRow, full: boolean, explain: boolean}} props
 * full: all columns, on the service's page; explain: what the shades of the strips mean. */
export function Servers({ row, full, explain }) {
  const { source, address } = usePage();
  const { frame, error, span, quantiles } = useServerRows(row.service, full);
  const when = address.at == null ? `last ${duration(span * 1000)}` : `around ${clock(address.at, false)}`;
  const [open, setOpen] = useState(false);
  const [filter, setFilter] = useState("");
  const [change, setChange] = useState(/** @type {import("./change.js").ServerChange | null} */ (null));
  const many = row.servers.length > SHOWN_MAX;
  const disabled = row.servers.filter((one) => one.condition.level === "disabled");
  const first = many && !open ? [...row.troubled, ...disabled] : row.servers;
  const wanted = filter.trim().toLowerCase();
  const shown = wanted
    ? row.servers.filter((one) =>
        `${one.server.address} ${one.server.name} ${one.server.zone ?? ""} ${one.condition.word}`
          .toLowerCase()
          .includes(wanted),
      )
    : first;
  const rest = wanted ? [] : row.servers.filter((one) => !shown.includes(one));
  const zoned = row.servers.some(({ server }) => server.zone != null);
  const act =
    full && source.act ? (/** @type {ServerRow} */ one) => setChange(proposed(row.service.name, one.server)) : null;
  return html`
    ${
      many &&
      html`<div class="filter"><input type="search" value=${filter} placeholder="Filter by address, zone or state"
      aria-label="Filter servers" onInput=${(/** @type {any} */ event) => setFilter(event.currentTarget.value)} />
      <span>${count(shown.length)} of ${count(row.servers.length)} servers</span></div>`
    }
    <${Rows} rows=${shown} caption=${`Servers of ${row.service.name}`} keyOf=${(/** @type {ServerRow} */ one) => one.server.address}
      kind=${(/** @type {ServerRow} */ one) => one.condition.level} columns=${columns(row, frame, { seconds: span, when, quantiles }, full, zoned, act)}
      detail=${full ? why : undefined} empty=${wanted ? "No server matches." : "No server is in trouble."} />
    ${
      rest.length > 0 &&
      html`<p class="rest">${summary(rest)}
      <button type="button" class="quiet" onClick=${() => setOpen(true)}>Show all</button></p>`
    }
    ${many && open && !wanted && html`<p class="rest"><button type="button" class="quiet" onClick=${() => setOpen(false)}>Show only trouble</button></p>`}
    ${error && html`<p class="empty">${error}</p>`}
    ${frame.leftOut > 0 && html`<p class="empty">The history of ${count(frame.leftOut)} servers does not fit into one answer and is left out.</p>`}
    ${explain && shown.length > 0 && html`<${HeatKey} usual=${row.usual} />`}
    ${change && html`<${ChangeServer} change=${change} onClose=${() => setChange(null)} />`}`;
}

/** @param {ServerRow} one */
function why({ server, condition, finding }) {
  const named = server.name !== server.address ? `Configured as ${server.name}. ` : "";
  // "Down" says all that is known here.
  const text = named + (condition.level === "fine" || condition.word === "down" ? "" : condition.why);
  return text && html`<span>${text}${finding ? ` (${finding.rule}, ${finding.certainty})` : ""}</span>`;
}

/** @param {ServerRow[]} rest */
function summary(rest) {
  const rates = median(rest.map(({ window }) => requestRate(window)));
  const p50 = median(rest.flatMap(({ window }) => window?.first_byte.p50_ms ?? []));
  return `${countsOf(rest)}. The median server answers ${figure(rates)} requests/s with p50 ${duration(p50)}. `;
}

/** @param {ServiceRow} row @param {Frame} frame
 * @param {{seconds: number, when: string, quantiles: string[]}} strips What the strips show. @param {boolean} full @param {boolean} zoned @param {((one: ServerRow) => void) | null} act
 * @returns {TableColumn<ServerRow>[]} */
function columns(row, frame, { seconds, when, quantiles }, full, zoned, act) {
  const weighted = row.servers.some(({ server }) => server.weight !== 1 || server.weight_configured !== 1);
  /** @type {(TableColumn<ServerRow> | false | null)[]} */
  const all = [
    {
      title: "Server",
      kind: "mono",
      width: 140,
      cell: ({ server }) => server.address,
      order: ({ server }) => server.address,
    },
    zoned && {
      title: "Zone",
      kind: "opt",
      width: 88,
      cell: ({ server }) => server.zone ?? "–",
      order: ({ server }) => server.zone ?? "",
    },
    {
      title: "State",
      width: 92,
      cell: ({ condition }) => html`<${State} condition=${condition} />`,
      order: ({ condition }) => orderOf(condition),
    },
    {
      title: "In flight",
      kind: "opt",
      width: 138,
      order: ({ server }) => server.in_flight,
      cell: ({ server, condition }) =>
        html`<${Bar} value=${server.in_flight} limit=${server.in_flight_max} level=${condition.level} />`,
    },
    {
      title: "Requests",
      unit: "/s",
      number: true,
      width: 76,
      cell: ({ window }) => figure(window && requestRate(window)),
      order: ({ window }) => requestRate(window),
    },
    {
      title: "p50",
      unit: "ms",
      number: true,
      width: 64,
      cell: ({ window }) => figure(window?.first_byte.p50_ms),
      order: ({ window }) => window?.first_byte.p50_ms ?? -1,
    },
    {
      title: "p99",
      unit: "ms",
      number: true,
      width: 64,
      cell: ({ window }) => figure(window?.first_byte.p99_ms),
      order: ({ window }) => window?.first_byte.p99_ms ?? -1,
    },
    {
      title: "Failed",
      unit: "%",
      number: true,
      width: 68,
      cell: ({ window }) => percent(window?.failed, window?.requests),
      order: ({ window }) => (window?.requests ? window.failed / window.requests : -1),
    },
    full && {
      title: "Connect",
      unit: "ms",
      number: true,
      kind: "opt",
      width: 80,
      cell: ({ window }) => figure(window?.connect_mean_ms),
    },
    full && {
      title: "Round trip",
      unit: "ms",
      number: true,
      kind: "opt",
      width: 96,
      cell: ({ window }) => figure(window?.round_trip_ms),
    },
    full &&
      weighted && {
        title: "Weight",
        number: true,
        kind: "opt",
        cell: ({ server }) =>
          server.weight === server.weight_configured
            ? server.weight
            : html`${server.weight}<small> of ${server.weight_configured}</small>`,
      },
    {
      title: quantiles.length > 1 ? "p50 over p99," : "p50,",
      unit: when,
      kind: "opt strip",
      cell: ({ server }) => {
        const own = line(frame, "server", row.service.name, server.address);
        return html`<${Heat} frame=${frame} seconds=${seconds} rows=${quantiles.map((name) => inMillis(own?.columns[name]))}
        failed=${own?.columns.failed ?? []} usual=${row.usual} label=${`First byte of ${server.address} ${when}`} />`;
      },
    },
    act && {
      title: html`<span class="hidden">Actions</span>`,
      kind: "act",
      width: 78,
      cell: (one) => html`<button type="button" onClick=${() => act(one)}
      aria-label=${`Change ${one.server.address}`}>Change…</button>`,
    },
  ];
  return all.filter((column) => !!column);
}
