// The fleet of balancers: its problems in words, and the state of each member. No DOM.

import { duration, plural } from "./figures.js";

/** @typedef {import("../api.js").Fleet} Fleet */
/** @typedef {import("../api.js").FleetMember} FleetMember */
/** @typedef {import("../api.js").FleetProblem} FleetProblem */
/** @typedef {import("../api.js").FleetSummary} FleetSummary */
/** @typedef {{own: boolean, condition: Condition} & FleetMember} Row */

/** Shorter problems are normal after a start: the finding on each begins at half a minute or later. */
const LASTING_S = 30;

/** @type {Record<string, (member: string) => string>} */
const SENTENCES = {
  not_joined: () => "This balancer is not a member of its fleet.",
  name_conflict: (member) => `Another process of the fleet has this balancer's name, ${member}.`,
  missing: (member) => `No member answers at ${member}.`,
  ignored: (member) => `The health checks of ${member} contradict this balancer's own and are ignored.`,
  not_sharing: (member) => `${member} does not share session ticket keys and certificates.`,
  not_exchanged: () => "Session ticket keys or certificates cannot be exchanged.",
};

/** A problem in words, with its reason and duration.
 * @param {FleetProblem} problem */
export function sentence({ kind, member, why, for_s }) {
  const said = SENTENCES[kind]?.(member ?? "a member") ?? `${kind}: ${member ?? "this balancer"}.`;
  const lasting = for_s >= LASTING_S;
  return { what: said, why: why ?? "", since: `for ${duration(for_s * 1000)}`, lasting };
}

/** One sentence on the fleet.
 * @param {FleetSummary} fleet */
export function lead({ error, name, members, members_in_zone: near }) {
  if (error != null || name == null) return "This balancer is not a member of its fleet at present.";
  return members === 1
    ? `${name} is the only live member of its fleet.`
    : `${name} is one of ${plural(members, "member")}, ${near} in its zone.`;
}

/** The members, this one first, each with what is wrong with it.
 * @param {Fleet} fleet @returns {Row[]} */
export function members({ own, members: others, problems, tickets }) {
  const behind = new Set(tickets?.behind);
  const about = new Map((problems ?? []).map((one) => [`${one.kind} ${one.member}`, one]));
  /** @param {FleetMember} member @returns {Condition} */
  const condition = ({ name }) => {
    const found = ["name_conflict", "ignored", "not_sharing"].map((kind) => about.get(`${kind} ${name}`));
    const problem = found.find((one) => one != null);
    if (problem) return { level: "warn", word: problem.kind.replaceAll("_", " "), why: sentence(problem).what };
    if (behind.has(name)) return { level: "fine", word: "new key", why: "It fetches the newest session ticket key." };
    return { level: "fine", word: "alive", why: "It answers." };
  };
  const all = others.map((member) => ({ ...member, own: false, condition: condition(member) }));
  return own ? [{ ...own, own: true, condition: condition(own) }, ...all] : all;
}
