import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceRows } from "../src/logic/services.js";
import { conditionKey, headline } from "../src/logic/headline.js";
import { finding, server, serviceState, traffic } from "./made.js";

const SLOW = "10.0.2.15:80";
const calm = { "10.0.1.1:80": { requests: 200 }, "10.0.1.2:80": { requests: 200 }, [SLOW]: { requests: 200 } };
const slow = { ...calm, [SLOW]: { requests: 42, p50: 1500 } };
const servers = Object.keys(calm).map((address) => server(address));

/** @param {Partial<Parameters<typeof headline>[0]>} change @param {import("../src/api.js").Traffic} [seen] */
function said(change, seen = traffic("catalog", calm)) {
  const findings = change.findings ?? [];
  return headline({
    services: serviceRows([serviceState("catalog", servers)], seen, findings),
    findings,
    since: new Map(),
    status: { ready: true, uptime_s: 100 },
    changed: null,
    now: 100_000,
    ...change,
  });
}

test("a quiet line when nothing is wrong", () => {
  const one = said({});
  assert.equal(one.level, "fine");
  assert.match(one.title, /^The service is healthy\.$/);
  assert.equal(one.evidence, null);
});

test("no service, no traffic, not ready", () => {
  assert.equal(said({ services: [] }).title, "No service is configured.");
  const idle = Object.fromEntries(Object.keys(calm).map((address) => [address, { requests: 0 }]));
  assert.match(said({}, traffic("catalog", idle)).title, /No request has arrived yet/);
  assert.match(
    said({ status: { ready: true, uptime_s: 4000 } }, traffic("catalog", idle)).title,
    /No request has arrived in the last hour/,
  );
  assert.match(said({ status: { ready: false, uptime_s: 1 } }).title, /takes no new work/);
});

test("a finding says what, since when, how sure, what to do, and offers to drain its server", () => {
  const one = said({ findings: [finding({})] }, traffic("catalog", slow));
  assert.equal(one.title, "10.0.2.15:80 of catalog is slow.");
  assert.match(one.detail, /^Since .*\(50\u00a0s\)\. Certain\. It uses its limit\. To do: Drain it\.$/);
  assert.equal(one.drain?.row.server.address, SLOW);
  assert.equal(one.evidence?.page, "findings");
  assert.equal(one.more, 0);
});

test("findings about traffic come before those about the host, critical ones before all", () => {
  const host = finding({ rule: "somaxconn", subject: "net.core.somaxconn", remedy: [], what: "A setting." });
  assert.match(said({ findings: [host, finding({})] }, traffic("catalog", slow)).title, /is slow/);
  const lost = { ...host, severity: /** @type {const} */ ("critical"), what: "Lost." };
  assert.equal(said({ findings: [finding({}), lost] }).title, "Lost.");
});

test("advice, notes and findings that are over are no headline", () => {
  const findings = [finding({ severity: "advice" }), finding({ severity: "note" }), finding({ is_present: false })];
  assert.equal(said({ findings }).level, "fine");
});

test("without a finding the figures speak, and the page says that it only compares", () => {
  const since = new Map([[conditionKey("catalog", SLOW, "slow"), { at: 52_000, before: false }]]);
  const one = said({ since }, traffic("catalog", slow));
  assert.equal(one.level, "warn");
  assert.equal(one.title, "10.0.2.15:80 of catalog is slow.");
  assert.match(
    one.detail,
    /^Since .*\(48\u00a0s\)\. Its median response time is 1\.5\u00a0s, that of its peers 20\u00a0ms\..*no finding explains it/,
  );
  assert.equal(one.drain?.row.server.address, SLOW);
});

test("a finding about a server that does not exist offers no action", () => {
  const stranger = finding({
    subject: "evil of nothing",
    remedy: [{ action: "x", commands: ["weir drain nothing evil"], risk: "" }],
  });
  assert.equal(said({ findings: [stranger] }).drain, null);
});

test("the last server is never offered for draining", () => {
  const alone = [server(SLOW), server("10.0.1.1:80", { eligible: false, health: "down" })];
  const rows = serviceRows([serviceState("catalog", alone)], traffic("catalog", slow), [finding({})]);
  assert.equal(said({ services: rows, findings: [finding({})] }).drain, null);
});

test("a service without a server that receives requests is the worst", () => {
  const none = servers.map((one) => ({ ...one, eligible: false, health: /** @type {const} */ ("down") }));
  const one = said({ services: serviceRows([serviceState("catalog", none)], traffic("catalog", calm), []) });
  assert.equal(one.level, "bad");
  assert.equal(one.title, "catalog has no server that receives requests.");
});

test("several servers with the same trouble are one sentence", () => {
  const down = [
    server("a:1"),
    ...["b:1", "c:1"].map((address) => server(address, { eligible: false, health: "down" })),
  ];
  const one = said({ services: serviceRows([serviceState("catalog", down)], traffic("catalog", calm), []) });
  assert.equal(one.title.replaceAll("\u00a0", " "), "2 servers of catalog are down.");
  assert.equal(one.level, "warn");
  assert.equal(one.more, 0);
});

test("lost requests come before a finding that only warns", () => {
  const figures = { ...slow, "10.0.1.1:80": { requests: 200, failed: 100 } };
  const one = said({
    findings: [finding({})],
    services: serviceRows([serviceState("catalog", servers)], traffic("catalog", figures), [finding({})]),
  });
  assert.equal(one.title, "10.0.1.1:80 of catalog is failing.");
  assert.equal(one.more, 1);
});

test("a finding about several servers does not offer to drain one of them", () => {
  const commands = ["weir drain catalog 10.0.1.1:80", "weir drain catalog 10.0.1.2:80"];
  const zone = finding({ subject: "zone a of catalog", remedy: [{ action: "Drain them", commands, risk: "" }] });
  assert.equal(said({ findings: [zone] }).drain, null);
});
