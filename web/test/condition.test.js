import assert from "node:assert/strict";
import { test } from "node:test";
import { orderOf } from "../src/logic/condition.js";
import { serviceRows } from "../src/logic/services.js";
import { median, minute, newest, usualFirstByte } from "../src/logic/traffic.js";
import { finding, server, serviceState, traffic } from "./made.js";

/** @param {import("../src/api.js").Server[]} servers @param {import("../src/api.js").Finding[]} [findings] */
function rowOf(servers, findings = []) {
  return serviceRows([serviceState("catalog", servers)], undefined, findings)[0];
}

/** @param {import("../src/api.js").Listing["standing"]} standing @returns {import("../src/api.js").Listing} */
const listing = (standing) => ({ source: "consul", object: "node1/web-1", index: 7, standing, for_ms: 10 });

/** @param {ReturnType<typeof rowOf>} row */
const words = (row) => Object.fromEntries(row.servers.map((one) => [one.server.address, one.condition.word]));

test("states of servers", () => {
  const servers = [
    server("m", { state: "maintenance", health: "down" }),
    server("d", { state: "drain" }),
    server("x", { health: "down" }),
    server("e", { ejected_for_ms: 5000 }),
    server("w", { weight: 0 }),
    server("s", { eligible: false }),
    server("p", { slow_start_share: 0.3 }),
    server("u", { health: "unknown" }),
    server("o", { in_flight: 4, in_flight_max: 4 }),
    server("c", { eligible: false, listing: listing("critical") }),
    server("h", { eligible: false, listing: listing("held") }),
    server("l", { listing: listing("listed") }),
  ];
  assert.deepEqual(words(rowOf(servers)), {
    m: "maintenance",
    d: "draining",
    x: "down",
    e: "ejected",
    w: "weight 0",
    s: "standby",
    p: "starting",
    u: "ready",
    o: "up",
    c: "critical",
    h: "not listed",
    l: "up",
  });
});

test("only a finding calls a server slow or failing, whatever its figures are", () => {
  const servers = [server("a"), server("b")];
  const figures = traffic("catalog", { a: { requests: 100 }, b: { requests: 100, failed: 90, p50: 9000 } });
  const [silent] = serviceRows([serviceState("catalog", servers)], figures, []);
  assert.deepEqual([words(silent), silent.condition.word], [{ a: "up", b: "up" }, "healthy"]);
  const row = rowOf(servers, [finding({ servers: ["b"] })]);
  assert.deepEqual([words(row), row.condition.word], [{ a: "up", b: "slow" }, "1 slow"]);
  assert.equal(row.condition.level, "warn");
  assert.equal(rowOf(servers, [finding({ servers: ["b"], severity: "critical" })]).condition.level, "bad");
});

test("findings of other services, of less severity, and ended ones say nothing of a server", () => {
  const others = [
    finding({ service: "other", servers: ["a"] }),
    finding({ servers: ["a"], severity: "advice" }),
    finding({ servers: ["a"], is_present: false }),
  ];
  assert.equal(rowOf([server("a")], others).condition.word, "healthy");
});

test("checks that fail wrongly are another trouble than checks that pass wrongly", () => {
  const rule = { rule: "checks_blind", servers: ["a"] };
  const down = server("a", { health: "down" });
  const fails = rowOf([down], [finding({ ...rule, subject: "checks of catalog" })]);
  assert.equal(fails.servers[0].condition.word, "check fails");
  const passes = rowOf([server("a")], [finding({ ...rule, subject: "a of catalog" })]);
  assert.equal(passes.servers[0].condition.word, "failing");
});

test("a finding about a whole service is its condition; without a server it has none", () => {
  const saturated = finding({ rule: "service_saturated", subject: "catalog", servers: [] });
  assert.equal(rowOf([server("a")], [saturated]).condition.word, "saturated");
  assert.equal(rowOf([server("a", { eligible: false })], [saturated]).condition.word, "no server");
});

test("servers that are down do not make a service lose requests", () => {
  const { condition } = rowOf([server("x"), server("y", { health: "down", eligible: false })]);
  assert.deepEqual([condition.level, condition.word], ["warn", "1 down"]);
});

test("trouble is sorted first", () => {
  const order = (/** @type {"bad" | "warn" | "disabled" | "fine"} */ level) => orderOf({ level, word: "w", why: "" });
  assert.ok(order("bad") < order("warn") && order("warn") < order("disabled") && order("disabled") < order("fine"));
});

test("windows are found by their span, or by their place where the API does not name it", () => {
  const [ten, sixty] = [{ requests: 1 }, { requests: 2 }];
  assert.deepEqual([newest({ windows: [ten, sixty] }), minute({ windows: [ten, sixty] })], [ten, sixty]);
  const named = {
    windows: [
      { ...sixty, span_s: 60 },
      { ...ten, span_s: 10 },
    ],
  };
  assert.deepEqual([newest(named)?.requests, minute(named)?.requests], [1, 2]);
  assert.equal(minute({ windows: [{ span_s: 10 }] }), undefined);
  assert.equal(newest(undefined), undefined);
});

test("what is usual is the lower median of servers with enough requests", () => {
  assert.equal(median([]), null);
  assert.equal(median([4, 1, 3, 2]), 2);
  const figures = traffic("a", { x: { requests: 9, p50: 5 }, y: { requests: 9, p50: 7 }, z: { requests: 1, p50: 1 } });
  assert.equal(usualFirstByte(figures.services[0]), 5);
});
