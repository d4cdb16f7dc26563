// Services joined with their traffic and findings: what every view reads. No DOM.

import { isTrouble, serverCondition, serviceCondition } from "./condition.js";
import { isSerious } from "./findings.js";
import { newest, usualFirstByte } from "./traffic.js";

/** @typedef {import("../api.js").Finding} Finding */
/** @typedef {import("./condition.js").Condition} Condition */
/**
 * @typedef {object} ServerRow A server with all that the page shows of it.
 * @property {import("../api.js").Server} server
 * @property {import("../api.js").ServerWindow | undefined} window The last ten seconds.
 * @property {Condition} condition
 * @property {Finding | undefined} finding
 */
/**
 * @typedef {object} ServiceRow
 * @property {import("../api.js").Service} service
 * @property {import("../api.js").ServiceTraffic | undefined} traffic
 * @property {number | null} usual The usual first byte of its servers, in ms.
 * @property {Condition} condition
 * @property {ServerRow[]} servers In order of the configuration.
 * @property {ServerRow[]} troubled
 * @property {import("../api.js").Maintenance | undefined} maintenance Set while it is in maintenance.
 */

/** Services joined with their traffic and findings, which are sorted by severity.
 * @param {import("../api.js").Service[]} services @param {import("../api.js").Traffic | undefined} traffic
 * @param {Finding[]} findings @param {import("../api.js").Maintenance[]} [maintenance] @returns {ServiceRow[]} */
export function serviceRows(services, traffic, findings, maintenance = []) {
  const trafficOf = new Map(traffic?.services.map((one) => [one.name, one]));
  const serious = findings.filter(isSerious);
  return services.map((service) => {
    const own = trafficOf.get(service.name);
    const byAddress = new Map(own?.servers.map((one) => [one.address, one]));
    const ofService = serious.filter((one) => one.service === service.name);
    const servers = service.servers.map((server) => {
      const finding = ofService.find((one) => one.servers?.includes(server.address));
      const window = newest(byAddress.get(server.address));
      return { server, window, condition: serverCondition(server, finding), finding };
    });
    const troubled = servers.filter(({ condition }) => isTrouble(condition.level));
    const on = maintenance.find((one) => one.kind === "service" && one.name === service.name && one.on);
    const condition = on ? inMaintenance(on) : serviceCondition(service, troubled, ofService[0]);
    return { service, traffic: own, usual: usualFirstByte(own), servers, troubled, condition, maintenance: on };
  });
}

/** @param {import("../api.js").Maintenance} maintenance @returns {Condition} */
function inMaintenance({ by_operator: byOperator }) {
  const who = byOperator ? "An operator put it into maintenance" : "It is in maintenance by the configuration";
  return { level: "disabled", word: "maintenance", why: `${who}: Weir answers its requests with 503.` };
}
