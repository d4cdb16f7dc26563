import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceLine } from "../src/logic/discovery.js";

/** A line with plain spaces: figures have non-breaking ones.
 * @param {import("../src/api.js").ServiceSource} source */
const plain = (source) => ({ ...sourceLine(source), text: sourceLine(source).text.replaceAll("\u00a0", " ") });

/** @type {import("../src/api.js").ServiceSource} */
const QUIET = {
  source: "consul web",
  listed: 3,
  not_ready: 0,
  held: 0,
  flapping: 0,
  refused: 0,
  refused_examples: [],
  answered_ms_ago: 2000,
  changed_ms_ago: null,
  failing_for_ms: null,
  error: null,
  index: 42,
  restored: false,
};

test("where servers come from", () => {
  assert.deepEqual(plain(QUIET), {
    text: "From consul web: 3 listed; answered 2 s ago, index 42.",
    isWarning: false,
  });
  const failing = { ...QUIET, listed: 0, held: 3, failing_for_ms: 60000, error: "Consul answers 500", index: null };
  assert.deepEqual(plain(failing), {
    text: "From consul web: 0 listed, 3 no longer listed but kept; answered 2 s ago; failing for 1 min: Consul answers 500.",
    isWarning: true,
  });
  const restored = { ...QUIET, answered_ms_ago: null, index: null, restored: true };
  assert.equal(plain(restored).text, "From consul web: 3 listed; no answer yet, servers of the last run.");
});
