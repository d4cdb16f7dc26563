// How requests end: causes over time, and what each means.

import { html, useState } from "../html.js";
import { link } from "../logic/address.js";
import { faultText } from "../logic/faults.js";
import { count, plural, share } from "../logic/figures.js";
import { ENDINGS } from "../logic/stack.js";
import { untilOf, useHistory, usePage, useWatch } from "../use.js";
import { NotServed, notServed } from "../parts/notserved.js";
import { Prose } from "../parts/prose.js";
import { Rows } from "../parts/rows.js";
import { Timeline } from "../parts/events.js";
import { Unavailable } from "../parts/unavailable.js";

/** @typedef {import("../api.js").Cause} Cause */

const LAYERS = 7;
export function CausesView() {
  const { board, address } = usePage();
  const { value, error } = useWatch("causes");
  const [all, setAll] = useState(false);
  const { frame } = useHistory({
    kinds: ["listener"],
    series: 1,
    columns: ENDINGS,
    span: address.span,
    until: untilOf(address, board.now),
  });
  const { coarse, layers } = notServed(frame, "listener", LAYERS);
  const inSpan = new Map(layers.map(({ name, total }) => [name, total]));
  const causes = /** @type {Cause[]} */ (value?.causes ?? []);
  const shown = causes
    .filter((one) => all || one.count > 0 || one.name === address.name)
    .sort((a, b) => Number(b.name !== "completed") - Number(a.name !== "completed") || b.count - a.count);
  return html`<h1>Causes</h1>
    <p class="lead">Every request ends with one cause. A 5xx response of a server is forwarded, so its cause is completed; it counts as failed.</p>
    <${Timeline} />
    <div class="charts one">
      <${NotServed} coarse=${coarse} layers=${layers} unit="per second, by cause, all listeners" height=${220} />
    </div>
    <section class="card" aria-labelledby="list">
      <h2 id="list">What they mean <span>${value ? `${plural(value.requests, "request")} since the start of the process` : ""}</span></h2>
      <${Unavailable} path="causes" why=${error} />
      <${Rows} rows=${shown} caption="Causes" keyOf=${(/** @type {Cause} */ one) => one.name} columns=${columns(address, value?.requests ?? 0, inSpan)}
        detail=${(/** @type {Cause} */ one) => one.name === address.name && html`<${Explained} cause=${one} />`} empty="Loading…" />
      ${
        value &&
        html`<p class="rest"><button type="button" class="quiet" onClick=${() => setAll(!all)}>
        ${all ? "Only those that have occurred" : `All ${causes.length} causes`}</button></p>`
      }
    </section>`;
}

/** @param {Address} address @param {number} requests @param {Map<string, number>} inSpan
 * @returns {TableColumn<Cause>[]} */
function columns(address, requests, inSpan) {
  return [
    {
      title: "Cause",
      kind: "mono",
      order: (one) => one.name,
      cell: (one) =>
        html`<a href=${link(address, "causes", one.name === address.name ? null : one.name)} aria-expanded=${one.name === address.name}>${one.name}</a>`,
    },
    {
      title: "In the span",
      number: true,
      order: (one) => inSpan.get(one.name) ?? 0,
      cell: (one) => (one.name === "completed" ? "–" : count(inSpan.get(one.name) ?? 0)),
    },
    { title: "Since the start", number: true, order: (one) => one.count, cell: (one) => count(one.count) },
    { title: "Share", number: true, kind: "opt", cell: (one) => share(one.count, requests) },
    {
      title: "At fault",
      kind: "opt",
      order: (one) => one.fault,
      cell: (one) => faultText(one.fault),
    },
    { title: "Status", number: true, kind: "opt", cell: (one) => one.status ?? "–" },
    { title: "Meaning", kind: "opt text", cell: (one) => html`<${Prose} text=${one.summary} />` },
  ];
}

/** @param {{cause: Cause}} props */
function Explained({ cause }) {
  const { address } = usePage();
  return html`<div class="explained">
    <dl><dt>What</dt><dd><${Prose} text=${cause.what} /></dd><dt>Why</dt><dd><${Prose} text=${cause.why} /></dd><dt>To do</dt><dd><${Prose} text=${cause.remedy} /></dd>
    ${
      Object.keys(cause.services).length > 0 &&
      html`<dt>Services</dt><dd>${Object.entries(cause.services).map(
        ([name, number]) => html`<a href=${link(address, "service", name)}>${name}</a>: ${count(number)} `,
      )}</dd>`
    }</dl></div>`;
}
