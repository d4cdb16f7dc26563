// What an operator's action on a server will do, said before it is done. No DOM.

import { count, plural, rate, share } from "./figures.js";

/** @typedef {import("./services.js").ServiceRow} ServiceRow */
/** @typedef {import("./services.js").ServerRow} ServerRow */
/**
 * @typedef {object} Effect
 * @property {string} verb The label of the button.
 * @property {string[]} sentences What happens.
 * @property {string | null} warning What speaks against it.
 */

/** @param {ServerRow} row */
export function rateOf(row) {
  return row.window && row.window.seconds > 0 ? row.window.requests / row.window.seconds : 0;
}

/** What happens when a server gets no new requests any more.
 * @param {ServiceRow} service @param {ServerRow} row @param {"drain" | "maintenance"} state @returns {Effect} */
export function takenOut(service, row, state) {
  const others = service.servers.filter((one) => one !== row && one.server.eligible && one.server.weight > 0);
  const moved = rateOf(row);
  const name = row.server.address;
  const sentences = [];
  if (others.length === 0) {
    sentences.push(`${service.service.name} has no other server that receives requests.`);
  } else if (moved > 0) {
    sentences.push(`${rate(moved)} requests/s move to ${plural(others.length, "server")}${used(others)}.`);
  } else {
    sentences.push(`It receives no requests at present, so none move to the other ${plural(others.length, "server")}.`);
  }
  sentences.push(
    row.server.in_flight > 0
      ? `${plural(row.server.in_flight, "request")} in flight there will be finished.`
      : "No request is in flight there.",
  );
  if (state === "maintenance") sentences.push("Its health checks stop, too.");
  sentences.push(
    "The change survives reloads and upgrades, and ends when the process stops or an operator sets it to ready.",
  );
  return {
    verb: state === "drain" ? `Drain ${name}` : `Put ${name} into maintenance`,
    sentences,
    warning: risk(service, row, others),
  };
}

/** How full the servers are that take over.
 * @param {ServerRow[]} others */
function used(others) {
  const limited = others.filter(({ server }) => server.in_flight_max != null);
  if (limited.length !== others.length) return "";
  const inFlight = limited.reduce((sum, { server }) => sum + server.in_flight, 0);
  const limit = limited.reduce((sum, { server }) => sum + (server.in_flight_max ?? 0), 0);
  return `, which use ${inFlight ? share(inFlight, limit) : "none"} of their limit`;
}

/** @param {ServiceRow} service @param {ServerRow} row @param {ServerRow[]} others */
function risk(service, row, others) {
  if (others.length === 0) {
    return `Every request of ${service.service.name} will be refused until a server is ready.`;
  }
  // What moves keeps the peers' response times, so their present concurrency grows with the rate.
  const before = others.reduce((sum, one) => sum + rateOf(one), 0);
  const limit = others.reduce((sum, { server }) => sum + (server.in_flight_max ?? Infinity), 0);
  const inFlight = others.reduce((sum, { server }) => sum + server.in_flight, 0);
  const after = before > 0 ? (inFlight * (before + rateOf(row))) / before : inFlight;
  if (after > limit * 0.8) {
    return `The others would use about ${count(after)} of their ${count(limit)} concurrent requests; more will wait or be refused.`;
  }
  return null;
}

/** @param {ServiceRow} service @param {ServerRow} row @returns {Effect} */
export function putBack(service, row) {
  const sentences = [`It receives new requests of ${service.service.name} again, if it is healthy.`];
  if (row.server.state === "maintenance") sentences.push("Its health checks start again first.");
  return { verb: `Set ${row.server.address} to ready`, sentences, warning: null };
}

/** @param {ServiceRow} service @param {ServerRow} row @param {number | null} weight null: the configured weight
 * @returns {Effect} */
export function weighed(service, row, weight) {
  const next = weight ?? row.server.weight_configured;
  const total = service.servers.reduce(
    (sum, { server }) => sum + (server === row.server ? next : server.eligible ? server.weight : 0),
    0,
  );
  const sentences = [
    `Its weight changes from ${row.server.weight} to ${next}${weight == null ? ", as configured" : ""}.`,
  ];
  sentences.push(
    next === 0
      ? "It receives no new requests; those in flight are finished."
      : `Its share of the weights of eligible servers will be ${share(next, total)}.`,
  );
  const others = service.servers.filter((one) => one !== row && one.server.eligible && one.server.weight > 0);
  return { verb: `Set the weight to ${next}`, sentences, warning: next === 0 ? risk(service, row, others) : null };
}
