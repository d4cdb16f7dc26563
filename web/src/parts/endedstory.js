// The story of one ended request: how long each stage took, which attempts failed before, who was at fault, and why it
// got its server.

import { html } from "../html.js";
import { link } from "../logic/address.js";
import { decisionSentences, whyText } from "../logic/decision.js";
import { endedSentences, endedStages } from "../logic/ended.js";
import { count, duration, moment } from "../logic/figures.js";
import { usePage } from "../use.js";
import { Copy } from "./copy.js";
import { nameOf } from "./ended.js";
import { Mark } from "./mark.js";
import { Rows } from "./rows.js";

/** @typedef {import("../types.js").EndedRequest} EndedRequest */
/** @typedef {import("../types.js").Decision} Decision */
/** @typedef {import("../types.js").Considered} Considered */

/** @param {{request: EndedRequest, close: any}} props */
export function EndedStory({ request, close }) {
  const { address, board } = usePage();
  const { request_id: id, cause, failed_attempts: failed, trace, decision } = request;
  const host = request.host ? ` · ${request.host}` : "";
  return html`<section class="card story" aria-label="One ended request">
    <h2><span class="path">${nameOf(request)}</span>
      <span>${duration(request.total_ms)}, ended at ${moment(request.ended_unix_ms, board.now)}${host}${id ? ` · request ${id}` : ""}</span></h2>
    <ol class="waterfall">${endedStages(request).map(
      ({ title, x, width, lasted }) => html`<li><span>${title}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" height="14" aria-hidden="true"><rect class="done" x=${x} width=${width} height="10" /></svg>
      <span class="figure">${duration(lasted)}</span></li>`,
    )}</ol>
    <p>${endedSentences(request, board.now).join(" ")} ${cause && html`<a href=${link(address, "causes", cause)}>What ${cause} means</a>`}</p>
    ${trace?.id && html`<p>Trace <${Copy} text=${trace.id} /></p>`}
    ${
      (failed?.length ?? 0) > 0 &&
      html`<h3>Failed attempts before</h3><ol class="plain">${failed?.map(
        (one) =>
          html`<li><${Mark} kind="bad" /> <code>${one.server ?? "–"}</code>: <a href=${link(address, "causes", one.cause ?? "")}>${one.cause ?? "–"}</a></li>`,
      )}</ol>`
    }
    ${decision?.map(
      (one, at) => html`<h3>${decision.length > 1 ? `Choice ${at + 1} of ${decision.length}` : "Why this server"}</h3>
        <${Choice} decision=${one} />`,
    )}
    ${close}
  </section>`;
}

/** @param {{decision: Decision}} props */
function Choice({ decision }) {
  const servers = decision.servers ?? [];
  return html`<p>${decisionSentences(decision).join(" ")}</p>
    ${
      servers.length > 0 &&
      html`<${Rows} rows=${servers} columns=${SERVERS} caption="Servers at the choice" keyOf=${(/** @type {Considered} */ one) => one.address ?? ""}
        kind=${(/** @type {Considered} */ one) => (one.why === "chosen" ? "chosen" : "")} />`
    }`;
}

/** @type {TableColumn<Considered>[]} */
const SERVERS = [
  {
    title: "Server",
    kind: "mono",
    cell: ({ server, address }) =>
      server === address ? address : html`${server} <small class="soft">${address}</small>`,
  },
  { title: "Result", kind: "text", cell: ({ why }) => whyText(why) },
  {
    title: "In flight",
    number: true,
    cell: ({ in_flight: now, in_flight_max: most }) => (most ? `${count(now)} of ${count(most)}` : count(now)),
  },
  { title: "Latency", number: true, cell: ({ latency_ms: latency }) => duration(latency) },
  { title: "Weight", number: true, kind: "opt", cell: ({ weight }) => weight ?? "–" },
  { title: "Zone", kind: "opt", cell: ({ zone }) => zone ?? "–" },
];
