// What an operator's action will do, said before it is done. Which servers take over depends on zones, health and
// backups: the balancer says so in a dry run; without its answer only what is certain is said. No DOM.

import { count, figure, plural, share } from "./figures.js";
import { newest, perSecondOf } from "./traffic.js";

/** @typedef {import("./services.js").ServiceRow} ServiceRow */
/** @typedef {import("./services.js").ServerRow} ServerRow */
/**
 * @typedef {object} Effect
 * @property {string} verb The label of the button.
 * @property {string[]} sentences What happens.
 * @property {string | null} warning What speaks against it.
 */

const LASTS = "The change survives reloads and upgrades. It ends when the process stops";
const SERVER_LASTS = `${LASTS}, or the server leaves the service.`;
const SERVICE_LASTS = `${LASTS}, or the service leaves the configuration.`;

/** @typedef {import("../api.js").Service} Service */

/** What happens when a server gets no new requests any more.
 * @param {ServiceRow} service @param {ServerRow} row @param {"drain" | "maintenance"} state
 * @param {Service | null} [after] The service as it would be. @returns {Effect} */
export function takenOut(service, row, state, after = null) {
  const others = othersOf(service, row);
  const name = row.server.address;
  const inFlight = row.server.in_flight;
  const sentences = [`It receives no new requests.${received(row.window)}`];
  if (after) {
    sentences.push(...eligibleAfter(service.service, after));
  } else if (others.length > 0) {
    const receive = others.length === 1 ? "receives" : "receive";
    sentences.push(
      `${plural(others.length, "other server")} of ${service.service.name} ${receive} requests now${used(others)}.`,
    );
  }
  sentences.push(
    inFlight > 0
      ? `${plural(inFlight, "request")} in flight there will be finished.`
      : "No request is in flight there.",
  );
  if (state === "maintenance") sentences.push("The health checks of this service for it stop.");
  else if (row.server.state === "maintenance") sentences.push("Its health checks start again.");
  return {
    verb: state === "drain" ? `Drain ${name}` : `Put ${name} into maintenance`,
    sentences: [...sentences, SERVER_LASTS],
    warning: after ? endangered(after) : others.length > 0 || !row.server.eligible ? null : alone(service),
  };
}

const NAMED_MAX = 3;

/** The servers that receive new requests then. @param {Service} before @param {Service} after */
function eligibleAfter(before, after) {
  if (after.eligible === 0 || after.tier === "try_all") return [];
  const isNew = (/** @type {import("../api.js").Server} */ one) =>
    one.eligible && before.servers.some(({ address, eligible }) => address === one.address && !eligible);
  const added = after.servers.filter(isNew).map(({ address }) => address);
  const named = added.slice(0, NAMED_MAX).join(", ");
  const rest = added.length > NAMED_MAX ? ` and ${count(added.length - NAMED_MAX)} more` : "";
  const verb = after.eligible === 1 ? "receives" : "receive";
  const why = after.tier === before.tier ? "" : `, because ${after.why}`;
  const among = added.length > 0 ? `, new among them ${named}${rest}` : "";
  return [`Then ${count(after.eligible)} of ${plural(after.servers.length, "server")} ${verb} requests${among}${why}.`];
}

/** What speaks against a change after which the service is as given. @param {Service} after */
function endangered(after) {
  if (after.eligible === 0) return `No server of ${after.name} receives requests then: they wait or are refused.`;
  if (after.tier !== "try_all") return null;
  return `No server of ${after.name} is ready then: Weir tries all that are not drained (${count(after.eligible)}).`;
}

/** @param {{seconds: number, requests: number} | undefined} window */
function received(window) {
  const rate = perSecondOf(window, window?.requests);
  return rate == null ? "" : ` In the last 10 s it received ${figure(rate)} requests/s.`;
}

/** The servers that receive requests now, without one.
 * @param {ServiceRow} service @param {ServerRow} row */
function othersOf(service, row) {
  return service.servers.filter((one) => one !== row && one.server.eligible && one.server.weight > 0);
}

/** How full servers are.
 * @param {ServerRow[]} others */
function used(others) {
  if (others.some(({ server }) => server.in_flight_max == null)) return "";
  const inFlight = others.reduce((sum, { server }) => sum + server.in_flight, 0);
  const limit = others.reduce((sum, { server }) => sum + (server.in_flight_max ?? 0), 0);
  return `; ${count(inFlight)} of at most ${count(limit)} are in flight there`;
}

/** @param {ServiceRow} service */
function alone({ service }) {
  return `No other server of ${service.name} receives requests now. Unless another zone or a backup takes over, its requests are refused.`;
}

/** @param {ServiceRow} service @param {ServerRow} row @param {Service | null} [after] @returns {Effect} */
export function putBack(service, row, after = null) {
  const { state, weight } = row.server;
  const sentences = [
    weight === 0
      ? "Its weight is 0: it receives no new requests."
      : `It receives new requests of ${service.service.name} again, if it is healthy.`,
  ];
  if (after) sentences.push(...eligibleAfter(service.service, after));
  if (state === "maintenance") sentences.push("Its health checks start again.");
  return { verb: `Set ${row.server.address} to ready`, sentences, warning: null };
}

/** @param {ServiceRow} service @param {ServerRow} row @param {number} weight @param {Service | null} [after]
 * @returns {Effect} */
export function weighed(service, row, weight, after = null) {
  const others = othersOf(service, row);
  const total = others.reduce((sum, { server }) => sum + server.weight, weight);
  return {
    verb: `Set the weight to ${weight}`,
    sentences: [
      `Its weight changes from ${row.server.weight} to ${weight}.`,
      weight === 0
        ? "It receives no new requests; those in flight are finished."
        : `That is ${share(weight, total)} of its weight and those of the other servers that receive requests now.`,
      ...(after ? eligibleAfter(service.service, after) : []),
      SERVER_LASTS,
    ],
    warning: after ? endangered(after) : weight === 0 && others.length === 0 ? alone(service) : null,
  };
}

/** What happens when a service's maintenance is switched. The file and the operator count separately.
 * @param {ServiceRow} row @param {boolean} on @returns {Effect} */
export function maintained({ service, traffic, maintenance }, on) {
  const sentences = on
    ? [
        `Weir answers new requests of ${service.name} with 503.${received(newest(traffic))}`,
        "Requests in flight are finished. Health checks continue.",
        SERVICE_LASTS,
      ]
    : maintenance?.in_file
      ? ["The configuration file keeps it in maintenance, so Weir still answers with 503."]
      : [`Requests of ${service.name} reach its servers again.`];
  return { verb: on ? "Start maintenance" : "End maintenance", sentences, warning: null };
}
