// The map of traffic: listeners, services, zones or servers as columns of nodes, with links as wide as the rate.
// `routed` is the one place that says how listeners reach services; it will read requests by route once the API
// counts them. No DOM.

import { isTrouble, worstOf } from "./condition.js";
import { newest, requestRate } from "./traffic.js";

/** @typedef {import("./condition.js").Level} Level */
/** @typedef {import("../types.js").Node} Node */
/** @typedef {{from: string, to: string, rate: number | null, level: Level}} Link rate null: not counted by the API. */
/** @typedef {{title: string, nodes: Node[]}} Column */
/** @typedef {{columns: Column[], links: Link[]}} Flow */

const NODES_MAX = 9;

/** @param {Traffic | undefined} traffic @param {ServiceRow[]} services
 * @param {unknown} configuration @returns {Flow} */
export function flow(traffic, services, configuration) {
  const listeners = (traffic?.listeners ?? []).map((one) =>
    node({
      key: "l " + one.name,
      label: one.name,
      rate: requestRate(newest(one)),
    }),
  );
  const serviceNodes = services.map((one) =>
    node({
      key: "s " + one.service.name,
      label: one.service.name,
      rate: requestRate(newest(one.traffic)),
      level: one.condition.level,
      word: isTrouble(one.condition.level) ? one.condition.word : "",
      service: one.service.name,
    }),
  );
  const ends = endsOf(services);
  const links = [...routed(listeners, serviceNodes, configuration), ...ends.links];
  return gathered({
    columns: [
      { title: "Listeners", nodes: listeners },
      { title: "Services", nodes: serviceNodes },
      { title: ends.title, nodes: ends.nodes },
    ],
    links,
  });
}

/** @param {Partial<Node> & {key: string, label: string, rate: number}} given @returns {Node} */
function node(given) {
  return { level: "fine", word: "", service: null, stands: 1, ...given };
}

/** Links from listeners to services. The API counts requests by listener and by service, not by both. The rate is
 * known where only one busy listener can reach a service; elsewhere the link is drawn without a width.
 * @param {Node[]} listeners @param {Node[]} services
 * @param {unknown} configuration undefined: not here yet; null: it cannot be read, so every listener may reach every service
 * @returns {Link[]} */
export function routed(listeners, services, configuration) {
  if (configuration === undefined) return [];
  const reach = reaches(configuration);
  /** @type {Link[]} */
  const links = [];
  for (const service of services) {
    const able = listeners.filter((one) => reach(one.label, service.label));
    const busy = able.filter((one) => one.rate > 0);
    for (const from of able) {
      const known = busy.length === 1 || service.rate === 0;
      const width = service.rate === 0 || from.rate === 0 ? 0 : service.rate;
      links.push({ from: from.key, to: service.key, rate: known || from.rate === 0 ? width : null, level: "fine" });
    }
  }
  return links;
}

/** Whether a listener's requests can reach a service, by the configuration. Without one every listener can.
 * @param {any} configuration @returns {(listener: string, service: string) => boolean} */
function reaches(configuration) {
  if (!configuration || !Array.isArray(configuration.routes)) return () => true;
  /** @type {Set<string>} */
  const pairs = new Set();
  const http = (configuration.listeners ?? []).filter((/** @type {any} */ one) => one.protocol !== "tcp");
  for (const route of configuration.routes) {
    const split = route.action?.forward?.split ?? [];
    const names = route.listeners?.length ? route.listeners : http.map((/** @type {any} */ one) => one.name);
    for (const name of names) for (const { service } of split) if (service) pairs.add(JSON.stringify([name, service]));
  }
  for (const one of configuration.listeners ?? []) {
    if (one.service) pairs.add(JSON.stringify([one.name, one.service]));
    for (const service of Object.values(one.server_names ?? {})) pairs.add(JSON.stringify([one.name, service]));
  }
  return (listener, service) => pairs.has(JSON.stringify([listener, service]));
}

const WORST = /** @type {const} */ (["fine", "disabled", "warn", "bad"]);
/** @param {Level} a @param {Level} b @returns {Level} */
const worse = (a, b) => WORST[Math.max(WORST.indexOf(a), WORST.indexOf(b))];

/** The right-hand column: zones, or servers where there are few of them or no zones. Traffic to servers in trouble has
 * a link of its own, so that its width is the rate that is affected.
 * @param {ServiceRow[]} services */
function endsOf(services) {
  const all = services.flatMap((one) => one.servers);
  const zoned = all.some(({ server }) => server.zone != null);
  const byServer = all.length <= NODES_MAX || !zoned;
  /** @type {Map<string, {node: Node, rows: ServerRow[]}>} */
  const ends = new Map();
  /** @type {Map<string, Link>} */
  const links = new Map();
  for (const service of services) {
    for (const row of service.servers) {
      const label = byServer ? row.server.address : (row.server.zone ?? "no zone");
      const key = "e " + label;
      const moved = requestRate(row.window);
      const end = ends.get(key) ?? { node: node({ key, label, rate: 0 }), rows: [] };
      end.node.rate += moved;
      end.rows.push(row);
      ends.set(key, end);
      const { level } = row.condition;
      const troubled = isTrouble(level);
      const from = "s " + service.service.name;
      const place = [from, key, troubled ? level : ""].join("\n");
      const link = links.get(place) ?? { from, to: key, rate: 0, level: troubled ? level : "fine" };
      link.rate = (link.rate ?? 0) + moved;
      links.set(place, link);
    }
  }
  const nodes = [...ends.values()].map(({ node: one, rows }) => {
    const worst = worstOf(rows.filter(({ condition }) => isTrouble(condition.level)));
    if (!worst) return one;
    const all = worst.same === rows.length;
    return {
      ...one,
      level: all ? worst.condition.level : /** @type {Level} */ ("warn"),
      word: rows.length === 1 ? worst.condition.word : `${worst.same} ${worst.condition.word}`,
    };
  });
  const sorted = nodes.sort((a, b) => a.label.localeCompare(b.label, "en", { numeric: true }));
  return { title: byServer ? "Servers" : "Zones", nodes: sorted, links: [...links.values()] };
}

/** Joins the quietest healthy nodes of a long column into one.
 * @param {Flow} whole @returns {Flow} */
export function gathered({ columns, links }) {
  /** @type {Map<string, string>} */
  const into = new Map();
  const short = columns.map(({ title, nodes }) => {
    if (nodes.length <= NODES_MAX) return { title, nodes };
    const ranked = [...nodes].sort((a, b) => WORST.indexOf(b.level) - WORST.indexOf(a.level) || b.rate - a.rate);
    const kept = new Set(ranked.slice(0, NODES_MAX - 1));
    const rest = ranked.slice(NODES_MAX - 1);
    const key = "+ " + title;
    for (const one of rest) into.set(one.key, key);
    const other = node({
      key,
      label: `${rest.length} more`,
      rate: rest.reduce((sum, one) => sum + one.rate, 0),
      level: rest.reduce((level, one) => worse(level, one.level), /** @type {Level} */ ("fine")),
      stands: rest.length,
    });
    return { title, nodes: [...nodes.filter((one) => kept.has(one)), other] };
  });
  if (into.size === 0) return { columns: short, links };
  /** @type {Map<string, Link>} */
  const joined = new Map();
  for (const link of links) {
    const from = into.get(link.from) ?? link.from;
    const to = into.get(link.to) ?? link.to;
    const place = [from, to, link.level].join("\n");
    const found = joined.get(place);
    if (found) {
      found.rate = found.rate == null || link.rate == null ? null : found.rate + link.rate;
    } else {
      joined.set(place, { ...link, from, to });
    }
  }
  return { columns: short, links: [...joined.values()] };
}
