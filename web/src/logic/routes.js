// Routes of the configuration in the order in which they match, with what is known of their traffic. The API counts
// requests by service, not by route: a route has a rate only if no other one leads to its services. No DOM.

import { LEVELS } from "./condition.js";
import { count, duration, share } from "./figures.js";
import { newest, requestRate } from "./traffic.js";

/** @param {any} configuration @param {ServiceRow[]} services @param {import("../api.js").Maintenance[]} maintenance
 * @returns {Route[]} */
export function routesOf(configuration, services, maintenance) {
  const rows = new Map(services.map((row) => [row.service.name, row]));
  const drafts = [...list(configuration?.routes).map(httpRoute), ...list(configuration?.listeners).flatMap(tcpRoutes)];
  /** How many routes lead to each service. @type {Map<string, number>} */
  const leading = new Map();
  for (const { split } of drafts)
    for (const name of new Set(split.flatMap((one) => one.service ?? [])))
      leading.set(name, (leading.get(name) ?? 0) + 1);
  return drafts.map(({ split, mirrored, ...draft }, place) => {
    const weights = split.reduce((sum, one) => sum + one.weight, 0);
    const own = split.flatMap(({ service }) => rows.get(service) ?? []);
    const shared = split.find(({ service }) => service != null && (leading.get(service) ?? 0) > 1);
    const refuses = split.some(({ deny }) => deny != null);
    const windows = own.map((row) => newest(row.traffic));
    const counted = split.length > 0 && !shared && !refuses && windows.every((one) => one != null);
    const sum = (/** @type {(window: import("../api.js").ServiceWindow) => number} */ of) =>
      counted ? windows.reduce((total, one) => total + (one ? of(one) : 0), 0) : null;
    const on = maintenance.find((one) => one.kind === "route" && one.name === draft.name && one.on);
    return {
      ...draft,
      key: `${place} ${draft.name}`,
      services: split.map(({ service, deny, weight }) => ({
        name: service ?? `answers ${deny}`,
        share: split.length > 1 ? share(weight, weights) : "",
        known: service != null && rows.has(service),
      })),
      more: mirrored.length ? [...draft.more, `mirrored to ${mirrored.join(", ")}`] : draft.more,
      condition: on ? IN_MAINTENANCE : worst(own),
      rate: sum(requestRate),
      failed: sum((one) => one.failed),
      requests: sum((one) => one.requests),
      uncounted: shared
        ? `${count(leading.get(shared.service) ?? 0)} routes lead to ${shared.service}`
        : split.length > 0 && !refuses
          ? ""
          : "requests that are not forwarded are not counted by route",
    };
  });
}

/** @type {Condition} */
const IN_MAINTENANCE = {
  level: "disabled",
  word: "maintenance",
  why: "Weir answers the requests of this route with 503.",
};

/** @param {ServiceRow[]} rows */
function worst(rows) {
  const sorted = rows
    .map(({ condition }) => condition)
    .sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
  return sorted[0] ?? null;
}

/** @param {unknown} value @returns {any[]} */
function list(value) {
  return Array.isArray(value) ? value : [];
}

/** @param {any} route */
function httpRoute(route) {
  const { forward, ...other } = route.action ?? {};
  return {
    name: String(route.name),
    listeners: list(route.listeners).join(", ") || "all",
    match: matchOf(route),
    action: forward ? "" : actionOf(other),
    split: list(forward?.split),
    mirrored: list(forward?.mirror).map((one) => String(one.service)),
    more: moreOf(route),
  };
}

/** A listener for TCP leads to one service, or to several by the server name of the client's TLS.
 * @param {any} listener */
function tcpRoutes(listener) {
  const to = (/** @type {string} */ match, /** @type {any} */ service) => ({
    name: `tcp ${listener.name}`,
    listeners: String(listener.name),
    match,
    action: "",
    split: [{ service: String(service), weight: 1 }],
    mirrored: [],
    more: [],
  });
  const named = Object.entries(listener.server_names ?? {}).map(([name, service]) =>
    to(`server name ${name}`, service),
  );
  return listener.service
    ? [...named, to(named.length ? "any other server name" : "any connection", listener.service)]
    : named;
}

/** @param {any} route */
function matchOf(route) {
  const { host, path, method } = route;
  const place =
    path?.exact != null
      ? `${path.exact} only`
      : path?.prefix != null && path.prefix !== "/"
        ? `${path.prefix} and below`
        : "";
  const pairs = (/** @type {string} */ what, /** @type {any} */ all) => list(all).map((one) => `${what} ${pair(one)}`);
  const parts = [
    method,
    host,
    place,
    ...pairs("header", route.header),
    ...pairs("query", route.query),
    ...list(route.conditions).map(String),
  ];
  return parts.filter(Boolean).join(" · ") || "any request";
}

/** @param {any} one A name and a value, in one of the forms that the API has for them. */
function pair(one) {
  if (Array.isArray(one)) return one.join(" = ");
  if (typeof one !== "object" || one === null) return String(one);
  return one.name != null ? `${one.name} = ${one.value}` : JSON.stringify(one);
}

/** @param {any} action */
function actionOf(action) {
  const [kind, of] = Object.entries(action)[0] ?? ["unknown", null];
  const setting = /** @type {any} */ (of);
  if (kind === "deny") return `answers ${setting}`;
  if (kind === "respond") return `answers ${setting?.status}, ${setting?.content_type}`;
  if (kind !== "redirect") return kind;
  const path = setting?.path?.prefix ?? setting?.path?.whole;
  const to = Object.entries({ scheme: setting?.scheme, host: setting?.host, port: setting?.port, path }).flatMap(
    ([name, value]) => (value == null ? [] : `${name} ${value}`),
  );
  return `redirects (${setting?.status}) to ${to.join(", ")}`;
}

/** @param {any} route */
function moreOf(route) {
  const limits = list(route.rate_limits).map(
    (one) =>
      `at most ${count(one.requests)} requests per ${duration(one.per_ms)}, by ${typeof one.by === "string" ? one.by : pair(one.by)}`,
  );
  const who = route.authenticate;
  return [
    ...limits,
    ...(who == null ? [] : [`requires authentication${typeof who === "string" ? ` by ${who}` : ""}`]),
    ...(route.cors == null ? [] : ["CORS"]),
  ];
}
