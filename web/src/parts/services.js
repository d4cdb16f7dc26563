// The table of services.

import { html } from "../html.js";
import { link } from "../logic/address.js";
import { orderOf } from "../logic/condition.js";
import { count, figure, share } from "../logic/figures.js";
import { aligned, lastIn, perSecond, rateIn, rowsBefore, total } from "../logic/columns.js";
import { line } from "../logic/history.js";
import { newest, requestRate } from "../logic/traffic.js";
import { shownSpan, usePage } from "../use.js";
import { Rows } from "./rows.js";
import { Spark } from "./spark.js";
import { State } from "./mark.js";

/** The figures of a service now, or at the chosen moment.
 * @param {ServiceRow} row @param {Board} board @param {number | null} at */
function figures(row, { frame }, at) {
  if (at == null) {
    const window = newest(row.traffic);
    return {
      rate: window ? requestRate(window) : null,
      failed: window?.failed ?? null,
      requests: window?.requests ?? null,
      p50: window?.total.p50_ms ?? null,
      p99: window?.total.p99_ms ?? null,
    };
  }
  const columns = line(frame, "service", row.service.name)?.columns ?? {};
  const rows = rowsBefore(frame, at, Math.max(10_000, frame.stepMs));
  const inMs = (/** @type {number | null} */ us) => (us == null ? null : us / 1000);
  return {
    rate: rateIn(frame, columns.requests, rows),
    failed: total(columns.failed, rows),
    requests: total(columns.requests, rows),
    p50: inMs(lastIn(columns.total_p50_us, rows)),
    p99: inMs(lastIn(columns.total_p99_us, rows)),
  };
}

/** @param {{failed: number | null, requests: number | null}} of */
function failedShare({ failed, requests }) {
  return failed == null || !requests ? -1 : failed / requests;
}

/** @param {{rows: ServiceRow[]}} props */
export function Services({ rows }) {
  const { board, address } = usePage();
  const { frame } = board;
  const of = (/** @type {ServiceRow} */ row) => figures(row, board, address.at);
  const span = shownSpan(frame, address, board.now);
  const requests = (/** @type {ServiceRow} */ row) =>
    aligned(frame, perSecond(frame, line(frame, "service", row.service.name)?.columns.requests), span);
  /** @type {TableColumn<ServiceRow>[]} */
  const columns = [
    {
      title: "Service",
      kind: "name",
      order: (row) => row.service.name,
      cell: (row) => html`<a href=${link(address, "service", row.service.name)}>${row.service.name}</a>`,
    },
    {
      title: "State",
      width: 110,
      order: (row) => orderOf(row.condition),
      cell: (row) => html`<${State} condition=${row.condition} />`,
    },
    {
      title: "Requests",
      unit: "/s",
      number: true,
      width: 84,
      order: (row) => of(row).rate ?? -1,
      cell: (row) => figure(of(row).rate),
    },
    {
      title: "p50",
      unit: "ms",
      number: true,
      width: 70,
      order: (row) => of(row).p50 ?? -1,
      cell: (row) => figure(of(row).p50),
    },
    {
      title: "p99",
      unit: "ms",
      number: true,
      width: 70,
      order: (row) => of(row).p99 ?? -1,
      cell: (row) => figure(of(row).p99),
    },
    {
      title: "Failed",
      number: true,
      width: 76,
      order: (row) => failedShare(of(row)),
      cell: (row) => share(of(row).failed, of(row).requests),
    },
    {
      title: "Requests",
      unit: "over the span",
      kind: "opt strip",
      cell: (row) => html`<${Spark} line=${requests(row)}
      height=${20} floor=${1} label=${`Requests of ${row.service.name} over the span`} />`,
    },
    {
      title: "Servers",
      kind: "opt",
      width: 116,
      cell: ({ service }) => `${count(service.eligible)} of ${count(service.servers.length)} in use`,
    },
  ];
  return html`<${Rows} rows=${rows} columns=${columns} caption="Services" keyOf=${(/** @type {ServiceRow} */ row) => row.service.name}
    kind=${(/** @type {ServiceRow} */ row) => row.condition.level} />`;
}
