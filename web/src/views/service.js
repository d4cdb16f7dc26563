// One service: who waits, every server, and charts over the chosen span.

import { html } from "../html.js";
import { format, link, window as spanOf } from "../logic/address.js";
import { bytes, count, duration, millis, plural, rate, share } from "../logic/figures.js";
import { ENDINGS, STACK_ROWS, endings, stacked } from "../logic/stack.js";
import { inMillis, perSecond } from "../logic/columns.js";
import { coarser, line, linesOf } from "../logic/history.js";
import { untilOf, useHistory, usePage } from "../use.js";
import { Chart } from "../parts/chart.js";
import { Servers } from "../parts/servers.js";
import { State } from "../parts/mark.js";
import { Timeline } from "../parts/events.js";

const LAYERS = 6;
const COLUMNS = [
  ...ENDINGS,
  "retries",
  "in_flight",
  "queue_length",
  "queued",
  "total_p50_us",
  "total_p99_us",
  "first_byte_p50_us",
  "request_bytes",
  "response_bytes",
  "connect_mean_us",
  "servers_ready",
];

export function ServiceView() {
  const { board, address } = usePage();
  const row = board.services.find((one) => one.service.name === address.name);
  if (!row) {
    return html`<h1>${address.name}</h1><section class="card"><p class="empty">${
      board.loaded ? "No service has this name. It may have been removed by a reload." : "Loading…"
    }</p><p><a href=${link(address, "services")}>All services</a></p></section>`;
  }
  return html`<h1>${row.service.name} <${State} condition=${row.condition} /></h1>
    <p class="lead">${row.condition.why}</p>
    <${Facts} row=${row} />
    <${Timeline} />
    <${ServerCard} row=${row} />
    <${Charts} name=${row.service.name} />`;
}

/** @param {{row: import("../logic/services.js").ServiceRow}} props */
function Facts({ row: { service, traffic } }) {
  const window = traffic?.windows[0];
  const minute = traffic?.windows[1];
  const per = (/** @type {number | undefined} */ value) =>
    window?.seconds && value != null ? value / window.seconds : null;
  const { queue } = service;
  const waiting = queue.length
    ? `${count(queue.length)} of ${count(queue.length_max)}; ${rate(queue.drain_rate_per_s)} leave per second`
    : minute?.queued
      ? `none now; ${count(minute.queued)} in the last minute, ${duration(minute.queue_mean_ms)} on average`
      : "none";
  return html`<dl class="facts card">
    <div><dt>Requests, last 10 s</dt><dd>${rate(per(window?.requests))}/s</dd></div>
    <div><dt>Failed, last minute</dt><dd>${minute ? share(minute.failed, minute.requests) : "–"}</dd></div>
    <div><dt>Refused, last minute</dt><dd>${count(minute?.refused)}</dd></div>
    <div><dt>Retries, last minute</dt><dd>${count(minute?.retries)}</dd></div>
    <div><dt>p50 and p99, last 10 s</dt><dd>${duration(window?.total.p50_ms)} and ${duration(window?.total.p99_ms)}</dd></div>
    <div><dt>Waiting for a server</dt><dd>${waiting}</dd></div>
    <div><dt>Responses, last 10 s</dt><dd>${bytes(per(window?.response_bytes))}/s</dd></div>
    <div><dt>Client round trip, mean</dt><dd>${duration(window?.client_round_trip_ms)}</dd></div>
  </dl>`;
}

/** @param {{row: import("../logic/services.js").ServiceRow}} props */
function ServerCard({ row }) {
  const { service } = row;
  return html`<section class="card" aria-labelledby="servers">
    <h2 id="servers">Servers <span>${count(service.eligible)} of ${plural(service.servers.length, "server")} receive requests: ${service.why}</span></h2>
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
  const own = line(frame, "service", name);
  const columns = own?.columns ?? {};
  const coarse = coarser(frame, STACK_ROWS);
  const layers = endings(coarse, linesOf(coarse, "service"), LAYERS);
  const areas = stacked(layers);
  const common = {
    frame,
    span: spanOf(address, board.now),
    events: board.events,
    at: address.at,
    onPick: (/** @type {number} */ at) => {
      location.hash = format({ ...address, at });
    },
  };
  const number = (/** @type {number | null} */ value) => rate(value);
  if (!frame.enabled)
    return html`<section class="card"><p class="empty">No history is kept: history_memory_max is 0 in the configuration.</p></section>`;
  return html`<div class=${"charts" + (loading ? " loading" : "")}>
    <${Chart} ...${common} title="Requests" unit="per second" format=${number}
      series=${[
        { label: "ended", values: perSecond(frame, columns.requests), color: "--c0", fill: true },
        { label: "retries", values: perSecond(frame, columns.retries), color: "--c1", dash: true },
      ]} />
    <${Chart} ...${common} frame=${coarse} title="Not served" unit="per second, by cause" format=${number} stack=${true}
      series=${
        layers.length
          ? layers.map((layer, at) => ({
              label: layer.name || "rarer causes",
              values: areas[at],
              color: `--c${at + 1}`,
              fill: true,
            }))
          : [{ label: "none in this span", values: coarse.ended.map(() => 0), color: "--c0" }]
      } />
    <${Chart} ...${common} log=${true} title="Response time" unit="ms, logarithmic" format=${(/** @type {number | null} */ value) => millis(value)}
      series=${[
        { label: "p50", values: inMillis(columns.total_p50_us), color: "--c0" },
        { label: "p99", values: inMillis(columns.total_p99_us), color: "--c1", dash: true },
      ]} />
    <${Chart} ...${common} whole=${true} title="In flight and waiting" unit="requests" format=${(/** @type {number | null} */ value) => count(value)}
      series=${[
        { label: "in flight", values: columns.in_flight ?? [], color: "--c0", fill: true },
        { label: "waiting", values: columns.queue_length ?? [], color: "--c1", dash: true },
      ]} />
    <${Chart} ...${common} title="Connect time" unit="ms, mean" format=${(/** @type {number | null} */ value) => millis(value)}
      series=${[{ label: "connect", values: inMillis(columns.connect_mean_us), color: "--c0" }]} />
    <${Chart} ...${common} title="Bodies" unit="bytes per second" format=${(/** @type {number | null} */ value) => bytes(value)}
      series=${[
        { label: "responses", values: perSecond(frame, columns.response_bytes), color: "--c0", fill: true },
        { label: "requests", values: perSecond(frame, columns.request_bytes), color: "--c1", dash: true },
      ]} />
  </div>`;
}
