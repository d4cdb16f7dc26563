import assert from "node:assert/strict";
import { test } from "node:test";
import { lead, members, sentence } from "../src/logic/fleet.js";

/** @param {string} name @param {object} [more] */
const member = (name, more) => ({ name, address: `${name}:7946`, zone: "a", host: name, ...more });

/** @param {string} kind @param {string | null} who @param {number} [seconds] */
const problem = (kind, who, seconds = 60) => ({ kind, member: who, why: null, for_s: seconds });

test("each kind of problem is a sentence, with its duration", () => {
  assert.deepEqual(sentence(/** @type {any} */ (problem("missing", "10.0.0.7:7946", 45))), {
    what: "No member answers at 10.0.0.7:7946.",
    why: "",
    since: "for 45\u00a0s",
    lasting: true,
  });
  const kinds = ["not_joined", "name_conflict", "missing", "ignored", "not_sharing", "not_exchanged"];
  const said = kinds.map((kind) => sentence(/** @type {any} */ (problem(kind, "b2", 5))));
  assert.equal(new Set(said.map(({ what }) => what)).size, kinds.length);
  assert.ok(said.every(({ lasting }) => !lasting));
  // A newer balancer has kinds that this page does not know.
  assert.equal(sentence(/** @type {any} */ (problem("other", null))).what, "other: this balancer.");
});

test("the members are listed with what is wrong with each", () => {
  const fleet = /** @type {any} */ ({
    own: member("b1"),
    members: [member("b0"), member("b2"), member("b3"), member("b4")],
    problems: [problem("ignored", "b2"), problem("missing", "b9:7946"), problem("not_sharing", "b3")],
    tickets: { behind: ["b3", "b4"] },
  });
  assert.deepEqual(
    members(fleet).map(({ name, own, condition }) => [name, own, condition.word]),
    [
      ["b1", true, "alive"],
      ["b0", false, "alive"],
      ["b2", false, "ignored"],
      ["b3", false, "not sharing"],
      ["b4", false, "new key"],
    ],
  );
  // An older balancer, which is not a member at present.
  assert.deepEqual(members(/** @type {any} */ ({ own: null, members: [], tickets: null })), []);
});

test("the lead says whether this balancer is a member, and of how many", () => {
  const said = (/** @type {object} */ summary) => lead(/** @type {any} */ (summary)).replaceAll("\u00a0", " ");
  assert.equal(
    said({ error: null, name: "b1", members: 3, members_in_zone: 2 }),
    "b1 is one of 3 members, 2 in its zone.",
  );
  assert.equal(
    said({ error: null, name: "b1", members: 1, members_in_zone: 1 }),
    "b1 is the only live member of its fleet.",
  );
  assert.match(said({ error: "in use", name: null, members: 0 }), /not a member/);
});
