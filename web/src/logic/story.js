// The story of one request in flight, as far as the API tells it: how old it is, at which server, in which stage.
// When a stage began is not in the answer; the page knows it for stages whose beginning it has seen. No DOM.

import { clock, duration, moment, plural } from "./figures.js";

/** @typedef {import("../api.js").Request} Request */
/** @typedef {{stage: string, from: number, to: number | null}} Stage From and to in ms of the request's age; to null: goes on. */
/** @typedef {{request: Request, stages: Stage[], fromStart: boolean, forgotten: number}} Tracked Forgotten: how many earlier
 *   stages are no longer among them. */

const TRACKED_MAX = 2000;
/** Stages of one request that are kept: the newest. A request that is retried again and again has two with each attempt. */
const STAGES_MAX = 12;
/** A limit that is further away than this many times the age is not drawn: the bars would have no width. */
const LIMIT_FACTOR = 8;
/** The least width of a bar, in per cent: a stage of a millisecond in a request of a day is visible. */
export const BAR_MIN = 0.4;

/** What one request does in a stage, and what several do. */
const STAGES = /** @type {Record<string, [string, string]>} */ ({
  queue: ["is queued", "are queued"],
  connect: ["connects to the server", "connect to the server"],
  response: ["waits for the server's response", "wait for the server's response"],
  body: ["forwards the response body", "forward the response body"],
  tunnel: ["forwards in both directions", "forward in both directions"],
});

/** @param {string} stage @param {number} [number] Of requests. */
export function stageText(stage, number = 1) {
  const text = STAGES[stage]?.[number === 1 ? 0 : 1];
  return (
    text ??
    (stage
      ? `${number === 1 ? "is" : "are"} in the stage ${stage}`
      : `${number === 1 ? "is" : "are"} in an unknown stage`)
  );
}

/** What names a request in the page's address, in flight and ended.
 * @param {{request_id?: string | null, client?: string, listener?: string, server?: string | null}} request */
export function requestKey(request) {
  return request.request_id ?? [request.client, request.listener, request.server].join(" ");
}

/** How old a request is, in ms. A recording may lack it.
 * @param {Request} request */
function ageOf({ age_ms: age }) {
  return Number.isFinite(age) ? Math.max(0, age) : 0;
}

/** Follows requests from one answer to the next. Those that are no longer in flight are dropped.
 * @param {Map<string, Tracked>} before @param {Request[]} requests
 * @returns {Map<string, Tracked>} */
export function track(before, requests) {
  /** @type {Map<string, Tracked>} */
  const after = new Map();
  for (const request of requests.slice(0, TRACKED_MAX)) {
    const key = requestKey(request);
    const known = before.get(key);
    const last = known?.stages.at(-1);
    if (!known || !last) {
      // The first stage that is seen began at 0 only if it is the first one that a request can be in.
      const stages = [{ stage: request.stage, from: 0, to: null }];
      after.set(key, { request, stages, fromStart: request.stage === "queue", forgotten: 0 });
    } else if (last.stage === request.stage && known.request.attempts === request.attempts) {
      after.set(key, { ...known, request });
    } else {
      // Between two answers: the change is dated to the newer one.
      const ended = known.stages.slice(0, -1).concat({ ...last, to: ageOf(request) });
      const stages = [...ended, { stage: request.stage, from: ageOf(request), to: null }];
      const over = Math.max(0, stages.length - STAGES_MAX);
      after.set(key, { ...known, request, stages: stages.slice(over), forgotten: known.forgotten + over });
    }
  }
  return after;
}

/** The limit that will end the request if nothing else does.
 * @param {Request} request @param {any} timeouts The service's `timeouts` in the configuration. */
export function limit(request, timeouts) {
  if (!timeouts) return null;
  const total = timeouts.total_ms ?? null;
  if (total != null) return { name: "timeouts.total", ms: total };
  const own = { connect: "connect_ms", response: "response_ms", body: "idle_ms", tunnel: "tunnel_ms" }[
    /** @type {string} */ (request.stage)
  ];
  return own && timeouts[own] != null ? { name: `timeouts.${own.replace("_ms", "")}`, ms: timeouts[own] } : null;
}

/** The stages as bars on a scale from 0 to 100, and the limit on it where it is near enough to be drawn.
 * @param {Tracked} tracked @param {number | null} limitMs
 * @returns {{bars: {stage: string, x: number, width: number, lasted: number, goesOn: boolean}[], limit: number | null}} */
export function waterfall({ request, stages }, limitMs) {
  const age = ageOf(request);
  const near = limitMs != null && limitMs < age * LIMIT_FACTOR ? limitMs : null;
  const end = Math.max(age, near ?? 0) * 1.05 || 1;
  const bars = stages.map(({ stage, from, to }) => {
    const lasted = Math.max(0, (to ?? age) - from);
    const x = Math.min((from / end) * 100, 100 - BAR_MIN);
    return { stage, x, width: Math.max(BAR_MIN, (lasted / end) * 100), lasted, goesOn: to == null };
  });
  return { bars, limit: near == null ? null : (near / end) * 100 };
}

/** @param {Tracked} tracked @param {boolean} inFlight Whether the last answer still has it.
 * @param {number | null} [recordedAt] When it was seen, if times are to be absolute. */
export function sentences({ request, stages, fromStart, forgotten }, inFlight, recordedAt = null) {
  const said = [];
  const age = Number.isFinite(request.age_ms) ? ` ${duration(request.age_ms)}` : "";
  const ago = age && (recordedAt == null ? `${age} ago` : ` at ${moment(recordedAt - ageOf(request), recordedAt)}`);
  const later = age && `${age} later`;
  const place = request.listener ? ` at ${request.listener}` : "";
  const where = `${place}${request.service ? ` for ${request.service}` : ""}`;
  const from = request.client ? `, from ${request.client}` : "";
  said.push(inFlight ? `It arrived${ago}${where}${from}.` : `It arrived${where}${from}, and was last seen${later}.`);
  const now = stages.at(-1);
  if (now) {
    const server = request.server ? ` (${request.server})` : "";
    const tries = request.attempts > 1 ? `, after ${plural(request.attempts - 1, "failed attempt")}` : "";
    said.push(
      `${recordedAt != null ? `At ${clock(recordedAt)}` : inFlight ? "Now" : "Then"} it ${stageText(now.stage)}${server}${tries}.`,
    );
  }
  if (!inFlight)
    said.push(
      "It has ended, and is not among the examples of ended requests; the access log has its cause and the time of every stage.",
    );
  if (forgotten > 0) said.push(`${plural(forgotten, "earlier stage")} not shown.`);
  if (stages.length === 1 && !fromStart) {
    said.push("When this stage began is not known: the page saw the request first in it.");
  }
  return said;
}
