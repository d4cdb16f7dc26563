// The story of one request in flight, as far as the API tells it: how old it is, at which server, in which stage.
// When a stage began is not in the answer; the page knows it for stages whose beginning it has seen. No DOM.

import { duration, plural } from "./figures.js";

/** @typedef {import("../api.js").Request} Request */
/** @typedef {{stage: string, from: number, to: number | null}} Stage From and to in ms of the request's age; to null: goes on. */
/** @typedef {{request: Request, stages: Stage[], fromStart: boolean}} Tracked */

const TRACKED_MAX = 2000;

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
  return STAGES[stage]?.[number === 1 ? 0 : 1] ?? stage;
}

/** @param {Request} request */
export function requestKey(request) {
  return request.request_id ?? [request.client, request.listener, request.server].join(" ");
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
      after.set(key, { request, stages, fromStart: request.stage === "queue" });
    } else if (last.stage === request.stage && known.request.attempts === request.attempts) {
      after.set(key, { ...known, request });
    } else {
      // Between two answers: the change is dated to the newer one.
      const ended = known.stages.slice(0, -1).concat({ ...last, to: request.age_ms });
      after.set(key, {
        ...known,
        request,
        stages: [...ended, { stage: request.stage, from: request.age_ms, to: null }],
      });
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

/** @param {Tracked} tracked @param {boolean} inFlight Whether the last answer still has it. */
export function sentences({ request, stages, fromStart }, inFlight) {
  const said = [];
  const where = request.service ? ` for ${request.service}` : "";
  const age = duration(request.age_ms);
  said.push(
    inFlight
      ? `It arrived ${age} ago at ${request.listener}${where}, from ${request.client}.`
      : `It arrived at ${request.listener}${where}, from ${request.client}, and was last seen ${age} later.`,
  );
  const now = stages.at(-1);
  if (now) {
    const server = request.server ? ` (${request.server})` : "";
    const tries = request.attempts > 1 ? `, after ${plural(request.attempts - 1, "failed attempt")}` : "";
    said.push(`${inFlight ? "Now" : "Then"} it ${stageText(now.stage)}${server}${tries}.`);
  }
  if (!inFlight) said.push("It has ended; the access log has its cause and the time of every stage.");
  if (stages.length === 1 && !fromStart) {
    said.push("When this stage began is not known: the page saw the request first in it.");
  }
  return said;
}
