// Events, from all places that know a moment: changes that the balancer has seen, receipts of reloads, and the number of
// ready servers in the history, which reaches back further. No DOM.

import { duration, plural } from "./figures.js";
import { linesOf } from "./history.js";
import { findingKey, levelOf } from "./findings.js";

/** @typedef {"bad" | "warn" | "good" | "change" | "idle"} Kind */
/** @typedef {import("../types.js").Event} Event */
/** @typedef {{list: Event[], leftOut: number}} Events The newest first, and how many older ones are not listed. */

const EVENTS_MAX = 200;
const SHOWN_NAMES = 3;
/** A change is seen within a second of the receipt of its reload. */
const RECEIPT_MS = 3000;

/** @param {object} input
 * @param {import("../api.js").Reload[]} input.reloads @param {import("../api.js").Changes | undefined} input.changes
 * @param {Finding[]} input.findings
 * @param {Frame} input.frame @param {boolean} input.live Whether the frame ends now.
 * @returns {Events} */
export function events({ reloads, changes: answer, findings, frame, live }) {
  const changes = answer?.changes ?? [];
  // What a reload changed is in its receipt, unless the receipt was that of another process.
  const received = reloads.map((one) => Date.parse(one.at));
  const known = (/** @type {number} */ at) => received.some((one) => Math.abs(one - at) < RECEIPT_MS);
  const changed = changes
    .filter(({ kind, at_unix_ms: at }) => kind !== "configuration" || !known(at))
    .map((change) => changeEvent(change, findings));
  const all = [...changed, ...reloads.map(reloadEvent), ...readyEvents(frame, changed, live)]
    .filter(({ at }) => Number.isFinite(at))
    .sort((a, b) => b.at - a.at);
  const list = all.slice(0, EVENTS_MAX);
  return { list, leftOut: all.length - list.length + (answer?.left_out ?? 0) };
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
  return { key, at, kind: "change", title: `Configuration ${reload.generation} in force`, detail: summary(reload), to };
}

/** @param {import("../api.js").Reload} reload */
export function summary(reload) {
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

/** @param {import("../api.js").Change} change @param {Finding[]} findings @returns {Event} */
function changeEvent({ at_unix_ms: at, kind, effect, service, finding, what }, findings) {
  const full = finding && named(finding, at, findings);
  // Of a finding that is no longer listed only the rule and the subject are known.
  const serious = !finding ? "bad" : full ? levelOf(full.severity) : "warn";
  const key = `${at} ${what}`;
  const event = {
    key,
    at,
    kind: /** @type {Kind} */ (effect === "trouble" ? serious : effect === "recovery" ? "good" : "change"),
    title: what,
    detail: [full?.severity, finding?.rule, full?.namespace && `network namespace ${full.namespace}`]
      .filter(Boolean)
      .join(" · "),
  };
  if (finding) return { ...event, to: { page: "findings", name: findingKey(full ?? finding) } };
  if (service != null) return { ...event, to: { page: "service", name: service } };
  return { ...event, to: { page: kind === "process" ? "host" : "services", name: null } };
}

/** The finding that a change names. The same rule may say the same of sockets in several network namespaces: then it is
 * the finding that began or was last seen nearest to the change.
 * @param {import("../api.js").FindingName} name @param {number} at @param {Finding[]} findings */
function named({ rule, subject }, at, findings) {
  const distance = (/** @type {Finding} */ one) =>
    Math.min(Math.abs(one.first_seen_unix_ms - at), Math.abs(one.last_seen_unix_ms - at));
  return findings
    .filter((one) => one.rule === rule && one.subject === subject)
    .sort((a, b) => distance(a) - distance(b))[0];
}

/** Times with fewer ready servers than before, where no change names these servers.
 * @param {Frame} frame @param {Event[]} changed @param {boolean} live
 * @returns {Event[]} */
function readyEvents(frame, changed, live) {
  return linesOf(frame, "service").flatMap((line) => {
    const name = line.service ?? "";
    // A change that is about the servers of many services is listed without their names.
    const about = (/** @type {Event["to"]} */ to) =>
      to.page === "services" || (to.page === "service" && to.name === name);
    const known = changed.filter((one) => about(one.to)).map((one) => one.at);
    return dips(frame, line)
      .filter(({ at }) => !known.some((one) => Math.abs(one - at) < 2 * frame.stepMs + 1500))
      .map(({ at, from, lowest, end }) => ({
        key: `ready ${name} ${at}`,
        at,
        kind: /** @type {Kind} */ (lowest === 0 ? "bad" : "warn"),
        title: `${name}: ${lowest === 0 ? "no server ready" : `${plural(lowest, "server")} ready, ${from} before`}`,
        detail: end == null ? (live ? "until now" : "until the end of this span") : `for ${duration(end - at)}`,
        to: { page: "service", name },
      }));
  });
}

/** From each fall of the number of ready servers until it is back, or is lower at the end. Having no server ends with the
 * first: a reload may have removed the others.
 * @param {Frame} frame @param {Line} line */
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
 * @param {Frame} frame @param {Column} column
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
