// Services joined with their traffic and findings: what every view reads. No DOM.

import { isTrouble, serverCondition, serviceCondition } from "./condition.js";
import { isSerious } from "./findings.js";
import { newest, usualFirstByte } from "./traffic.js";

/** @typedef {import("../types.js").ServerRow} ServerRow */
/** @typedef {import("../types.js").ServiceRow} ServiceRow */

/** Services joined with their traffic and findings, which are sorted by severity.
 * @param {import("../api.js").Service[]} services @param {Traffic | undefined} traffic
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
