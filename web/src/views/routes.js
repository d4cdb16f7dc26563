// Routes in the order in which they match: which requests, where they go, and what is known of their traffic.

import { html, useMemo } from "../html.js";
import { link } from "../logic/address.js";
import { orderOf } from "../logic/condition.js";
import { count, figure, plural, share } from "../logic/figures.js";
import { routesOf } from "../logic/routes.js";
import { usePage, useWatch } from "../use.js";
import { MomentNote } from "../parts/moment.js";
import { Rows } from "../parts/rows.js";
import { State } from "../parts/mark.js";
import { Unavailable } from "../parts/unavailable.js";

export function RoutesView() {
  const { board, address } = usePage();
  const { value, error } = useWatch("configuration");
  const causes = useWatch("causes").value;
  const maintenance = board.status?.maintenance;
  const routes = useMemo(
    () => routesOf(value?.configuration, board.services, maintenance ?? []),
    [value, board.services, maintenance],
  );
  const lost = causes?.causes.find(
    (/** @type {import("../api.js").Cause} */ one) => one.name === "destination_not_found",
  );
  return html`<h1>Routes</h1>
    <p class="lead">The first route that matches a request decides. Requests are counted by service: a route has figures if no other route leads to its services, otherwise they are shared.</p>
    <${Unavailable} path="configuration" why=${error} />
    <${MomentNote} now="Figures and states" then="This page does not show" />
    <section class="card" aria-labelledby="routes"><h2 id="routes">In the order in which they match <span>${value ? plural(routes.length, "route") : ""}</span></h2>
      <${Rows} rows=${routes} caption="Routes" columns=${columns(address)} keyOf=${(/** @type {Route} */ one) => one.key}
        kind=${(/** @type {Route} */ one) => (one.name === address.name ? "chosen" : (one.condition?.level ?? ""))}
        detail=${(/** @type {Route} */ one) => one.more.length > 0 && html`<span>${one.more.join("; ")}</span>`}
        empty=${value ? "No route is configured." : error == null ? "Loading…" : "The routes are not known."} />
      ${
        lost &&
        html`<p class="rest">Requests that matched no route since the start of the process (<a href=${link(address, "causes", lost.name)}>${lost.name}</a>): ${count(lost.count)}.</p>`
      }</section>`;
}

/** @param {Address} address
 * @returns {TableColumn<Route>[]} */
function columns(address) {
  return [
    { title: "Route", kind: "text mono", cell: (one) => one.name, order: (one) => one.name },
    { title: "Listeners", kind: "opt name", width: 90, cell: (one) => one.listeners, order: (one) => one.listeners },
    { title: "Requests", kind: "opt text", cell: (one) => one.match },
    { title: "To", kind: "text", cell: (one) => (one.action ? one.action : one.services.map(to(address))) },
    {
      title: "State",
      width: 110,
      cell: (one) => (one.condition ? html`<${State} condition=${one.condition} />` : "–"),
      order: (one) => (one.condition ? orderOf(one.condition) : "9"),
    },
    {
      title: "Requests",
      unit: "/s, 10 s",
      number: true,
      kind: "opt",
      width: 90,
      cell: (one) =>
        html`<span title=${one.uncounted}>${one.rate == null && one.services.length > 0 ? html`<small>shared</small>` : figure(one.rate)}</span>`,
      order: (one) => one.rate ?? -1,
    },
    {
      title: "Failed",
      unit: "10 s",
      number: true,
      kind: "opt",
      width: 80,
      cell: (one) => share(one.failed, one.requests),
      order: (one) => (one.requests ? (one.failed ?? 0) / one.requests : -1),
    },
  ];
}

/** @param {Address} address */
function to(address) {
  return (/** @type {Route["services"][number]} */ { name, share: part, known }, /** @type {number} */ at) =>
    html`${at ? ", " : ""}${known ? html`<a href=${link(address, "service", name)}>${name}</a>` : name}${part && html`<small> ${part}</small>`}`;
}
