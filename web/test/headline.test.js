import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceRows } from "../src/logic/services.js";
import { headline, whyUnexamined } from "../src/logic/headline.js";
import { finding, server, serviceState, traffic } from "./made.js";

const SLOW = "10.0.2.15:80";
const calm = { "10.0.1.1:80": { requests: 200 }, "10.0.1.2:80": { requests: 200 }, [SLOW]: { requests: 200 } };
const servers = Object.keys(calm).map((address) => server(address));

/** @param {Partial<Parameters<typeof headline>[0]>} change @param {import("../src/api.js").Traffic} [seen] */
function said(change, seen = traffic("catalog", calm)) {
  const findings = change.findings ?? [];
  return headline({
    services: serviceRows([serviceState("catalog", servers)], seen, findings),
    findings,
    status: { ready: true, uptime_s: 100 },
    unexamined: null,
    traffic: seen,
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
  const rows = (/** @type {number} */ in_flight) =>
    serviceRows(
      [
        serviceState(
          "catalog",
          Object.keys(calm).map((address) => server(address, { in_flight })),
        ),
      ],
      undefined,
      [],
    );
  const none = traffic("catalog", idle);
  assert.match(said({ services: rows(0) }, none).title, /No request has ended yet/);
  assert.match(
    said({ services: rows(0), status: { ready: true, uptime_s: 4000 } }, none).title,
    /No request has ended in the last hour/,
  );
  // Long requests, and what is not known, are not "none".
  assert.doesNotMatch(said({ services: rows(1) }, none).title, /No request/);
  assert.doesNotMatch(said({ services: rows(0), traffic: undefined }).title, /No request/);
  assert.match(said({ status: { ready: false, uptime_s: 1 } }).title, /not ready/);
});

test("nothing is called healthy while traffic is not examined", () => {
  const one = said({ unexamined: "the doctor is disabled" });
  assert.equal(one.level, "idle");
  assert.match(one.title, /Traffic is not examined: the doctor is disabled\./);
  assert.doesNotMatch(one.title, /healthy/);
});

test("why traffic is not examined", () => {
  const answer = { enabled: true, interval_ms: 1, looks: 1, looked_at_unix_ms: 1, findings: [], could_not_check: [] };
  assert.equal(whyUnexamined(answer, null, true), null);
  assert.match(whyUnexamined(answer, null, false) ?? "", /history_memory_max is 0/);
  assert.match(whyUnexamined({ ...answer, enabled: false }, null, true) ?? "", /disabled/);
  assert.match(whyUnexamined(undefined, "not available here", true) ?? "", /not available here/);
  assert.match(whyUnexamined(answer, "not available now", true) ?? "", /not available now/);
  assert.match(whyUnexamined(undefined, null, true) ?? "", /no answer yet/);
});

test("a finding says what, since when, how sure, what follows, what to do, and offers to drain its server", () => {
  const consequences = [{ rule: "service_saturated", subject: "catalog", what: "catalog is saturated." }];
  const one = said({ findings: [finding({ consequences })] });
  assert.equal(one.title, "10.0.2.15:80 of catalog is slow.");
  assert.match(one.detail, /^Since .*\(50\u00a0s\)\. Certain\. It uses its limit\. To do: Drain it\.$/);
  assert.deepEqual(one.consequences, ["catalog is saturated."]);
  assert.equal(one.drain?.row.server.address, SLOW);
  assert.equal(one.evidence?.page, "findings");
  assert.equal(one.more, null);
});

test("findings about traffic come before those about the host, critical ones before all", () => {
  const host = finding({ rule: "somaxconn", subject: "x", service: null, servers: [], remedy: [], what: "A setting." });
  const one = said({ findings: [host, finding({})] });
  assert.match(one.title, /is slow/);
  assert.deepEqual(one.more, { page: "findings", count: 1 });
  const lost = { ...host, severity: /** @type {const} */ ("critical"), what: "Lost." };
  assert.equal(said({ findings: [finding({}), lost] }).title, "Lost.");
});

test("advice, notes and findings that have ended are no headline", () => {
  const findings = [finding({ severity: "advice" }), finding({ severity: "note" }), finding({ is_present: false })];
  assert.equal(said({ findings }).level, "fine");
});

test("nothing is offered for draining unless the finding proposes it, for one server that can be spared", () => {
  const drain = (/** @type {import("../src/api.js").Finding} */ one) => said({ findings: [one] }).drain;
  assert.equal(drain(finding({ servers: ["10.9.9.9:80"] })), null);
  assert.equal(drain(finding({ service: "nothing" })), null);
  assert.equal(drain(finding({ servers: [SLOW, "10.0.1.1:80"] })), null);
  const remedy = [{ action: "Correct the check", commands: ["weir status"], risk: "" }];
  assert.equal(drain(finding({ rule: "checks_blind", subject: "checks of catalog", remedy })), null);
  const alone = [server(SLOW), server("10.0.1.1:80", { eligible: false, health: "down" })];
  const rows = serviceRows([serviceState("catalog", alone)], undefined, [finding({})]);
  assert.equal(said({ services: rows, findings: [finding({})] }).drain, null);
});

test("a service without a server that receives requests comes before a finding that only warns", () => {
  const none = servers.map((one) => ({ ...one, eligible: false, health: /** @type {const} */ ("down") }));
  const services = serviceRows([serviceState("catalog", none)], traffic("catalog", calm), []);
  const one = said({ services, findings: [finding({})] });
  assert.equal(one.level, "bad");
  assert.equal(one.title, "catalog has no server that receives requests.");
  assert.deepEqual(one.more, { page: "findings", count: 1 });
});

test("several servers with the same state are one sentence", () => {
  const down = [
    server("a:1"),
    ...["b:1", "c:1"].map((address) => server(address, { eligible: false, health: "down" })),
  ];
  const one = said({ services: serviceRows([serviceState("catalog", down)], traffic("catalog", calm), []) });
  assert.equal(one.title.replaceAll("\u00a0", " "), "2 servers of catalog are down.");
  assert.equal(one.level, "warn");
  assert.equal(one.more, null);
});

test("a service in maintenance is no trouble", () => {
  const none = servers.map((one) => ({ ...one, eligible: false }));
  const maintenance = [
    {
      kind: /** @type {const} */ ("service"),
      name: "catalog",
      on: true,
      in_file: true,
      by_operator: false,
      retry_after_ms: null,
    },
  ];
  const services = serviceRows([serviceState("catalog", none)], traffic("catalog", calm), [], maintenance);
  assert.deepEqual([said({ services }).level, said({ services }).title], ["idle", "Every service is in maintenance."]);
  const [other] = serviceRows([serviceState("listings", servers)], traffic("listings", calm), []);
  assert.equal(said({ services: [...services, other] }).title, "The other service is healthy.");
});
