// The table of ended requests that the balancer keeps as examples: failed, slowest, and with a decision record.

import { html, useState } from "../html.js";
import { link } from "../logic/address.js";
import { KINDS, endedLevel, ofKind } from "../logic/ended.js";
import { faultText } from "../logic/faults.js";
import { count, duration, moment } from "../logic/figures.js";
import { requestKey } from "../logic/story.js";
import { usePage } from "../use.js";
import { Mark } from "./mark.js";
import { Rows } from "./rows.js";
import { Unavailable } from "./unavailable.js";

/** @typedef {import("../types.js").EndedRequest} EndedRequest */

/** @param {{reading: Reading}} props */
export function Ended({ reading }) {
  const { address, board, source } = usePage();
  const [kind, setKind] = useState(/** @type {import("../logic/ended.js").EndedKind} */ ("all"));
  const answer = reading.value;
  const all = /** @type {EndedRequest[]} */ (answer?.requests ?? []);
  const rows = ofKind(all, kind);
  const order = kind === "slowest" ? "the slowest first" : "the latest first";
  const older = answer?.left_out > 0 ? `; ${count(answer.left_out)} older ones are not listed` : "";
  // With older ones that are not listed, these do not go back that far.
  const kept = answer?.kept_ms > 0 && !older ? ` of the last ${duration(answer.kept_ms)}` : "";
  return html`<section class="card" aria-labelledby="ended">
    <div class="title"><h2 id="ended">Ended: failed, slowest, with a decision <span>${answer ? `${count(rows.length)} examples${source.recording ? "" : kept}, ${order}${older}` : ""}</span></h2>
      <div class="range" role="group" aria-label="Which ended requests">${KINDS.map(
        (one) =>
          html`<button type="button" key=${one} aria-pressed=${one === kind} onClick=${() => setKind(one)}>${one[0].toUpperCase() + one.slice(1)}</button>`,
      )}</div></div>
    <${Unavailable} path="requests/ended" why=${reading.error} />
    ${
      (answer || reading.error == null) &&
      html`<${Rows} rows=${rows} caption="Ended requests" columns=${columns(address, board.now)} keyOf=${keyOf}
        kind=${(/** @type {EndedRequest} */ one) => (requestKey(one) === address.name ? "chosen" : "")}
        empty=${!answer ? "Loading…" : kind === "with decision" ? "No decision was recorded: log.decisions is the share of requests for which it is, and a request with a valid Weir-Explain has one." : "There is no example of such a request."} />`
    }
    <p class="rest">Of every ten seconds: the first three with each cause, the slowest of each service, and four with a decision record. The access log has all requests.</p>
  </section>`;
}

/** @param {EndedRequest} one */
function keyOf(one) {
  return `${requestKey(one)} ${one.ended_unix_ms} ${one.kept_for}`;
}

/** @param {Address} address @param {number} now
 * @returns {TableColumn<EndedRequest>[]} */
function columns(address, now) {
  const text = (/** @type {"service" | "server" | "path"} */ key) => (/** @type {EndedRequest} */ one) =>
    one[key] ?? "";
  return [
    {
      title: "Ended",
      cell: (one) => {
        const time = moment(one.ended_unix_ms, now);
        return html`<a href=${link(address, "requests", requestKey(one))} aria-label=${`${time}, story of ${nameOf(one)}`}>${time}</a>`;
      },
      order: (one) => one.ended_unix_ms,
    },
    { title: "Status", number: true, cell: (one) => one.status ?? "–", order: (one) => one.status ?? 0 },
    {
      title: "Cause",
      cell: (one) => html`<${Cause} request=${one} />`,
      order: (one) => one.cause ?? "",
    },
    {
      title: "Total",
      number: true,
      cell: (one) => duration(one.total_ms),
      order: (one) => one.total_ms ?? 0,
    },
    {
      title: "Response head",
      number: true,
      // 0: there was none.
      cell: (one) => duration(one.first_byte_ms || null),
      order: (one) => one.first_byte_ms ?? 0,
    },
    { title: "Service", kind: "opt name", cell: (one) => one.service ?? "–", order: text("service") },
    { title: "Server", kind: "mono", cell: (one) => one.server ?? "–", order: text("server") },
    {
      title: "Attempts",
      number: true,
      kind: "opt",
      cell: (one) => count(one.attempts),
      order: (one) => one.attempts ?? 0,
    },
    { title: "Path", kind: "path", cell: nameOf, order: text("path") },
  ];
}

/** @param {EndedRequest} one */
export function nameOf({ method, path }) {
  return method == null ? "TCP connection" : `${method} ${path ?? ""}`;
}

/** Why it ended, and whose fault that was.
 * @param {{request: EndedRequest}} props */
function Cause({ request }) {
  const { cause, fault, status } = request;
  const level = endedLevel(request);
  const forwarded = fault === "none" && (status ?? 0) >= 500;
  const whose = forwarded ? "5xx of the server" : fault && fault !== "none" ? faultText(fault) : "";
  return html`<span class=${`state ${level}`}><${Mark} kind=${level} />${cause ?? "–"}</span>${whose && html` <small class="soft">${whose}</small>`}`;
}
