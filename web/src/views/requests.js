// Requests in flight, the oldest first, examples of ended ones, and the story of one.

import { html, useEffect, useState } from "../html.js";
import { link } from "../logic/address.js";
import { clock, count, duration } from "../logic/figures.js";
import { limit, requestKey, sentences, stageText, track, waterfall } from "../logic/story.js";
import { usePage, useWatch } from "../use.js";
import { Ended } from "../parts/ended.js";
import { EndedStory } from "../parts/endedstory.js";
import { Rows } from "../parts/rows.js";
import { Unavailable } from "../parts/unavailable.js";

/** @typedef {import("../logic/story.js").Tracked} Tracked */
/** @typedef {import("../types.js").EndedRequest} EndedRequest */

export function RequestsView() {
  const { address, board, source } = usePage();
  const reading = useWatch("requests");
  const endedReading = useWatch("requests/ended");
  const configuration = useWatch("configuration").value?.configuration;
  const answer = /** @type {import("../api.js").Requests | null} */ (reading.value);
  const [tracked, setTracked] = useState(/** @type {Map<string, Tracked>} */ (new Map()));
  const [kept, setKept] = useState(/** @type {Tracked | null} */ (null));
  useEffect(() => {
    if (!answer) return;
    setTracked((before) => track(before, answer.requests));
  }, [answer]);
  const chosen = address.name == null ? null : (tracked.get(address.name) ?? null);
  useEffect(() => {
    if (chosen) setKept(chosen);
  }, [chosen]);
  const story = chosen ?? (kept && requestKey(kept.request) === address.name ? kept : null);
  const ended = useEnded(endedReading, Boolean(chosen));
  const close = html`<a class="button" href=${link(address, "requests")}>Close</a>`;
  const rows = [...tracked.values()];
  /** @type {Map<string, number>} */
  const stages = new Map();
  for (const { request } of rows) stages.set(request.stage, (stages.get(request.stage) ?? 0) + 1);
  return html`<h1>Requests</h1>
    ${
      ended
        ? html`<${EndedStory} request=${ended} close=${close} />`
        : address.name != null &&
          html`<${Story} tracked=${story} inFlight=${Boolean(chosen)} configuration=${configuration} close=${close} />`
    }
    <${Unavailable} path="requests" why=${reading.error} />
    <section class="card" aria-labelledby="now">
      <h2 id="now">In flight ${source.recording ? `at ${clock(board.now)}` : "now"} <span>${answer ? `${count(answer.in_flight)}, the oldest first${answer.in_flight > rows.length ? `; ${count(rows.length)} listed` : ""}` : reading.error == null ? "loading" : "not known"}</span></h2>
      ${stages.size > 0 && html`<p class="lead">${[...stages].map(([stage, number]) => `${count(number)} ${stageText(stage, number)}`).join(" · ")}</p>`}
      ${answer && answer.workers_silent > 0 && html`<p class="warning">${count(answer.workers_silent)} workers did not answer within a second; their requests are missing.</p>`}
      ${
        (answer || reading.error == null) &&
        html`<${Rows} rows=${rows} caption="Requests in flight" steady=${true} keyOf=${(/** @type {Tracked} */ one) => requestKey(one.request)}
        kind=${(/** @type {Tracked} */ one) => (requestKey(one.request) === address.name ? "chosen" : "")}
        empty=${answer ? "No request is in flight." : "Loading…"} columns=${columns(address)} />`
      }
    </section>
    <${Ended} reading=${endedReading} />`;
}

/** The ended request that the address names. One that is older than those of the table is looked for once.
 * @param {Reading} reading @param {boolean} inFlight */
function useEnded(reading, inFlight) {
  const { address, source } = usePage();
  const [older, setOlder] = useState(/** @type {EndedRequest[]} */ ([]));
  const named = (/** @type {EndedRequest} */ one) => requestKey(one) === address.name;
  const listed = reading.value?.requests.find(named) ?? null;
  const wanted = address.name != null && !inFlight && !listed && reading.value?.left_out > 0 ? address.name : null;
  useEffect(() => {
    if (wanted == null) return;
    source.read("requests/ended?limit=10000").then(
      ({ requests }) => setOlder(requests),
      // The story then says that the request is not listed; the reading says what is wrong.
      () => {},
    );
  }, [source, wanted]);
  return address.name == null || inFlight ? null : (listed ?? older.find(named) ?? null);
}

/** @param {any} configuration */
function logOf(configuration) {
  const access = configuration?.log?.access;
  return typeof access === "string" ? ` (${access})` : "";
}

/** @param {Address} address
 * @returns {TableColumn<Tracked>[]} */
function columns(address) {
  return [
    {
      title: "Request",
      kind: "path",
      cell: ({ request }) => html`<a href=${link(address, "requests", requestKey(request))}>
      ${request.method == null ? "TCP connection" : html`<b>${request.method}</b> ${request.path}`}</a>`,
      order: ({ request }) => request.path ?? "",
    },
    {
      title: "Age",
      number: true,
      cell: ({ request }) => duration(request.age_ms),
      order: ({ request }) => request.age_ms,
    },
    {
      title: "Stage",
      kind: "opt",
      cell: ({ request }) => stageText(request.stage),
      order: ({ request }) => request.stage,
    },
    {
      title: "Service",
      kind: "opt name",
      cell: ({ request }) => request.service ?? "–",
      order: ({ request }) => request.service ?? "",
    },
    {
      title: "Server",
      kind: "mono",
      cell: ({ request }) => request.server ?? "–",
      order: ({ request }) => request.server ?? "",
    },
    {
      title: "Attempt",
      number: true,
      kind: "opt",
      cell: ({ request }) => count(request.attempts),
      order: ({ request }) => request.attempts,
    },
    { title: "Host", kind: "opt name", cell: ({ request }) => request.host || "–" },
    {
      title: "Client",
      kind: "mono opt",
      cell: ({ request }) => request.client,
      order: ({ request }) => request.client,
    },
  ];
}

/** @param {{tracked: Tracked | null, inFlight: boolean, configuration: any, close: any}} props */
function Story({ tracked, inFlight, configuration, close }) {
  const { address, board, source } = usePage();
  if (!tracked) {
    return html`<section class="card story"><h2>This request is not in flight, nor among the examples of ended ones.</h2>
      <p>The access log${logOf(configuration)} has its cause and times: search it for <code>${address.name}</code>.</p>${close}</section>`;
  }
  const { request } = tracked;
  const service = configuration?.services?.find((/** @type {any} */ one) => one.name === request.service);
  const most = limit(request, service?.timeouts);
  const drawn = waterfall(tracked, most?.ms ?? null);
  return html`<section class="card story" aria-label="One request">
    <h2><span class="path">${request.method == null ? "TCP connection" : `${request.method} ${request.path ?? ""}`}</span>
      <span>${duration(request.age_ms)} ${source.recording ? `until ${clock(board.now)}` : inFlight ? "so far" : "when last seen; it has ended"}${request.request_id ? ` · request ${request.request_id}` : ""}</span></h2>
    <ol class="waterfall">${drawn.bars.map(
      ({ stage, x, width, lasted, goesOn }) => html`<li>
      <span>${stageText(stage)}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none" height="14" aria-hidden="true">
        <rect class=${goesOn ? "goes-on" : "done"} x=${x} width=${width} height="10" />
        ${drawn.limit != null && html`<path class="limit" d=${`M${drawn.limit},0V10`} />`}</svg>
      <span class="figure">${duration(lasted)}</span></li>`,
    )}</ol>
    <p>${sentences(tracked, inFlight, source.recording ? board.now : null).join(" ")}</p>
    ${most && inFlight && html`<p class="lead">${most.name} ends it after ${duration(most.ms)}${most.name === "timeouts.total" ? "" : " in this stage"}.</p>`}
    ${close}
  </section>`;
}
