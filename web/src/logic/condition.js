// The condition of a server or service in a word and a sentence: states that the balancer reports, and findings of the
// doctor. Figures are not judged here. No DOM.

import { count, duration, plural, share } from "./figures.js";
import { conditionOf } from "./findings.js";

/** @typedef {import("../api.js").Server} Server */
/** @typedef {"bad" | "warn" | "disabled" | "fine"} Level bad: requests are lost; warn: trouble; disabled: by an operator. */

/** The order in which levels are listed. */
export const LEVELS = /** @type {const} */ (["bad", "warn", "disabled", "fine"]);

/** For sorting: trouble first, then by the word.
 * @param {Condition} condition */
export function orderOf({ level, word }) {
  return `${LEVELS.indexOf(level)} ${word}`;
}

/** @param {Level} level */
export function isTrouble(level) {
  return level === "bad" || level === "warn";
}

/** What the source of a server makes of it, unless it is simply listed.
 * @type {Record<string, Condition>} */
const LISTINGS = {
  maintenance: { level: "disabled", word: "maintenance", why: "It is in maintenance, according to its source." },
  critical: { level: "warn", word: "critical", why: "Its source reports that it fails." },
  held: { level: "warn", word: "not listed", why: "Its source no longer lists it, nor most others: it is used last." },
  flapping: {
    level: "warn",
    word: "flapping",
    why: "Its source lists and removes it again and again: it is used last.",
  },
};

/** The condition of a server: what an operator has set, then a finding about it, then its other states.
 * @param {Server} server @param {Finding | undefined} finding @returns {Condition} */
export function serverCondition(server, finding) {
  if (server.state === "maintenance") {
    return { level: "disabled", word: "maintenance", why: "An operator put it into maintenance; it is not checked." };
  }
  const left = server.in_flight ? `${plural(server.in_flight, "request")} to finish` : "nothing left to finish";
  if (server.state === "drain") {
    return { level: "disabled", word: "draining", why: `An operator drained it; ${left}.` };
  }
  if (server.leaving) {
    return { level: "disabled", word: "leaving", why: `Its service needs fewer servers; ${left}.` };
  }
  const listing = LISTINGS[server.listing?.standing ?? ""];
  if (listing) return listing;
  if (finding) return conditionOf(finding);
  if (server.health === "down") return { level: "bad", word: "down", why: "Its health checks fail." };
  if (server.ejected_for_ms != null) {
    const why = `Passive health checks ejected it; it returns in ${duration(server.ejected_for_ms)}.`;
    return { level: "bad", word: "ejected", why };
  }
  if (server.weight === 0) {
    return { level: "disabled", word: "weight 0", why: "Its weight is 0: it gets no new requests." };
  }
  if (!server.eligible) return { level: "fine", word: "standby", why: "Healthy; other servers are preferred now." };
  if (server.slow_start_share < 1) {
    return { level: "fine", word: "starting", why: `Slow start: ${share(server.slow_start_share, 1)} of its weight.` };
  }
  if (server.health === "unknown") return { level: "fine", word: "ready", why: "No result of a health check." };
  return { level: "fine", word: "up", why: "Its health checks pass." };
}

/** The condition of a service. Servers that are down get no requests, so they alone do not make it lose any.
 * @param {import("../api.js").Service} service @param {ServerRow[]} troubled
 * @param {Finding | undefined} finding The most serious one about the service. @returns {Condition} */
export function serviceCondition(service, troubled, finding) {
  if (service.eligible === 0) {
    return { level: "bad", word: "no server", why: "No server receives new requests." };
  }
  if (finding) {
    const condition = conditionOf(finding);
    const servers = finding.servers?.length ?? 0;
    return servers > 0 ? { ...condition, word: `${count(servers)} ${condition.word}` } : condition;
  }
  const worst = worstOf(troubled);
  if (worst) {
    const { word, why } = worst.condition;
    return { level: "warn", word: `${count(worst.same)} ${word}`, why: `${worst.server.address}: ${why}` };
  }
  if (service.unresolved.length > 0) {
    return { level: "warn", word: "unresolved", why: `${service.unresolved[0].name} has no address at present.` };
  }
  for (const [state, word] of /** @type {const} */ ([
    ["drain", "draining"],
    ["maintenance", "in maintenance"],
  ])) {
    const disabled = service.servers.filter((server) => server.state === state).length;
    if (disabled === 0) continue;
    const why = `${plural(disabled, "server")} ${word}, by an operator.`;
    return { level: "disabled", word: `${count(disabled)} ${word}`, why };
  }
  return { level: "fine", word: "healthy", why: service.why };
}

/** The worst condition among servers, and how many have it.
 * @param {ServerRow[]} troubled */
export function worstOf(troubled) {
  const worst = troubled.find(({ condition }) => condition.level === "bad") ?? troubled[0];
  if (!worst) return null;
  return { ...worst, same: troubled.filter(({ condition }) => condition.word === worst.condition.word).length };
}

/** How many servers are in each condition: "3 up, 1 down".
 * @param {ServerRow[]} rows */
export function countsOf(rows) {
  /** @type {Map<string, number>} */
  const words = new Map();
  for (const { condition } of rows) words.set(condition.word, (words.get(condition.word) ?? 0) + 1);
  return [...words].map(([word, number]) => `${count(number)} ${word}`).join(", ");
}
