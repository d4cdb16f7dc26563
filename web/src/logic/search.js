// Finds services, servers, routes, causes, findings and requests by a part of their names. No DOM.

import { findingKey } from "./findings.js";
import { requestKey } from "./story.js";

/** @typedef {import("../types.js").Item} Item */
/** @typedef {import("../types.js").Given} Given */

const SHOWN_MAX = 12;

/** @param {Given} given @returns {Item[]} */
export function items({ services, findings, configuration, causes, requests, ended, pages }) {
  /** @type {(item: Omit<Item, "words">, ...words: (string | null | undefined)[]) => Item} */
  const item = (given, ...words) => ({
    ...given,
    words: [given.label, ...words].flatMap((one) => (typeof one === "string" ? one.toLowerCase() : [])),
  });
  const listed = Array.isArray(configuration?.routes) ? configuration.routes : [];
  const routes = listed.filter((/** @type {any} */ one) => one != null && typeof one === "object");
  return [
    ...services.map(({ service, condition }) =>
      item({ kind: "service", label: service.name, detail: condition.word, page: "service", name: service.name }),
    ),
    ...services.flatMap(({ service, servers }) =>
      servers.map(({ server, condition }) => {
        const name = server.name === server.address ? "" : `${server.name} · `;
        const detail = `${name}${service.name} · ${condition.word}`;
        const to = { page: "service", name: service.name };
        return item({ kind: "server", label: server.address, detail, ...to }, server.name);
      }),
    ),
    ...findings.map((one) =>
      item(
        { kind: "finding", label: one.what, detail: one.severity, page: "findings", name: findingKey(one) },
        one.rule,
        one.subject,
        one.namespace,
      ),
    ),
    ...routes.map((/** @type {any} */ one) => {
      const { prefix, exact } = one.path ?? {};
      const detail = [one.method, one.host, exact ?? prefix].filter((part) => typeof part === "string").join(" ");
      return item({ kind: "route", label: String(one.name), detail, page: "routes", name: String(one.name) }, detail);
    }),
    ...[...requests, ...ended].map((one) => {
      const label = one.request_id ?? one.client ?? "";
      const detail = [one.method ?? "TCP", one.path, one.server, "cause" in one && one.cause].filter(Boolean).join(" ");
      return item({ kind: "request", label, detail, page: "requests", name: requestKey(one) }, one.path, one.client);
    }),
    ...causes.map((one) =>
      item({ kind: "cause", label: one.name, detail: one.summary, page: "causes", name: one.name }, one.summary),
    ),
    ...pages.map((page) => item({ kind: "page", label: page, detail: "", page, name: null })),
  ];
}

/** Those that contain every word of the text: whole names first, then beginnings of names.
 * @param {Item[]} all @param {string} text @returns {{shown: Item[], more: number}} */
export function found(all, text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return { shown: [], more: 0 };
  const matching = all
    .map((item) => ({ item, rank: rank(item.words, wanted) }))
    .filter(({ rank }) => Number.isFinite(rank))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
  return { shown: matching.slice(0, SHOWN_MAX), more: Math.max(0, matching.length - SHOWN_MAX) };
}

/** The sum over the wanted words of how well each is found; Infinity if one is not.
 * @param {string[]} words @param {string[]} wanted */
function rank(words, wanted) {
  let sum = 0;
  for (const part of wanted) {
    const ranks = words.map((word, place) => {
      const at = word.indexOf(part);
      if (at < 0) return Infinity;
      // Names come before what else is known of a thing.
      return (word === part ? 0 : at === 0 ? 1 : /[^a-z0-9]/.test(word[at - 1]) ? 2 : 3) + (place > 0 ? 4 : 0);
    });
    sum += Math.min(...ranks);
  }
  return sum;
}
