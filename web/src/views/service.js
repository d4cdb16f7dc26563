// One service: its figures, every server, and charts over the chosen span.

import { html } from "../html.js";
import { link } from "../logic/address.js";
import { bytes, count, duration, figure, plural, share } from "../logic/figures.js";
import { ENDINGS } from "../logic/stack.js";
import { sourceLine } from "../logic/discovery.js";
import { inMillis, perSecond } from "../logic/columns.js";
import { line } from "../logic/history.js";
import { untilOf, useHistory, usePage } from "../use.js";
import { minute, newest, perSecondOf } from "../logic/traffic.js";
import { Chart } from "../parts/chart.js";
import { Maintenance } from "../parts/maintenance.js";
import { MomentNote } from "../parts/moment.js";
import { NotServed, notServed } from "../parts/notserved.js";
import { Servers } from "../parts/servers.js";
import { State } from "../parts/mark.js";
import { Timeline } from "../parts/events.js";

const LAYERS = 6;
const COLUMNS = [
  ...ENDINGS,
  "retries",
  "in_flight",
  "queue_length",
  "status_4xx",
  "status_5xx",
  "total_p50_us",
  "total_p90_us",
  "total_p99_us",
  "request_bytes",
  "response_bytes",
  "connect_mean_us",
];

export function ServiceView() {
  const { board, address } = usePage();
  const row = board.services.find((one) => one.service.name === address.name);
  if (!row) {
    return html`<h1>${address.name}</h1><section class="card"><p class="empty">${
      board.errors.services != null && board.services.length === 0
        ? "The state of services is not known."
        : "No service has this name. It may have been removed by a reload."
    }</p><p><a href=${link(address, "services")}>All services</a></p></section>`;
  }
  return html`<div class="title"><h1>${row.service.name} <${State} condition=${row.condition} /></h1><${Maintenance} row=${row} /></div>
    <p class="lead">${row.condition.why}</p>
    <${Facts} row=${row} />
    <${Timeline} />
    <${MomentNote} now="The figures above and those of servers" then="The legends of the charts show the figures of" />
    <${ServerCard} row=${row} />
    <${Charts} name=${row.service.name} />`;
}

/** @param {{row: ServiceRow}} props */
function Facts({ row: { service, traffic } }) {
  const window = newest(traffic);
  const last = minute(traffic);
  const { queue } = service;
  const waiting = queue.length
    ? `${count(queue.length)} of ${count(queue.length_max)}; ${figure(queue.drain_rate_per_s)} leave per second`
    : last?.queued
      ? `none now; ${count(last.queued)} in the last minute, ${duration(last.queue_mean_ms)} on average`
      : "none";
  return html`<dl class="facts card">
    <div><dt>Requests, last 10 s</dt><dd>${figure(perSecondOf(window, window?.requests))}/s</dd></div>
    <div><dt>Failed, last minute</dt><dd>${last ? share(last.failed, last.requests) : "–"}</dd></div>
    <div><dt>Refused, last minute</dt><dd>${count(last?.refused)}</dd></div>
    <div><dt>Retries, last minute</dt><dd>${count(last?.retries)}</dd></div>
    <div><dt>p50, p90 and p99, last 10 s</dt><dd>${[window?.total.p50_ms, window?.total.p90_ms, window?.total.p99_ms].map(duration).join(", ")}</dd></div>
    <div><dt>Queued</dt><dd>${waiting}</dd></div>
    ${service.wanted && html`<div><dt>Wanted servers</dt><dd title=${service.wanted.why}>${service.wanted.number == null ? "unknown" : count(service.wanted.number)}${service.wanted.calls?.error && `; the last call failed: ${service.wanted.calls.error}`}</dd></div>`}
    <div><dt>Responses, last 10 s</dt><dd>${bytes(perSecondOf(window, window?.response_bytes))}/s</dd></div>
    <div><dt>Client round trip, mean</dt><dd>${duration(window?.client_round_trip_ms)}</dd></div>
  </dl>`;
}

/** @param {{row: ServiceRow}} props */
function ServerCard({ row }) {
  const { service } = row;
  const source = service.source && sourceLine(service.source);
  return html`<section class="card" aria-labelledby="servers">
    <h2 id="servers">Servers <span>${count(service.eligible)} of ${plural(service.servers.length, "server")} receive requests: ${service.why}</span></h2>
    ${source && html`<p class=${source.isWarning ? "warning" : ""}>${source.text}</p>`}
    ${service.unresolved.length > 0 && html`<p class="warning">Without an address at present: ${service.unresolved.map((one) => one.name).join(", ")}</p>`}
    <${Servers} row=${row} full=${true} explain=${true} />
  </section>`;
}

/** @param {{name: string}} props */
function Charts({ name }) {
  const { board, address } = usePage();
  const { frame, loading } = useHistory({
    kinds: ["service"],
    series: 1,
    service: name,
    columns: COLUMNS,
    span: address.span,
    until: untilOf(address, board.now),
  });
  const columns = line(frame, "service", name)?.columns ?? {};
  if (!frame.enabled)
    return html`<section class="card"><p class="empty">No history is kept: history_memory_max is 0 in the configuration.</p></section>`;
  return html`<div class=${"charts" + (loading ? " loading" : "")}>
    <${Chart} frame=${frame} title="Requests" unit="per second" format=${figure}
      series=${[
        { label: "ended", values: perSecond(frame, columns.requests), color: "--c0", fill: true },
        { label: "retries", values: perSecond(frame, columns.retries), color: "--c1", dash: true },
      ]} />
    <${NotServed} ...${notServed(frame, "service", LAYERS)} unit="per second, by cause" />
    <${Chart} frame=${frame} log=${true} title="Response time" unit="ms, logarithmic" format=${figure}
      series=${[
        { label: "p50", values: inMillis(columns.total_p50_us), color: "--c0" },
        { label: "p90", values: inMillis(columns.total_p90_us), color: "--c3", dash: true },
        { label: "p99", values: inMillis(columns.total_p99_us), color: "--c1", dash: true },
      ]} />
    <${Chart} frame=${frame} title="Error responses" unit="per second, sent to clients" format=${figure}
      series=${[
        { label: "4xx", values: perSecond(frame, columns.status_4xx), color: "--c0", fill: true },
        { label: "5xx", values: perSecond(frame, columns.status_5xx), color: "--c1", dash: true },
      ]} />
    <${Chart} frame=${frame} whole=${true} title="In flight and queued" unit="requests, most in each interval" format=${count}
      series=${[
        { label: "in flight", values: columns.in_flight ?? [], color: "--c0", fill: true },
        { label: "queued", values: columns.queue_length ?? [], color: "--c1", dash: true },
      ]} />
    <${Chart} frame=${frame} title="Connect time" unit="ms, mean" format=${figure}
      series=${[{ label: "connect", values: inMillis(columns.connect_mean_us), color: "--c0" }]} />
    <${Chart} frame=${frame} title="Bodies" unit="bytes per second" format=${bytes}
      series=${[
        { label: "responses", values: perSecond(frame, columns.response_bytes), color: "--c0", fill: true },
        { label: "requests", values: perSecond(frame, columns.request_bytes), color: "--c1", dash: true },
      ]} />
  </div>`;
}
