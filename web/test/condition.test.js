import assert from "node:assert/strict";
import { test } from "node:test";
import { median } from "../src/logic/condition.js";
import { serviceRows } from "../src/logic/services.js";
import { namedServers } from "../src/logic/subject.js";
import { began } from "../src/logic/since.js";
import { emptyFrame, line, merge } from "../src/logic/history.js";
import { answer, finding, server, serverSeries, serviceState, traffic } from "./made.js";

/** @param {import("../src/api.js").Server[]} servers @param {Parameters<typeof traffic>[1]} figures */
function words(servers, figures) {
  const [row] = serviceRows([serviceState("a", servers)], traffic("a", figures), []);
  return Object.fromEntries(row.servers.map((one) => [one.server.address, one.condition.word]));
}

test("states of Weir come before figures", () => {
  const servers = [
    server("m", { state: "maintenance", health: "down" }),
    server("d", { state: "drain" }),
    server("x", { health: "down" }),
    server("e", { ejected_for_ms: 5000 }),
    server("w", { weight: 0 }),
    server("s", { eligible: false }),
    server("p", { slow_start_share: 0.3 }),
    server("u", { health: "unknown" }),
    server("o"),
    server("l", { in_flight: 4, in_flight_max: 4 }),
  ];
  assert.deepEqual(words(servers, {}), {
    m: "maintenance",
    d: "draining",
    x: "down",
    e: "ejected",
    w: "weight 0",
    s: "standby",
    p: "starting",
    u: "ready",
    o: "up",
    l: "at its limit",
  });
});

test("a server is slow only against peers, and only with enough requests", () => {
  const four = ["a", "b", "c", "d"].map((address) => server(address));
  const usual = { a: { requests: 100 }, b: { requests: 100 }, c: { requests: 100 } };
  assert.equal(words(four, { ...usual, d: { requests: 100, p50: 1500 } }).d, "slow");
  assert.equal(words(four, { ...usual, d: { requests: 3, p50: 1500 } }).d, "up");
  assert.equal(words(four, { ...usual, d: { requests: 100, p50: 60 } }).d, "up");
  assert.equal(words([server("d")], { d: { requests: 100, p50: 1500 } }).d, "up");
});

test("a server is failing only if its peers are not", () => {
  const three = ["a", "b", "c"].map((address) => server(address));
  assert.equal(
    words(three, { a: { requests: 100 }, b: { requests: 100 }, c: { requests: 100, failed: 50 } }).c,
    "failing",
  );
  const all = words(three, {
    a: { requests: 100, failed: 50 },
    b: { requests: 100, failed: 50 },
    c: { requests: 100, failed: 50 },
  });
  assert.deepEqual(all, { a: "up", b: "up", c: "up" });
});

test("servers that are down do not make a service lose requests", () => {
  const [row] = serviceRows(
    [serviceState("a", [server("x"), server("y", { health: "down", eligible: false })])],
    undefined,
    [],
  );
  assert.equal(row.condition.level, "warn");
  assert.equal(row.condition.word, "1 down");
});

test("a finding names its servers by its commands, else by its subject", () => {
  assert.deepEqual(namedServers(finding({})), [{ service: "catalog", server: "10.0.2.15:80" }]);
  assert.deepEqual(namedServers(finding({ remedy: [] })), [{ service: "catalog", server: "10.0.2.15:80" }]);
  assert.deepEqual(namedServers(finding({ remedy: [], subject: "net.core.somaxconn" })), []);
  const text = finding({ remedy: [{ action: "", commands: ["weir drain a b; rm -rf /"], risk: "" }], subject: "x" });
  assert.deepEqual(namedServers(text), []);
});

test("when trouble began is read backwards over short pauses", () => {
  const ended = Array.from({ length: 60 }, (_, row) => (row + 1) * 1000);
  const p50 = ended.map((_, row) => (row < 20 || row === 30 ? 20_000 : 1_500_000));
  const frame = merge(emptyFrame(), answer(ended, [serverSeries("a", "x", { first_byte_p50_us: p50 })]), 100);
  const usual = { p50: 20, limit: null };
  assert.equal(began(frame, line(frame, "server", "a", "x"), "slow", usual), 20_000);
  assert.equal(began(frame, line(frame, "server", "a", "x"), "failing", usual), null);
  assert.equal(began(frame, undefined, "slow", usual), null);
});

test("the median of an even number is the lower one", () => {
  assert.equal(median([]), null);
  assert.equal(median([4, 1, 3, 2]), 2);
});
