// Health checks: which probes run, their results, and what sharing them saves.

import { html } from "../html.js";
import { link } from "../logic/address.js";
import { count, duration, figure, share } from "../logic/figures.js";
import { usePage, useWatch } from "../use.js";
import { Mark } from "../parts/mark.js";
import { Rows } from "../parts/rows.js";
import { Unavailable } from "../parts/unavailable.js";

const FAILED_SHARE = 0.05;

export function ChecksView() {
  const { address } = usePage();
  const { value, error } = useWatch("checks");
  const plan = /** @type {import("../api.js").Plan | null} */ (value);
  if (!plan) return html`<h1>Checks</h1><section class="card"><p class="empty">${error ?? "Loading…"}</p></section>`;
  const saved = plan.unshared_per_s - plan.probes_per_s;
  const near = plan.endpoints.flatMap((one) => one.near_duplicates.map((pair) => ({ endpoint: one.endpoint, pair })));
  return html`<h1>Checks</h1>
    <${Unavailable} path="checks" why=${error} />
    <p class="lead">${
      plan.endpoints.length === 0
        ? "No health check is configured."
        : saved > 0.005
          ? `Services share identical probes: ${figure(plan.probes_per_s)} per second instead of ${figure(plan.unshared_per_s)}, ${share(saved, plan.unshared_per_s)} less.`
          : `${figure(plan.probes_per_s)} probes per second; no two services share a probe.`
    }</p>
    <section class="card" aria-labelledby="plan"><h2 id="plan">Probes <span>${count(plan.probes)} distinct, of ${count(plan.endpoints.length)} endpoints</span></h2>
      <${Rows} rows=${plan.endpoints} caption="Endpoints" keyOf=${(/** @type {Endpoint} */ one) => one.endpoint} columns=${columns(address)}
        kind=${(/** @type {Endpoint} */ one) => (failing(one) ? "warn" : "")} /></section>
    ${
      near.length > 0 &&
      html`<section class="card" aria-labelledby="near"><h2 id="near">Nearly the same <span>with equal settings these would be one probe</span></h2>
      <ul class="plain">${near.map(({ endpoint, pair }) => html`<li><code>${endpoint}</code>: ${pair.services[0].join(", ")} and ${pair.services[1].join(", ")}: ${pair.why}</li>`)}</ul></section>`
    }`;
}

/** A probe that fails now and then says little.
 * @param {Endpoint} one */
function failing({ ended, failed }) {
  return Boolean(ended && failed && failed / ended > FAILED_SHARE);
}

/** @param {Address} address
 * @returns {TableColumn<Endpoint>[]} */
function columns(address) {
  return [
    {
      title: "Endpoint",
      kind: "mono",
      cell: (one) => html`${failing(one) && html`<${Mark} kind="warn" />`}${one.endpoint}`,
      order: (one) => one.endpoint,
    },
    {
      title: "Probe",
      kind: "opt text",
      cell: (one) => one.probes.map((probe) => html`<div>${probe.what}, every ${duration(probe.interval_ms)}</div>`),
    },
    {
      title: "Used by",
      kind: "name",
      cell: (one) =>
        [...new Set(one.probes.flatMap(({ services }) => services))].map(
          (name, at) => html`${at ? ", " : ""}<a href=${link(address, "service", name)}>${name}</a>`,
        ),
    },
    {
      title: "Probes",
      unit: "/s",
      number: true,
      cell: (one) => figure(one.probes_per_s),
      order: (one) => one.probes_per_s,
    },
    {
      title: "Unshared",
      unit: "/s",
      number: true,
      kind: "opt",
      cell: (one) => figure(one.unshared_per_s),
      order: (one) => one.unshared_per_s,
    },
    {
      title: "Failed",
      number: true,
      cell: (one) => (one.ended == null ? "–" : html`${count(one.failed)}<small> of ${count(one.ended)}</small>`),
      order: (one) => one.failed ?? -1,
    },
    { title: "Last", unit: "ms", number: true, cell: (one) => figure(one.last_ms), order: (one) => one.last_ms ?? -1 },
  ];
}
