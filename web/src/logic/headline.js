// The sentence at the top: what is wrong, since when, how sure, what to do. A finding says it best; without one
// the figures are described, and the page says that no finding explains them yet. No DOM.

import { loses } from "./services.js";
import { clock, duration, plural } from "./figures.js";
import { existing, namedServers } from "./subject.js";

/** @typedef {import("../api.js").Finding} Finding */
/** @typedef {import("./services.js").ServiceRow} ServiceRow */
/** @typedef {import("./services.js").ServerRow} ServerRow */
/**
 * @typedef {object} Headline
 * @property {"bad" | "warn" | "fine" | "idle"} level
 * @property {string} key Tells one trouble from another, while its figures change.
 * @property {string} title
 * @property {string} detail
 * @property {{label: string, page: string, name: string | null} | null} evidence
 * @property {{service: ServiceRow, row: ServerRow} | null} drain The server whose draining helps.
 * @property {number} more How many further troubles there are.
 */

/** When each condition began, by conditionKey; before: or earlier. @typedef {Map<string, {at: number, before: boolean}>} Since */

const HOUR_S = 3600;

/** A finding about traffic concerns more readers than one about a kernel setting.
 * @param {Finding} finding @param {ServiceRow[]} services */
function rank(finding, services) {
  const severity = finding.severity === "critical" ? 0 : 2;
  return severity + (existing(finding, services).length ? 0 : 1);
}

/** A key that tells one finding from another, over time too.
 * @param {Finding} finding */
export function findingKey(finding) {
  return [finding.rule, finding.subject, finding.namespace ?? ""].join(" ");
}

/** @param {object} input
 * @param {ServiceRow[]} input.services @param {Finding[]} input.findings
 * @param {Since} input.since
 * @param {{ready: boolean, uptime_s: number} | undefined} input.status
 * @param {number | null} input.changed When something last happened. @param {number} input.now
 * @returns {Headline} */
export function headline({ services, findings, since, status, changed, now }) {
  const serious = findings
    .filter((one) => one.is_present && (one.severity === "critical" || one.severity === "warning"))
    .map((one, place) => ({ one, place, rank: rank(one, services) }))
    .sort((a, b) => a.rank - b.rank || a.place - b.place)
    .map(({ one }) => one);
  const conditions = seen(services, serious);
  const first = serious[0];
  const observed = conditions[0];
  // Lost requests that no finding explains come before a finding that only warns.
  if (first && (first.severity === "critical" || observed?.level !== "bad")) {
    return fromFinding(first, services, serious.length + conditions.length - 1, now);
  }
  if (observed) return fromCondition(observed, since, serious.length + conditions.length - 1, now);
  if (status && !status.ready) {
    return quiet("idle", "Weir takes no new work: it is starting or draining.");
  }
  if (services.length === 0) return quiet("idle", "No service is configured.");
  const busy = services.some(({ traffic }) => traffic?.windows.some((window) => window.requests > 0));
  const all =
    ["The service is healthy", "Both services are healthy"][services.length - 1] ??
    `All ${services.length} services are healthy`;
  const young = status && status.uptime_s < HOUR_S;
  const last = changed == null ? "" : `; nothing has changed since ${clock(changed, false)}`;
  return quiet(
    "fine",
    busy ? `${all}${last}.` : `${all}${last}. No request has arrived ${young ? "yet" : "in the last hour"}.`,
  );
}

/** @param {"fine" | "idle"} level @param {string} title @returns {Headline} */
function quiet(level, title) {
  return { level, key: level, title, detail: "", evidence: null, drain: null, more: 0 };
}

/** @param {Finding} finding @param {ServiceRow[]} services @param {number} more @param {number} now
 * @returns {Headline} */
function fromFinding(finding, services, more, now) {
  const certainty =
    { certain: "Certain", likely: "Likely", possible: "Possible" }[finding.certainty] ?? finding.certainty;
  const servers = existing(finding, services);
  // A finding about a whole zone is not solved by draining one of its servers.
  const about = servers.length === 1 ? servers[0] : null;
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
    evidence: { label: "Evidence", page: "findings", name: findingKey(finding) },
    drain: about && canDrain(about) ? about : null,
    more,
  };
}

/** @param {string} text */
function sentence(text) {
  return /[.!?]$/.test(text) ? text : text + ".";
}

/** @param {{service: ServiceRow, row: ServerRow}} about */
function canDrain({ service, row }) {
  return row.server.state === "ready" && service.servers.some((one) => one !== row && one.server.eligible);
}

/**
 * @typedef {object} Seen
 * @property {ServiceRow} service
 * @property {ServerRow[]} rows
 * @property {"bad" | "warn"} level
 * @property {string} word
 */

/** The key under which the page remembers when a condition began.
 * @param {string} service @param {string} server @param {string} word */
export function conditionKey(service, server, word) {
  return [service, server, word].join("\n");
}

/** Conditions that no finding explains, the worst first. One entry for each service and word.
 * @param {ServiceRow[]} services @param {Finding[]} serious @returns {Seen[]} */
function seen(services, serious) {
  /** @type {Seen[]} */
  const all = [];
  for (const service of services) {
    /** @type {Map<string, Seen>} */
    const words = new Map();
    const explained = new Set(
      serious
        .flatMap(namedServers)
        .filter((one) => one.service === service.service.name)
        .map((one) => one.server),
    );
    for (const row of service.troubled) {
      if (row.finding || explained.has(row.server.address)) continue;
      const level = loses(row.condition) ? "bad" : "warn";
      const one = words.get(row.condition.word);
      if (one) one.rows.push(row);
      else words.set(row.condition.word, { service, rows: [row], level, word: row.condition.word });
    }
    const own = service.condition;
    if (service.troubled.length === 0 && (own.level === "bad" || own.level === "warn")) {
      words.set(own.word, { service, rows: [], level: own.level, word: own.word });
    } else if (own.word === "no server") {
      words.clear();
      words.set(own.word, { service, rows: [], level: "bad", word: own.word });
    }
    all.push(...words.values());
  }
  const order = ["no server", "failing", "down", "ejected", "slow", "refusing", "queueing", "at its limit"];
  const place = (/** @type {Seen} */ one) => {
    const at = order.indexOf(one.word);
    const idle = !one.service.traffic?.windows.some((window) => window.requests > 0);
    return (idle ? 100 : 0) + (at < 0 ? order.length : at);
  };
  return all.sort((a, b) => place(a) - place(b));
}

/** Words that the page finds by comparing servers, not by a state of Weir. */
const COMPARED = ["slow", "failing"];

/** @param {Seen} one @param {Since} since @param {number} more @param {number} now
 * @returns {Headline} */
function fromCondition({ service, rows, level, word }, since, more, now) {
  const name = service.service.name;
  const began = since.get(conditionKey(name, rows[0]?.server.address ?? "", word));
  const time =
    began == null
      ? ""
      : began.before
        ? `For more than ${duration(now - began.at)}. `
        : `Since ${clock(began.at)} (${duration(now - began.at)}). `;
  const row = rows[0];
  const explained = COMPARED.includes(word)
    ? " This is a comparison of its figures with its peers'; no finding explains it yet."
    : "";
  const why = row ? row.condition.why : service.condition.why;
  return {
    level,
    key: conditionKey(name, row?.server.address ?? "", word),
    title: title(service, rows, word),
    detail: `${time}${rows.length > 1 ? `${rows[0].server.address}: ${why}` : why}${explained}`,
    evidence: { label: "Evidence", page: "service", name },
    drain: rows.length === 1 && row && COMPARED.includes(word) && canDrain({ service, row }) ? { service, row } : null,
    more,
  };
}

/** @param {ServiceRow} service @param {ServerRow[]} rows @param {string} word */
function title(service, rows, word) {
  const name = service.service.name;
  if (rows.length === 0) {
    return (
      {
        "no server": `${name} has no server that receives requests.`,
        refusing: `${name} is refusing requests.`,
        queueing: `Requests of ${name} wait for a server.`,
        unresolved: `A server of ${name} has no address.`,
      }[word] ?? `${name}: ${service.condition.why}`
    );
  }
  const who =
    rows.length === 1 ? `${rows[0].server.address} of ${name}` : `${plural(rows.length, "server")} of ${name}`;
  return `${who} ${rows.length === 1 ? "is" : "are"} ${rows.length > 1 ? word.replace("its", "their") : word}.`;
}
