// The fleet of balancers: its members, what they share, and its problems.

import { html } from "../html.js";
import { link } from "../logic/address.js";
import { bytes, count, duration, share } from "../logic/figures.js";
import { lead, members, sentence } from "../logic/fleet.js";
import { usePage, useWatch } from "../use.js";
import { Mark, State } from "../parts/mark.js";
import { Rows } from "../parts/rows.js";
import { Unavailable } from "../parts/unavailable.js";

/** @typedef {import("../logic/fleet.js").Row} Row */
/** @typedef {import("../api.js").FleetOrder} FleetOrder */
/** @typedef {import("../api.js").FleetSummary} FleetSummary */

export function FleetView() {
  const { board } = usePage();
  const fleet = board.status?.fleet;
  if (!fleet) {
    return html`<h1>Fleet</h1><section class="card"><p class="empty">This balancer is not in a fleet: its configuration has no [fleet].</p></section>`;
  }
  return html`<h1>Fleet</h1>
    <p class="lead">${lead(fleet)}</p>
    <${Problems} fleet=${fleet} />
    <${Shared} fleet=${fleet} />
    <${Members} />`;
}

/** @param {{fleet: FleetSummary}} props */
function Problems({ fleet }) {
  const problems = (fleet.problems ?? []).map(sentence);
  if (problems.length === 0) return null;
  return html`<section class="card" aria-labelledby="problems"><h2 id="problems">Problems</h2>
    <ul class="plain">${problems.map(
      ({ what, why, since, lasting }) =>
        html`<li key=${what}><${Mark} kind=${lasting ? "warn" : "idle"} /> ${what} <small>${since}</small>${why && html`<div>${why}</div>`}</li>`,
    )}</ul></section>`;
}

/** What the members share, as far as it is configured.
 * @param {{fleet: FleetSummary}} props */
function Shared({ fleet }) {
  const { probes, slots, rates, tickets, orders } = fleet;
  return html`<dl class="facts six card">
    <div><dt>Health checks run here</dt><dd>${count(probes.assigned)} for the zone${probes.stood_in > 0 && html`, ${count(probes.stood_in)} for itself`}</dd></div>
    <div><dt>Results from others</dt><dd>${count(probes.relied)}</dd></div>
    <div><dt>Slots of shared limits</dt><dd>${slots.servers === 0 ? "–" : html`${count(slots.share)}<small> ${count(slots.lent)} lent, ${count(slots.borrowed)} borrowed</small>`}</dd></div>
    <div><dt>Shared rate limits</dt><dd>${rates.limits === 0 ? "–" : html`${count(rates.limits)}<small> ${share(rates.part, 1)} of each in use</small>`}</dd></div>
    <div><dt>Session ticket keys</dt><dd>${!tickets ? "–" : tickets.sealing_age_s == null ? "none in use" : html`${count(tickets.keys)}<small> the key in use is ${duration(tickets.sealing_age_s * 1000)} old</small>`}</dd></div>
    <div><dt>Set for the whole fleet</dt><dd>${orders.drain + orders.maintenance === 0 ? "–" : html`${count(orders.drain)} drained, ${count(orders.maintenance)} in maintenance`}</dd></div>
  </dl>`;
}

function Members() {
  const { address } = usePage();
  const { value, error } = useWatch("fleet");
  const fleet = /** @type {import("../api.js").Fleet | null} */ (value);
  if (!fleet) return html`<section class="card"><p class="empty">${error ?? "Loading…"}</p></section>`;
  const { datagrams } = fleet;
  const refused = Object.entries(datagrams.refused).filter(([, number]) => number > 0);
  return html`<${Unavailable} path="fleet" why=${error} />
    <section class="card" aria-labelledby="members"><h2 id="members">Members <span>as this balancer sees them</span></h2>
      <${Rows} rows=${members(fleet)} caption="Members" keyOf=${(/** @type {Row} */ one) => one.name + one.address} columns=${MEMBERS}
        kind=${(/** @type {Row} */ one) => (one.condition.level === "warn" ? "warn" : "")} empty="No member is known." /></section>
    ${
      fleet.orders.servers.length > 0 &&
      html`<section class="card" aria-labelledby="orders"><h2 id="orders">Servers set for the whole fleet</h2>
      <${Rows} rows=${fleet.orders.servers} caption="Servers set for the whole fleet" keyOf=${(/** @type {FleetOrder} */ one) => one.service + one.address} columns=${orders(address)} /></section>`
    }
    <section class="card" aria-labelledby="datagrams"><h2 id="datagrams">Datagrams <span>since it joined</span></h2>
      <p>${count(datagrams.accepted)} received (${bytes(datagrams.received_bytes)}), ${count(datagrams.sent)} sent (${bytes(datagrams.sent_bytes)}).
      ${refused.length > 0 && html` Refused: ${refused.map(([reason, number]) => `${count(number)} ${reason.replaceAll("_", " ")}`).join(", ")}.`}
      ${datagrams.send_errors > 0 && html` ${count(datagrams.send_errors)} not sent.`}</p></section>`;
}

/** @type {TableColumn<Row>[]} */
const MEMBERS = [
  {
    title: "Name",
    kind: "name",
    cell: (one) => html`${one.name}${one.own && html`<small> this one</small>`}`,
    order: (one) => one.name,
  },
  { title: "State", cell: (one) => html`<${State} condition=${one.condition} />`, order: (one) => one.condition.word },
  { title: "Zone", cell: (one) => one.zone ?? "–", order: (one) => one.zone ?? "" },
  { title: "Machine", kind: "opt", cell: (one) => one.host, order: (one) => one.host },
  { title: "Address", kind: "opt mono", cell: (one) => one.address, order: (one) => one.address },
];

/** @param {Address} address @returns {TableColumn<FleetOrder>[]} */
function orders(address) {
  return [
    { title: "Server", kind: "mono", cell: (one) => one.address, order: (one) => one.address },
    {
      title: "Service",
      kind: "name",
      cell: (one) => html`<a href=${link(address, "service", one.service)}>${one.service}</a>`,
      order: (one) => one.service,
    },
    { title: "State", cell: (one) => one.state, order: (one) => one.state },
    { title: "Set through", kind: "opt", cell: (one) => one.member, order: (one) => one.member },
  ];
}
