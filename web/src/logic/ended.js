// Ended requests: which of them a table shows, and the story of one, from its line in the access log. No DOM.

import { bytes, duration, moment, plural } from "./figures.js";
import { faultText } from "./faults.js";
import { BAR_MIN } from "./story.js";

/** @typedef {import("../types.js").EndedRequest} EndedRequest */

export const KINDS = /** @type {const} */ (["all", "failed", "slowest", "with decision"]);
/** @typedef {typeof KINDS[number]} EndedKind */

/** How it ended, as a mark shows it: with a failure, refused or cut short by its client, or well.
 * @param {EndedRequest} request @returns {"bad" | "warn" | "fine"} */
export function endedLevel({ fault, status }) {
  if (fault === "client") return "warn";
  return (fault ?? "none") !== "none" || (status ?? 0) >= 500 ? "bad" : "fine";
}

/** @param {EndedRequest} request @param {EndedKind} kind */
function isOf(request, kind) {
  switch (kind) {
    case "failed":
      return request.kept_for === "cause" || endedLevel(request) !== "fine";
    case "slowest":
      return request.kept_for === "slowest";
    case "with decision":
      return (request.decision?.length ?? 0) > 0;
    default:
      return true;
  }
}

/** Those of a kind: the latest first, or the slowest.
 * @param {EndedRequest[]} requests @param {EndedKind} kind */
export function ofKind(requests, kind) {
  const chosen = requests.filter((request) => isOf(request, kind));
  return kind === "slowest" ? chosen.sort((a, b) => (b.first_byte_ms ?? 0) - (a.first_byte_ms ?? 0)) : chosen;
}

/** The stages of an ended request, on a scale from 0 to 100. The access log has the sum of each over all attempts; what
 * is left until the response head was spent on waiting for servers.
 * @param {EndedRequest} request */
export function endedStages(request) {
  const total = known(request.total_ms);
  const head = Math.min(total, known(request.first_byte_ms));
  const answered = head > 0;
  const attempts = request.attempts ?? 0;
  let from = 0;
  const stages = [
    ["Authentication", known(request.auth_ms)],
    [attempts > 1 ? "Queue, all attempts" : "Queue", known(request.queue_ms)],
    [attempts > 1 ? "Connect, all attempts" : "Connect", known(request.connect_ms)],
  ].map(([title, lasted]) => stage(String(title), Number(lasted)));
  /** @param {string} title @param {number} lasted */
  function stage(title, lasted) {
    const begin = from;
    from = Math.min(total, from + lasted);
    return { title, from: begin, lasted };
  }
  const waited = (answered ? head : total) - from;
  const waiting = attempts > 1 ? "Waiting for servers" : attempts === 1 ? "Waiting for the response head" : "In Weir";
  stages.push(stage(answered || attempts === 0 ? waiting : `${waiting}; none came`, Math.max(0, waited)));
  if (answered) stages.push(stage("Response body", total - head));
  // A request that was sent shows that it was not queued; one that ended at once has no width.
  const scale = total > 0 ? 100 / total : 0;
  return stages
    .filter(({ lasted }, at) => lasted > 0 || (attempts > 0 && (at === 1 || at === 2)))
    .map(({ title, from, lasted }) => ({
      title,
      lasted,
      x: Math.min(from * scale, 100 - BAR_MIN),
      width: lasted > 0 ? Math.max(BAR_MIN, Math.min(lasted, total - from) * scale) : 0,
    }));
}

/** A recording may have anything in place of a number.
 * @param {unknown} ms */
function known(ms) {
  return typeof ms === "number" && Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

/** Where it came from and went, and how it ended.
 * @param {EndedRequest} request @param {number} now */
export function endedSentences(request, now) {
  const { status, cause, fault, server, service, listener, client, peer, user, attempts = 0 } = request;
  const began = request.ended_unix_ms - known(request.total_ms);
  const said = [
    `It arrived at ${moment(began, now)}${listener ? ` at ${listener}` : ""}${service ? ` for ${service}` : ""}` +
      `${client ? `, from ${client}` : ""}${peer ? ` through ${peer}` : ""}${user ? `, as user ${user}` : ""}.`,
  ];
  if (attempts === 0) said.push("It was not sent to a server.");
  else {
    const reused = request.reused ? " on a kept connection" : "";
    said.push(`${attempts > 1 ? `The last of ${plural(attempts, "attempt")}` : "It"} went to ${server}${reused}.`);
  }
  const answer = status == null ? "" : ` with status ${status}`;
  if (cause === "completed" && (status ?? 0) >= 500) {
    said.push(`The server answered${answer}, which Weir forwarded.`);
  } else {
    said.push(`It ended${answer}: ${cause}.`);
  }
  if (fault && fault !== "none") said.push(`At fault: ${faultText(fault)}.`);
  if (request.detail) said.push(`Detail: ${request.detail}.`);
  if (request.grpc_status != null) said.push(`The gRPC status was ${request.grpc_status}.`);
  if (request.not_retried) said.push(`It was not retried: ${notRetried(request.not_retried)}.`);
  said.push(`Bodies: ${bytes(request.request_bytes)} received, ${bytes(request.response_bytes)} sent.`);
  const { tcp } = request;
  if (tcp?.client_rtt_ms != null) said.push(`Round-trip time to the client: ${duration(tcp.client_rtt_ms)}.`);
  if (tcp?.server_rtt_ms != null) said.push(`Round-trip time to the server: ${duration(tcp.server_rtt_ms)}.`);
  return said;
}

/** Why there was no further attempt.
 * @param {string} word */
function notRetried(word) {
  const texts = /** @type {Record<string, string>} */ (
    Object.assign(Object.create(null), {
      "no use": "another attempt could not have helped",
      "not idempotent": "a server may have acted on it, and it is not idempotent",
      "body not kept": "its body was no longer complete",
      "no attempts left": "it had used all its attempts",
      "no other server": "there was no other server",
      "no time left": "its total time would have passed before another attempt began",
      "budget spent": "the service's retries had used up their budget",
    })
  );
  return texts[word] ?? word;
}
