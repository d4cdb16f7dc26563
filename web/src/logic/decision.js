// A decision record of the access log in words: why a request got its server, and why not each of the others. No DOM.

import { plural } from "./figures.js";

/** @typedef {import("../types.js").Decision} Decision */

const BY = /** @type {Record<string, string>} */ (
  Object.assign(Object.create(null), {
    round_robin: "it was its turn (round_robin)",
    least_connections: "it had the fewest requests in flight for its weight (least_connections)",
    peak_ewma: "of two drawn at random it had the lower product of latency and requests in flight (peak_ewma)",
    random: "of two drawn at random it had fewer requests in flight (random)",
    hash: "the request's key belongs to it (hash)",
    affinity: "the client is bound to it (affinity)",
    queue: "it was the first with a free slot while the request was queued (queue)",
    elsewhere: "another server had just failed the request (elsewhere)",
  })
);

const WHY = /** @type {Record<string, string>} */ (
  Object.assign(Object.create(null), {
    chosen: "chosen",
    draining: "an operator is draining it",
    maintenance: "an operator put it into maintenance",
    down: "health checks fail",
    ejected: "ejected by passive health",
    weight_zero: "its weight is 0",
    backup: "a backup; there are enough other servers",
    leaving: "about to be removed: its service needs fewer servers",
    source_maintenance: "in maintenance, according to its source",
    source_critical: "failing, according to its source",
    last_resort: "no longer listed, or flapping: used like a backup",
    other_zone: "in another zone; the own zone has enough servers",
    already_tried: "this request failed there already",
    full: "at its concurrency limit",
    client_bound: "the client is bound to another server",
    others_waited: "its free slot was for requests that had waited longer",
    higher_load: "its load was not below that of the chosen one",
    not_its_turn: "it was another server's turn",
    not_drawn: "not drawn at random, or the busier of two",
    other_key: "the request's key belongs to another server",
    nobody_chosen: "could have been chosen, but no server was",
  })
);

const TIERS = /** @type {Record<string, string>} */ (
  Object.assign(Object.create(null), {
    own_zone: "the primary servers of the own zone",
    all_zones: "the primary servers of all zones",
    backups: "all servers, with backups",
    try_all: "all servers as if they were ready",
    none: "no server",
  })
);

const REASONS = /** @type {Record<string, string>} */ (
  Object.assign(Object.create(null), {
    no_zone_configured: "the balancer has no zone configured",
    own_zone_ready: "enough of the own zone is ready",
    own_zone_absent: "the service has no server in the own zone",
    own_zone_down: "no server of the own zone is ready",
    own_zone_too_few: "less than ready_min of the own zone is ready",
    own_zone_recovering: "less than ready_recovered of the own zone is back",
    only_backups: "the service has only backups",
    primaries_down: "no primary server is ready",
    primaries_too_few: "less than ready_min of the primary servers is ready",
    primaries_recovering: "less than ready_recovered of the primary servers is back",
    all_down: "no server is ready",
    no_servers: "no server receives new requests",
  })
);

/** @param {string | undefined} word */
export function whyText(word) {
  return WHY[word ?? ""] ?? word ?? "–";
}

/** The choice, the servers that it was among, and those that are only counted.
 * @param {Decision} decision */
export function decisionSentences({ chosen, by, tier, reason, queue_length: queue, more }) {
  const said = [
    chosen == null
      ? "No server was chosen."
      : `${chosen} was chosen: ${BY[by ?? ""] ?? by ?? "the record does not say why"}.`,
  ];
  const among =
    tier === "own_zone" && reason === "no_zone_configured" ? "the primary servers" : (TIERS[tier ?? ""] ?? tier);
  if (among) said.push(`Eligible: ${among}${reason ? `, because ${REASONS[reason] ?? reason}` : ""}.`);
  if (queue) said.push(`${plural(queue, "request")} waited before it.`);
  const counted = Object.entries(more ?? {}).map(
    ([why, number]) => `${plural(number, "more server")}: ${whyText(why)}`,
  );
  if (counted.length) said.push(`${counted.join("; ")}.`);
  return said;
}
