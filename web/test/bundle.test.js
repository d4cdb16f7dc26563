import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, spansOf, within } from "../src/logic/address.js";
import { readRecording } from "../src/source/bundle.js";
import { misfit } from "../src/source/shapes.js";
import { answer, finding, serverSeries, service, server, serviceState, traffic } from "./made.js";

const rows = [1_000_000, 1_001_000, 1_002_000];
const file = {
  format: "weir-bundle",
  version: 1,
  at_unix_ms: 1_002_500,
  from_unix_ms: 999_000,
  host: "lb-3",
  answers: {
    services: { services: [serviceState("s", [server("a")])] },
    traffic: traffic("s", { a: { requests: 9 } }),
    findings: { enabled: true, findings: [finding({})], could_not_check: [] },
  },
  history: [answer(rows, [service("s", { requests: [1, 2, 3] })])],
  failed: { "/api/v1/checks": "no answer within 5 s", "history?service=t": "503", "history?service=u": "503" },
};
const read = (/** @type {any} */ change) => readRecording(JSON.stringify({ ...file, ...change }));

test("a bundle has a host, a span, answers, and reasons for what is missing", () => {
  const { recording } = read({});
  assert.deepEqual([recording?.host, recording?.from, recording?.at], ["lb-3", 999_000, 1_002_500]);
  assert.deepEqual(Object.keys(recording?.answers ?? {}), ["services", "traffic", "findings"]);
  assert.deepEqual({ ...recording?.failed }, { checks: "no answer within 5 s", history: "503; 503" });
});

test("a recording of an older page has only a moment, answers and history", () => {
  const { recording } = readRecording(
    JSON.stringify({ at_unix_ms: file.at_unix_ms, answers: file.answers, history: file.history }),
  );
  assert.deepEqual([recording?.host, recording?.from, recording?.at], [null, 999_000, 1_002_500]);
});

test("what is not a recording is refused in one sentence", () => {
  const problem = (/** @type {string} */ text) => readRecording(text).problem ?? "";
  assert.match(problem("<html>"), /not JSON/);
  for (const text of ["null", "7", "[]", '"x"', "{}", '{"answers":[],"history":{}}', '{"answers":null,"history":[]}'])
    assert.match(problem(text), /^This file is not a recording of Weir/, text);
  assert.match(read({ version: 2 }).problem ?? "", /has version 2; this page reads version 1/);
  assert.match(read({ version: undefined }).problem ?? "", /version none/);
  assert.match(read({ format: { a: 1 } }).problem ?? "", /has the format/);
  assert.match(read({ at_unix_ms: "x", answers: {}, history: [] }).problem ?? "", /time/);
  assert.match(read({ answers: {}, history: [] }).problem ?? "", /nothing that this page can show/);
});

test("an answer of another form is left out with a reason; the others are shown", () => {
  const answers = { ...file.answers, services: { services: [{ name: "s" }] }, checks: 7, causes: null, unknown: {} };
  const { recording } = read({ answers, failed: null, from_unix_ms: null, at_unix_ms: null });
  assert.deepEqual(Object.keys(recording?.answers ?? {}), ["traffic", "findings"]);
  assert.match(recording?.failed.services ?? "", /cannot read: services\[0\]\.eligible is missing/);
  assert.match(recording?.failed.checks ?? "", /the answer is missing/);
  assert.equal(recording?.at, 100_000);
});

test("histories that cannot be drawn are left out, and those of one length are joined", () => {
  const [whole] = file.history;
  const broken = [
    { ...whole, covered_ms: [] },
    { ...whole, step_ms: 0 },
    { ...whole, ended_unix_ms: [3, 2, 1] },
    { ...whole, series: [service("s", { requests: [1] })] },
    { ...whole, series: [{ ...service("s", {}), columns: { requests: 7 } }] },
    null,
  ];
  const other = answer(rows, [serverSeries("s", "a", { requests: [1, 1, 1] })]);
  const { recording } = read({ history: [...broken, whole, other] });
  assert.equal(recording?.history.length, 1);
  assert.equal(recording?.history[0].series.length, 2);
  assert.match(recording?.failed.history ?? "", /6 of 8 recorded histories/);
});

test("a shape names the member that differs", () => {
  assert.equal(misfit({ a: [{ b: 1 }, { b: "x" }] }, { a: [{ b: 0 }] }), "a[1].b");
  assert.equal(misfit({ a: null }, { "a?": "" }), null);
  assert.equal(misfit({ a: 1 }, { "a?": "" }), "a");
  assert.equal(misfit([], {}), "the answer");
});

test("moments and spans stay within a recording", () => {
  const recording = { from: 1_000_000, at: 1_600_000 };
  const address = within(parse("#/overview?at=5&to=1500000&span=7200"), recording);
  assert.deepEqual([address.at, address.to, address.span], [null, 1_500_000, 600]);
  assert.deepEqual(
    spansOf(recording).map(({ label }) => label),
    ["All"],
  );
  assert.deepEqual(
    spansOf({ from: 0, at: 8_000_000 }).map(({ label }) => label),
    ["15 min", "2 h", "All"],
  );
});
