// Services joined with their traffic and findings: what every view reads. No DOM.

import { minute, newest, peersOf, serverCondition } from "./condition.js";
import { count, duration, plural } from "./figures.js";
import { namedServers } from "./subject.js";

/** @typedef {import("../api.js").Service} Service */
/** @typedef {import("../api.js").Server} Server */
/** @typedef {import("../api.js").ServiceTraffic} ServiceTraffic */
/** @typedef {import("../api.js").ServerWindow} ServerWindow */
/** @typedef {import("../api.js").Finding} Finding */
/** @typedef {import("./condition.js").Condition} Condition */
/** @typedef {import("./condition.js").Peers} Peers */

/** The finding about a server, the most severe first; findings are sorted that way.
 * @param {Finding[]} findings @param {string} service @param {string} address */
function findingFor(findings, service, address) {
  return findings.find(
    (finding) =>
      finding.is_present &&
      (finding.severity === "critical" || finding.severity === "warning") &&
      namedServers(finding).some((one) => one.service === service && one.server === address),
  );
}

/**
 * @typedef {object} ServerRow A server with all that the page shows of it.
 * @property {Server} server
 * @property {ServerWindow | undefined} window The last ten seconds.
 * @property {Condition} condition
 * @property {Finding | undefined} finding
 */
/**
 * @typedef {object} ServiceRow
 * @property {Service} service
 * @property {ServiceTraffic | undefined} traffic
 * @property {Peers} peers
 * @property {Condition} condition
 * @property {ServerRow[]} servers In order of the configuration.
 * @property {ServerRow[]} troubled
 */

/** Services joined with their traffic and findings.
 * @param {Service[]} services @param {import("../api.js").Traffic | undefined} traffic @param {Finding[]} findings
 * @param {import("../api.js").Maintenance[]} [maintenance] @returns {ServiceRow[]} */
export function serviceRows(services, traffic, findings, maintenance = []) {
  const trafficOf = new Map(traffic?.services.map((one) => [one.name, one]));
  const serious = findings.filter((one) => one.is_present && one.severity !== "note" && one.severity !== "advice");
  return services.map((service) => {
    const own = trafficOf.get(service.name);
    const peers = peersOf(own);
    const byAddress = new Map(own?.servers.map((one) => [one.address, one]));
    const servers = service.servers.map((server) => {
      const finding = serious.length ? findingFor(serious, service.name, server.address) : undefined;
      const figures = byAddress.get(server.address);
      const condition = serverCondition(server, figures, peers, finding);
      return { server, window: newest(figures), condition, finding };
    });
    const troubled = servers.filter(({ condition }) => condition.level === "bad" || condition.level === "warn");
    const rests = maintenance.find((one) => one.kind === "service" && one.name === service.name && one.on);
    const condition = rests ? inMaintenance(rests) : serviceCondition(service, own, troubled);
    return { service, traffic: own, peers, servers, troubled, condition };
  });
}

/** @param {import("../api.js").Maintenance} maintenance @returns {Condition} */
function inMaintenance({ by_operator: byOperator }) {
  const who = byOperator ? "An operator put it into maintenance" : "It is in maintenance by the configuration";
  return { level: "aside", word: "maintenance", why: `${who}: Weir answers its requests with 503.` };
}

/** Whether requests are lost. A server that is down gets none: the others serve them.
 * @param {Condition} condition */
export function loses({ level, word }) {
  return level === "bad" && word !== "down" && word !== "ejected";
}

/** The worst condition among servers, and how many have it.
 * @param {ServerRow[]} troubled */
export function worstOf(troubled) {
  const worst =
    troubled.find(({ condition }) => loses(condition)) ??
    troubled.find(({ condition }) => condition.level === "bad") ??
    troubled[0];
  if (!worst) return null;
  return { ...worst, same: troubled.filter(({ condition }) => condition.word === worst.condition.word).length };
}

/** @param {Service} service @param {ServiceTraffic | undefined} traffic @param {ServerRow[]} troubled
 * @returns {Condition} */
function serviceCondition(service, traffic, troubled) {
  const window = minute(traffic);
  if (service.eligible === 0) {
    return { level: "bad", word: "no server", why: "No server receives new requests." };
  }
  const worst = worstOf(troubled);
  if (worst) {
    return {
      level: loses(worst.condition) ? "bad" : "warn",
      word: `${count(worst.same)} ${worst.condition.word}`,
      why: `${worst.server.address}: ${worst.condition.why}`,
    };
  }
  if (window && window.refused > 0) {
    return {
      level: "warn",
      word: "refusing",
      why: `Weir refused ${plural(window.refused, "request")} in the last ${duration(window.seconds * 1000)}.`,
    };
  }
  if (service.queue.length > 0) {
    return { level: "warn", word: "queueing", why: `${plural(service.queue.length, "request")} wait for a server.` };
  }
  if (service.unresolved.length > 0) {
    return { level: "warn", word: "unresolved", why: `${service.unresolved[0].name} has no address at present.` };
  }
  for (const [state, word] of /** @type {const} */ ([
    ["drain", "draining"],
    ["maintenance", "in maintenance"],
  ])) {
    const aside = service.servers.filter((server) => server.state === state).length;
    if (aside)
      return {
        level: "aside",
        word: `${count(aside)} ${word}`,
        why: `${plural(aside, "server")} ${word}, by an operator.`,
      };
  }
  return { level: "fine", word: "healthy", why: service.why };
}
