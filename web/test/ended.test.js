import assert from "node:assert/strict";
import { test } from "node:test";
import { decisionSentences, whyText } from "../src/logic/decision.js";
import { endedLevel, endedSentences, endedStages, ofKind } from "../src/logic/ended.js";

/** @typedef {import("../src/types.js").EndedRequest} EndedRequest */

/** @param {Partial<EndedRequest>} change @returns {EndedRequest} */
const request = (change) => ({
  ended_unix_ms: 1_000_000,
  kept_for: "slowest",
  status: 200,
  cause: "completed",
  fault: "none",
  server: "10.0.1.5:80",
  attempts: 1,
  total_ms: 100,
  ...change,
});
const stages = (/** @type {Partial<EndedRequest>} */ change) =>
  endedStages(request(change)).map(({ title, x, width, lasted }) => [title, x, width, lasted]);
const said = (/** @type {Partial<EndedRequest>} */ change) =>
  endedSentences(request(change), 1_000_000).join(" ").replaceAll("\u00a0", " ");

test("the stages of an ended request follow each other to its end", () => {
  assert.deepEqual(stages({ auth_ms: 10, queue_ms: 20, connect_ms: 5, first_byte_ms: 60 }), [
    ["Authentication", 0, 10, 10],
    ["Queue", 10, 20, 20],
    ["Connect", 30, 5, 5],
    ["Waiting for the response head", 35, 25, 25],
    ["Response body", 60, 40, 40],
  ]);
});

test("without a response head, the rest was waiting for it", () => {
  assert.deepEqual(stages({ first_byte_ms: 0, queue_ms: 0, attempts: 2 }), [
    ["Queue, all attempts", 0, 0, 0],
    ["Connect, all attempts", 0, 0, 0],
    ["Waiting for servers; none came", 0, 100, 100],
  ]);
  assert.deepEqual(stages({ attempts: 0, queue_ms: 100 }), [["Queue", 0, 100, 100]]);
  assert.deepEqual(stages({ attempts: 0, total_ms: 0 }), []);
});

test("figures that contradict each other stay within the scale", () => {
  for (const [, x, width] of stages({ queue_ms: 400, first_byte_ms: /** @type {any} */ ("x"), connect_ms: -3 })) {
    assert.ok(Number(x) >= 0 && Number(x) + Number(width) <= 100.001);
  }
});

test("a request is failed by its cause or by a 5xx, and listed by kind", () => {
  const all = [
    request({ first_byte_ms: 5 }),
    request({ first_byte_ms: 9 }),
    request({ kept_for: "cause", status: 503 }),
    request({ kept_for: "decision", decision: [{}], fault: "client", status: 429 }),
  ];
  assert.deepEqual(all.map(endedLevel), ["fine", "fine", "bad", "warn"]);
  assert.deepEqual(ofKind(all, "failed"), all.slice(2));
  assert.deepEqual(ofKind(all, "slowest"), [all[1], all[0]]);
  assert.deepEqual(ofKind(all, "with decision"), [all[3]]);
  assert.equal(ofKind(all, "all").length, 4);
});

test("an ended request says who was at fault and why it was not retried", () => {
  const text = said({
    status: 504,
    cause: "http_response_timeout",
    fault: "server",
    not_retried: "no use",
    attempts: 2,
  });
  assert.match(text, /The last of 2 attempts went to 10\.0\.1\.5:80\./);
  assert.match(text, /It ended with status 504: http_response_timeout\. At fault: a server\./);
  assert.match(text, /not retried: another attempt could not have helped/);
  assert.match(said({ status: 503 }), /The server answered with status 503, which Weir forwarded\./);
  assert.match(said({ attempts: 0, server: null }), /It was not sent to a server\./);
});

test("a decision is readable, also with words that this page does not know", () => {
  const decision = {
    chosen: "a:1",
    by: "round_robin",
    tier: "own_zone",
    reason: "own_zone_ready",
    queue_length: 2,
    more: { full: 3 },
  };
  assert.equal(
    decisionSentences(decision).join(" ").replaceAll("\u00a0", " "),
    "a:1 was chosen: it was its turn (round_robin). Eligible: the primary servers of the own zone, because enough of the own " +
      "zone is ready. 2 requests waited before it. 3 more servers: at its concurrency limit.",
  );
  assert.deepEqual(decisionSentences({}), ["No server was chosen."]);
  assert.match(decisionSentences({ chosen: "a", by: "new", tier: "t" }).join(" "), /a was chosen: new\. Eligible: t\./);
  assert.equal(whyText("new"), "new");
});
