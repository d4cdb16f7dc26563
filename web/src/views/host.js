// The process and its host: version, connections, CPU, memory, and findings about the host.

import { html } from "../html.js";
import { total } from "../logic/columns.js";
import { bytes, count, duration, moment, plural, share } from "../logic/figures.js";
import { findingKey } from "../logic/findings.js";
import { line, linesOf } from "../logic/history.js";
import { untilOf, useHistory, usePage, useWhen } from "../use.js";
import { Chart } from "../parts/chart.js";
import { FindingCard } from "../parts/finding.js";
import { Mark } from "../parts/mark.js";
import { Rows } from "../parts/rows.js";
import { Recording } from "../parts/recording.js";
import { Timeline } from "../parts/events.js";

/** @typedef {import("../api.js").Listener} Listener */

const HISTORY = ["cpu_us", "resident_bytes", "connections", "accept_pauses"];

/** @param {Map<string, number | null>} pauses Of accepting, by listener, in the span; null: not known.
 * @returns {TableColumn<Listener>[]} */
const listenerColumns = (pauses) => [
  { title: "Name", kind: "name", cell: (one) => one.name, order: (one) => one.name },
  { title: "Address", kind: "mono", cell: (one) => one.address, order: (one) => one.address },
  { title: "Protocol", kind: "opt", cell: (one) => one.protocol },
  {
    title: "Connections",
    number: true,
    order: (one) => one.connections.open,
    cell: ({ connections }) => html`${count(connections.open)}<small> of ${count(connections.open_max)}</small>`,
  },
  {
    title: "Accept pauses",
    unit: "in the span",
    number: true,
    order: (one) => pauses.get(one.name) ?? -1,
    cell: (one) =>
      html`${(pauses.get(one.name) ?? 0) > 0 && html`<${Mark} kind="warn" />`}${count(pauses.get(one.name))}`,
  },
];

/** A client whose connection is not accepted sees what looks like a slow network.
 * @param {{listeners: Listener[], pauses: Map<string, number | null>}} props */
function Pauses({ listeners, pauses }) {
  const paused = listeners.filter(({ name }) => (pauses.get(name) ?? 0) > 0);
  return paused.map(
    ({ name, connections }) =>
      html`<p class="warning">${name} paused accepting ${plural(pauses.get(name) ?? 0, "time")} in the span, because connections_max (${count(connections.open_max)}) was reached.
        New clients waited in the listen queue meanwhile. The cause is this limit, not the network.</p>`,
  );
}

export function HostView() {
  const { board, address } = usePage();
  const { status, traffic, findings } = board;
  const looked = useWhen(findings?.looked_at_unix_ms ?? 0);
  const { frame } = useHistory({
    kinds: ["process", "listener"],
    series: 1 + (status?.listeners.length ?? 0),
    columns: HISTORY,
    span: address.span,
    until: untilOf(address, board.now),
  });
  const columns = line(frame, "process")?.columns ?? {};
  const pauses = new Map(
    linesOf(frame, "listener").map((one) => [
      one.listener ?? "",
      total(one.columns.accept_pauses, [0, frame.ended.length]),
    ]),
  );
  const cpu = frame.covered.map((covered, row) => {
    const us = columns.cpu_us?.[row];
    return us == null || covered === 0 ? null : us / (covered * 10);
  });
  const ofHost = (findings?.findings ?? []).filter((one) => one.service == null);
  return html`<h1>Host</h1>
    ${
      status &&
      html`<dl class="facts six card">
      <div><dt>Weir</dt><dd>${status.version}</dd></div>
      <div><dt>Process</dt><dd>${status.pid}, ${count(status.workers)} workers</dd></div>
      <div><dt>Started</dt><dd>${moment(board.now - status.uptime_s * 1000, board.now)}</dd></div>
      <div><dt>Ready</dt><dd>${status.ready ? "yes" : "no"}</dd></div>
      <div><dt>Client connections</dt><dd>${count(status.connections.open)} of ${count(status.connections.open_max)}</dd></div>
      <div><dt>CPU, last 10 s</dt><dd>${traffic?.cpu[0] == null ? "–" : `${share(traffic.cpu[0], 1)} of a core`}</dd></div>
    </dl>
    <section class="card" aria-labelledby="listeners"><h2 id="listeners">Listeners</h2>
      <${Rows} rows=${status.listeners} columns=${listenerColumns(pauses)} caption="Listeners" keyOf=${(/** @type {Listener} */ one) => one.name} />
      <${Pauses} listeners=${status.listeners} pauses=${pauses} /></section>`
    }
    <${Timeline} />
    <div class="charts three">
      <${Chart} frame=${frame} title="CPU" unit="% of a core" format=${(/** @type {number | null} */ value) => (value == null ? "–" : value.toFixed(value < 10 ? 1 : 0))}
        series=${[{ label: "CPU", values: cpu, color: "--c0", fill: true }]} />
      <${Chart} frame=${frame} title="Memory" unit="resident" format=${(/** @type {number | null} */ value) => bytes(value)}
        series=${[{ label: "memory", values: columns.resident_bytes ?? [], color: "--c0", fill: true }]} />
      <${Chart} frame=${frame} whole=${true} title="Client connections" unit="open" format=${(/** @type {number | null} */ value) => count(value)}
        series=${[{ label: "open", values: columns.connections ?? [], color: "--c0", fill: true }]} />
    </div>
    <h2>Findings about this host <span>${findings?.looked_at_unix_ms != null ? `examined ${looked}, every ${duration(findings.interval_ms)}` : ""}</span></h2>
    ${ofHost.length === 0 && html`<section class="card"><p class="empty">${findings?.enabled === false ? "The doctor is disabled in the configuration." : (board.errors.findings ?? "No findings.")}</p></section>`}
    ${ofHost.map((one) => html`<${FindingCard} key=${findingKey(one)} finding=${one} chosen=${false} />`)}
    <${Recording} />`;
}
