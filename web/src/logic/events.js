// Events, from all places that know a moment: reloads, findings, the number of ready servers in the history, and changes
// between two answers that the page has seen itself. No DOM.

import { count, duration, plural } from "./figures.js";
import { linesOf } from "./history.js";
import { findingKey, isSerious } from "./findings.js";

/** @typedef {"bad" | "warn" | "good" | "change"} Kind */
/**
 * @typedef {object} Event
 * @property {string} key Stays the same while the text changes.
 * @property {number} at @property {Kind} kind @property {string} title @property {string} detail
 * @property {{page: string, name: string | null}} to
 */

const EVENTS_MAX = 200;
const SHOWN_NAMES = 3;

/** @param {object} input
 * @param {import("../api.js").Reload[]} input.reloads @param {import("../api.js").Finding[]} input.findings
 * @param {import("./history.js").Frame} input.frame @param {Event[]} input.seen @param {number | null} input.started
 * @returns {Event[]} The newest first. */
export function events({ reloads, findings, frame, seen, started }) {
  /** @type {Event[]} */
  const all = [...seen, ...reloads.map(reloadEvent), ...findings.flatMap(findingEvents), ...readyEvents(frame, seen)];
  if (started != null) {
    all.push({
      key: "start",
      at: started,
      kind: "change",
      title: "This process started",
      detail: "",
      to: { page: "host", name: null },
    });
  }
  return all
    .filter(({ at }) => Number.isFinite(at))
    .sort((a, b) => b.at - a.at)
    .slice(0, EVENTS_MAX);
}

/** @param {import("../api.js").Reload} reload @returns {Event} */
function reloadEvent(reload) {
  const to = { page: "reloads", name: null };
  const at = Date.parse(reload.at);
  const key = `reload ${reload.at}`;
  if (reload.result === "refused") {
    const why = (reload.why ?? "").split("\n")[0];
    return { key, at, kind: "bad", title: "A reload was refused", detail: why, to };
  }
  if (reload.result === "unchanged") {
    return { key, at, kind: "change", title: "Reload without a change", detail: `by ${reload.trigger}`, to };
  }
  return { key, at, kind: "change", title: `Configuration ${reload.generation} in force`, detail: changes(reload), to };
}

/** @param {import("../api.js").Reload} reload */
export function changes(reload) {
  if (!reload.changes) return `by ${reload.trigger}`;
  const { settings, ...kinds } = reload.changes;
  const parts = settings.length ? [firstOf(settings)] : [];
  for (const [kind, change] of Object.entries(kinds)) {
    if (change.added.length) parts.push(`${kind} added: ${firstOf(change.added)}`);
    if (change.removed.length) parts.push(`${kind} removed: ${firstOf(change.removed)}`);
    if (change.changed.length) parts.push(`${kind} changed: ${firstOf(change.changed.map((one) => one.name))}`);
  }
  return parts.join("; ") || `by ${reload.trigger}`;
}

/** @param {string[]} names */
function firstOf(names) {
  const more = names.length > SHOWN_NAMES ? ` and ${names.length - SHOWN_NAMES} more` : "";
  return names.slice(0, SHOWN_NAMES).join(", ") + more;
}

/** @param {import("../api.js").Finding} finding @returns {Event[]} */
function findingEvents(finding) {
  if (!isSerious({ ...finding, is_present: true })) return [];
  const key = `${findingKey(finding)} ${finding.first_seen_unix_ms}`;
  const to = { page: "findings", name: findingKey(finding) };
  /** @type {Event[]} */
  const all = [
    {
      key,
      at: finding.first_seen_unix_ms,
      kind: finding.severity === "critical" ? "bad" : "warn",
      title: finding.what,
      detail: `${finding.rule}, ${finding.certainty}`,
      to,
    },
  ];
  if (!finding.is_present) {
    const lasted = duration(finding.last_seen_unix_ms - finding.first_seen_unix_ms);
    all.push({
      key: `${key} ended`,
      at: finding.last_seen_unix_ms,
      kind: "good",
      title: `${finding.subject}: ${finding.rule} ended`,
      detail: `after ${lasted}`,
      to,
    });
  }
  return all;
}

/** Times with fewer ready servers than before, where the page has not seen which servers these were.
 * @param {import("./history.js").Frame} frame @param {Event[]} seen @returns {Event[]} */
function readyEvents(frame, seen) {
  return linesOf(frame, "service").flatMap((line) => {
    const name = line.service ?? "";
    const known = seen.filter((one) => one.to.page === "service" && one.to.name === name).map((one) => one.at);
    return dips(frame, line)
      .filter(({ at }) => !known.some((one) => Math.abs(one - at) < 2 * frame.stepMs + 1500))
      .map(({ at, from, lowest, end }) => ({
        key: `ready ${name} ${at}`,
        at,
        kind: /** @type {Kind} */ (lowest === 0 ? "bad" : "warn"),
        title: `${name}: ${lowest === 0 ? "no server" : `only ${lowest} of ${plural(from, "server")}`} ready`,
        detail: end == null ? "until now" : `for ${duration(end - at)}`,
        to: { page: "service", name },
      }));
  });
}

/** From each fall of the number of ready servers until it is back, or is lower at the end. Having no server ends with the
 * first: a reload may have removed the others.
 * @param {import("./history.js").Frame} frame @param {import("./history.js").Line} line */
function dips(frame, line) {
  /** @type {{at: number, from: number, lowest: number, end: number | null}[]} */
  const all = [];
  for (const { at, from, to } of steps(frame, line.columns.servers_ready ?? [])) {
    const open = all.at(-1);
    if (open && open.end == null) {
      open.lowest = Math.min(open.lowest, to);
      if (to >= open.from || (open.lowest === 0 && to > 0)) open.end = at;
    } else if (to < from) {
      all.push({ at, from, lowest: to, end: null });
    }
  }
  return all;
}

/** Moments at which a level changed. A step that lasts for one row only counts as well: a server that failed its checks
 * once was away.
 * @param {import("./history.js").Frame} frame @param {import("./history.js").Column} column
 * @returns {{at: number, from: number, to: number}[]} */
function steps(frame, column) {
  const changes = [];
  let before = null;
  for (let row = 0; row < column.length; row += 1) {
    const value = column[row];
    if (value == null) continue;
    if (before != null && before !== value) changes.push({ at: frame.ended[row], from: before, to: value });
    before = value;
  }
  return changes;
}

const PAST_MAX = 100;

/** Findings of earlier answers with the newest ones in their place: the API forgets a finding a minute after its end.
 * @param {import("../api.js").Finding[]} before @param {import("../api.js").Finding[]} findings
 * @returns {import("../api.js").Finding[]} */
export function remembered(before, findings) {
  const keyOf = (/** @type {import("../api.js").Finding} */ one) => `${findingKey(one)} ${one.first_seen_unix_ms}`;
  const fresh = new Set(findings.map(keyOf));
  // What is gone from the answers without an end in between has ended as well.
  const old = before.filter((one) => !fresh.has(keyOf(one))).map((one) => ({ ...one, is_present: false }));
  return [...findings, ...old].slice(0, PAST_MAX);
}

/** What changed between two answers of /api/v1/services.
 * @param {import("../api.js").Service[]} before @param {import("../api.js").Service[]} after @param {number} at
 * @returns {Event[]} */
export function differences(before, after, at) {
  /** @type {Event[]} */
  const all = [];
  const old = new Map(before.map((one) => [one.name, one]));
  for (const service of after) {
    const known = old.get(service.name);
    if (!known) continue;
    const servers = new Map(known.servers.map((one) => [one.address, one]));
    const to = { page: "service", name: service.name };
    /** @type {Map<string, {kind: Kind, addresses: string[]}>} */
    const changed = new Map();
    for (const server of service.servers) {
      const was = servers.get(server.address);
      const change = was && changeOf(was, server);
      if (!change) continue;
      const found = changed.get(change.text) ?? { kind: change.kind, addresses: [] };
      found.addresses.push(server.address);
      changed.set(change.text, found);
    }
    for (const [text, { kind, addresses }] of changed) {
      const who = addresses.length === 1 ? addresses[0] : plural(addresses.length, "server");
      all.push({
        key: `seen ${at} ${service.name} ${text}`,
        at,
        kind,
        title: `${who} of ${service.name} ${text}`,
        detail: `${count(service.eligible)} of ${plural(service.servers.length, "server")} receive requests`,
        to,
      });
    }
  }
  return all;
}

/** @param {import("../api.js").Server} was @param {import("../api.js").Server} is
 * @returns {{text: string, kind: Kind} | null} */
function changeOf(was, is) {
  if (was.state !== is.state) {
    const text = { ready: "set to ready", drain: "drained", maintenance: "put into maintenance" }[is.state] ?? is.state;
    return { text, kind: is.state === "ready" ? "good" : "change" };
  }
  if (was.health !== is.health) {
    if (is.health === "down") return { text: "went down", kind: "bad" };
    if (was.health === "down") return { text: "came up again", kind: "good" };
  }
  if ((was.ejected_for_ms == null) !== (is.ejected_for_ms == null)) {
    return is.ejected_for_ms == null ? { text: "back from ejection", kind: "good" } : { text: "ejected", kind: "bad" };
  }
  if (was.weight !== is.weight) return { text: `set to weight ${is.weight}, before ${was.weight}`, kind: "change" };
  return null;
}
