// The summary at the top: what is wrong, since when, how sure, what follows, what to do. It comes from the findings
// and from states that the balancer reports. "Healthy" is said only if traffic is examined. No DOM.

import { countsOf } from "./condition.js";
import { clock, duration, moment, plural } from "./figures.js";
import { about, findingKey, isSerious, toDrain } from "./findings.js";
import { newest } from "./traffic.js";

/** @typedef {import("../types.js").Headline} Headline */
/** @typedef {{service: ServiceRow, rows: ServerRow[], word: string, why: string}} State A state that no finding explains. */

const HOUR_S = 3600;

/** @param {object} input
 * @param {ServiceRow[]} input.services @param {Finding[]} input.findings
 * @param {{ready: boolean, uptime_s: number} | undefined} input.status
 * @param {string | null} input.unexamined Why traffic is not examined, if it is not.
 * @param {Traffic | undefined} input.traffic
 * @param {number | null} input.changed When something last happened; null: not known. @param {number} input.now
 * @returns {Headline} */
export function headline({ services, findings, status, unexamined, traffic, changed, now }) {
  const serious = findings
    .filter(isSerious)
    .map((one, place) => ({ one, place, rank: rank(one, services) }))
    .sort((a, b) => a.rank - b.rank || a.place - b.place)
    .map(({ one }) => one);
  const states = statesOf(services);
  const [first, state] = [serious[0], states[0]];
  const count = serious.length + states.length - 1;
  /** @param {number} findings How many are left. @returns {Headline["more"]} */
  const more = (findings) => (count > 0 ? { page: findings > 0 ? "findings" : "services", count } : null);
  // A service that refuses everything comes before a finding that only warns.
  if (first && (first.severity === "critical" || state?.word !== "no server")) {
    return fromFinding(first, services, more(serious.length - 1), now);
  }
  if (state) return fromState(state, more(serious.length));
  const last = changed == null ? "" : `; nothing has changed since ${moment(changed, now)}`;
  return quiet(services, status, unexamined, traffic, last);
}

/** A finding about traffic concerns more readers than one about a kernel setting.
 * @param {Finding} finding @param {ServiceRow[]} services */
function rank(finding, services) {
  return (finding.severity === "critical" ? 0 : 2) + (about(finding, services) ? 0 : 1);
}

/** Why the doctor does not examine the traffic; null if it does.
 * @param {import("../api.js").Findings | undefined} findings @param {string | null} error Why there is no answer.
 * @param {boolean} history Whether the balancer keeps a history. @returns {string | null} */
export function whyUnexamined(findings, error, history) {
  if (error != null) return `the findings are not available (${error})`;
  if (!findings) return "there is no answer yet";
  if (!findings.enabled) return "the doctor is disabled in the configuration";
  return history ? null : "history_memory_max is 0 in the configuration, and the rules need the history";
}

/** @param {ServiceRow[]} services @param {{ready: boolean, uptime_s: number} | undefined} status
 * @param {string | null} unexamined @param {Traffic | undefined} traffic @param {string} last
 * @returns {Headline} */
function quiet(services, status, unexamined, traffic, last) {
  const say = (/** @type {"fine" | "idle"} */ level, /** @type {string} */ title) => ({
    level,
    key: level,
    title,
    detail: "",
    consequences: [],
    evidence: null,
    drain: null,
    more: null,
  });
  if (status && !status.ready) return say("idle", "Weir is not ready: it is starting or draining.");
  if (services.length === 0) return say("idle", "No service is configured.");
  if (unexamined != null) {
    return say("idle", `No service is known to be in trouble. Traffic is not examined: ${unexamined}.`);
  }
  const serving = services.filter((one) => !one.maintenance).length;
  const others = serving < services.length ? "other " : "";
  if (serving === 0) return say("idle", "Every service is in maintenance.");
  const all = serving === 1 ? `The ${others}service is healthy` : `All ${serving} ${others}services are healthy`;
  const young = status && status.uptime_s < HOUR_S;
  const idle = isIdle(services, traffic) ? ` No request has ended ${young ? "yet" : "in the last hour"}.` : "";
  return say("fine", `${all}${last}.${idle}`);
}

/** Whether it is known that no request has ended or is in flight.
 * @param {ServiceRow[]} services @param {Traffic | undefined} traffic */
function isIdle(services, traffic) {
  if (!traffic) return false;
  const windows = [...traffic.listeners, ...traffic.services].flatMap((one) => one.windows);
  const working = services.some((one) => one.servers.some(({ server }) => server.in_flight > 0));
  return !working && windows.every((window) => window.requests === 0);
}

/** @param {Finding} finding @param {ServiceRow[]} services @param {Headline["more"]} more @param {number} now
 * @returns {Headline} */
function fromFinding(finding, services, more, now) {
  const certainty =
    { certain: "Certain", likely: "Likely", possible: "Possible" }[finding.certainty] ?? finding.certainty;
  const remedy = finding.remedy?.[0]?.action;
  const detail = [
    `Since ${clock(finding.first_seen_unix_ms)} (${duration(now - finding.first_seen_unix_ms)}). ${certainty}.`,
    finding.why,
    remedy ? `To do: ${sentence(remedy)}` : "",
  ];
  return {
    level: finding.severity === "critical" ? "bad" : "warn",
    key: findingKey(finding),
    title: finding.what,
    detail: detail.filter(Boolean).join(" "),
    consequences: (finding.consequences ?? []).map(({ what }) => what),
    evidence: { page: "findings", name: findingKey(finding) },
    drain: toDrain(finding, services),
    more,
  };
}

/** @param {string} text */
function sentence(text) {
  return /[.!?]$/.test(text) ? text : text + ".";
}

/** States of services and servers that no finding explains: services without a server first, those with traffic first.
 * @param {ServiceRow[]} services @returns {State[]} */
function statesOf(services) {
  /** @type {State[]} */
  const all = [];
  for (const service of services) {
    const { condition, troubled, maintenance } = service;
    if (maintenance) continue;
    if (condition.word === "no server" || condition.word === "unresolved") {
      const why =
        condition.word === "no server" ? `Its servers: ${countsOf(service.servers) || "none"}.` : condition.why;
      all.push({ service, rows: [], word: condition.word, why });
      continue;
    }
    for (const word of ["down", "ejected"]) {
      const rows = troubled.filter((row) => row.condition.word === word);
      if (rows.length) all.push({ service, rows, word, why: rows[0].condition.why });
    }
  }
  const place = (/** @type {State} */ { service, word }) =>
    (word === "no server" ? 0 : 2) + ((newest(service.traffic)?.requests ?? 0) > 0 ? 0 : 1);
  return all.sort((a, b) => place(a) - place(b));
}

/** @param {State} state @param {Headline["more"]} more @returns {Headline} */
function fromState({ service, rows, word, why }, more) {
  const name = service.service.name;
  const [row] = rows;
  return {
    level: word === "no server" ? "bad" : "warn",
    key: [name, row?.server.address ?? "", word].join("\n"),
    title: title(name, rows, word),
    detail: rows.length > 1 ? `${row.server.address}: ${why}` : why,
    consequences: [],
    evidence: { page: "service", name },
    drain: null,
    more,
  };
}

/** @param {string} name @param {ServerRow[]} rows @param {string} word */
function title(name, rows, word) {
  if (word === "no server") return `${name} has no server that receives requests.`;
  if (word === "unresolved") return `A server of ${name} has no address.`;
  if (rows.length === 1) return `${rows[0].server.address} of ${name} is ${word}.`;
  return `${plural(rows.length, "server")} of ${name} are ${word}.`;
}
