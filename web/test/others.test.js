import assert from "node:assert/strict";
import { test } from "node:test";
import { expiry, fromFiles } from "../src/logic/certificates.js";
import { serviceRows } from "../src/logic/services.js";
import { maintained, putBack, takenOut, weighed } from "../src/logic/effect.js";
import { events } from "../src/logic/events.js";
import { level, marks, runs } from "../src/logic/heat.js";
import { emptyFrame, merge } from "../src/logic/history.js";
import { spark } from "../src/logic/spark.js";
import { SERVER_5XX, endings, stacked, withGaps } from "../src/logic/stack.js";
import { limit, sentences, track, waterfall } from "../src/logic/story.js";
import { isMarked, levels, tiles } from "../src/logic/tiles.js";
import { matches, titleOf } from "../src/logic/tree.js";
import { answer, finding, server, service, serviceState, traffic } from "./made.js";

const plain = (/** @type {string[]} */ texts) => texts.join(" ").replaceAll("\u00a0", " ");

test("draining says only what is certain", () => {
  const servers = [server("a", { in_flight: 9, in_flight_max: 10 }), server("b", { in_flight: 6, in_flight_max: 10 })];
  const [row] = serviceRows(
    [serviceState("s", servers)],
    traffic("s", { a: { requests: 420 }, b: { requests: 400 } }),
    [],
  );
  const effect = takenOut(row, row.servers[0], "drain");
  assert.match(
    plain(effect.sentences),
    /^It receives no new requests\. In the last 10 s it received 42 requests\/s\. 1 other server of s receives requests now; 6 of at most 10 are in flight there\. 9 requests in flight there will be finished\./,
  );
  assert.equal(effect.warning, null);
});

test("draining says which servers take over, once the balancer has said so", () => {
  const servers = [server("a"), server("b", { eligible: false }), server("c")];
  const [row] = serviceRows([serviceState("s", servers)], traffic("s", {}), []);
  const then = [server("a", { eligible: false }), server("b"), server("c")];
  const after = serviceState("s", then, { tier: "all_zones", why: "no server of the own zone is ready" });
  const effect = takenOut(row, row.servers[0], "drain", after);
  assert.match(
    plain(effect.sentences),
    /Then 2 of 3 servers receive requests, new among them b, because no server of the own zone is ready\./,
  );
  assert.equal(effect.warning, null);
  const none = takenOut(row, row.servers[0], "drain", serviceState("s", []));
  assert.match(none.warning ?? "", /No server of s receives requests then/);
  const tried = takenOut(row, row.servers[0], "drain", { ...after, tier: "try_all" });
  assert.match(tried.warning ?? "", /Weir tries all that are not drained \(2\)/);
  assert.match(plain(putBack(row, row.servers[1], after).sentences), /Then 2 of 3/);
});

test("draining the only server warns", () => {
  const [row] = serviceRows([serviceState("s", [server("a")])], traffic("s", { a: { requests: 10 } }), []);
  assert.match(
    takenOut(row, row.servers[0], "drain").warning ?? "",
    /No other server of s receives requests now\. Unless/,
  );
  assert.match(plain(putBack(row, row.servers[0]).sentences), /again/);
  assert.match(weighed(row, row.servers[0], 0).warning ?? "", /refused/);
  assert.match(
    plain(maintained(row, true).sentences),
    /answers new requests of s with 503\. In the last 10 s it received 1 requests/,
  );
});

test("a change is an event that leads to what it is about", () => {
  const configuration = { kind: "configuration", effect: "neutral" };
  const changes = [
    { at_unix_ms: 90_000, kind: "process", effect: "neutral", what: "Weir 1 has started as process 7." },
    { at_unix_ms: 80_400, ...configuration, what: "Configuration 2 came into force." },
    { at_unix_ms: 70_000, kind: "health", effect: "trouble", service: "s", server: "a", what: "a of s is down." },
    { at_unix_ms: 65_000, kind: "health", effect: "trouble", what: "100 servers of 60 services are down." },
    {
      at_unix_ms: 60_000,
      kind: "finding",
      effect: "trouble",
      service: "s",
      finding: { rule: "server_slow", subject: "a of s" },
      what: "a of s is slow.",
    },
    {
      at_unix_ms: 50_000,
      kind: "ejection",
      effect: "recovery",
      service: "s",
      what: "9 servers of s are no longer ejected.",
    },
    // The receipt was that of a process before.
    { at_unix_ms: 40_000, ...configuration, what: "Configuration 1 came into force." },
  ];
  const receipt = { at: new Date(80_000).toISOString(), result: "applied", generation: 2, trigger: "signal" };
  const { list: all, leftOut } = events({
    reloads: /** @type {any} */ ([receipt]),
    changes: /** @type {any} */ ({ changes, left_out: 7 }),
    findings: [],
    frame: emptyFrame(),
    live: true,
  });
  assert.equal(leftOut, 7);
  assert.deepEqual(
    all.map(({ at, kind, title, to }) => [at / 1000, kind, title, to.page, to.name]),
    [
      [90, "change", "Weir 1 has started as process 7.", "host", null],
      [80, "change", "Configuration 2 in force", "reloads", null],
      [70, "bad", "a of s is down.", "service", "s"],
      [65, "bad", "100 servers of 60 services are down.", "services", null],
      [60, "warn", "a of s is slow.", "findings", "server_slow a of s "],
      [50, "good", "9 servers of s are no longer ejected.", "service", "s"],
      [40, "change", "Configuration 1 came into force.", "services", null],
    ],
  );
});

test("a finding among the events has its severity and network namespace", () => {
  const name = { rule: "backlog_overflow", subject: "0.0.0.0:80" };
  const change = {
    at_unix_ms: 60_000,
    kind: "finding",
    effect: "trouble",
    finding: name,
    what: "It drops connections.",
  };
  const one = (/** @type {Partial<import("../src/api.js").Finding>[]} */ findings) => {
    const changes = /** @type {any} */ ({ changes: [change], left_out: 0 });
    const all = findings.map((own) => finding({ ...name, service: null, ...own }));
    const [event] = events({ reloads: [], changes, findings: all, frame: emptyFrame(), live: true }).list;
    return [event.kind, event.detail, event.to.name];
  };
  const inner = { namespace: "app", severity: /** @type {const} */ ("critical"), first_seen_unix_ms: 59_000 };
  assert.deepEqual(one([{ severity: "advice", first_seen_unix_ms: 10_000 }, inner]), [
    "bad",
    "critical · backlog_overflow · network namespace app",
    "backlog_overflow 0.0.0.0:80 app",
  ]);
  assert.equal(one([{ severity: "advice" }])[0], "change");
  assert.deepEqual(one([]), ["warn", "backlog_overflow", "backlog_overflow 0.0.0.0:80 "]);
});

test("more events than the list holds are counted", () => {
  const changes = Array.from({ length: 230 }, (_, at) => ({
    at_unix_ms: at,
    kind: "state",
    effect: "neutral",
    what: `${at}`,
  }));
  const { list, leftOut } = events({
    reloads: [],
    changes: /** @type {any} */ ({ changes, left_out: 800 }),
    findings: [],
    frame: emptyFrame(),
    live: true,
  });
  assert.deepEqual([list.length, list[0].title, leftOut], [200, "229", 830]);
});

test("ready servers that left and returned are one event with its duration", () => {
  const ready = [3, 3, 2, 2, 2, 3, 3, 1];
  const ended = ready.map((_, row) => (row + 1) * 1000);
  const frame = merge(emptyFrame(), answer(ended, [service("s", { servers_ready: ready })]), 100);
  const { list: all } = events({ reloads: [], changes: undefined, findings: [], frame, live: true });
  assert.deepEqual(
    all.map(({ at, title, detail }) => [at, title, detail].join("; ").replaceAll("\u00a0", " ")),
    ["8000; s: 1 server ready, 3 before; until now", "3000; s: 2 servers ready, 3 before; for 3 s"],
  );
});

test("having no ready server ends with the first, and a finding marks the tile that it is about", () => {
  const ready = [2, 0, 0, 1, 1];
  const ended = ready.map((_, row) => (row + 1) * 1000);
  const frame = merge(emptyFrame(), answer(ended, [service("s", { servers_ready: ready })]), 100);
  const [event] = events({ reloads: [], changes: undefined, findings: [], frame, live: true }).list;
  assert.deepEqual([event.title, event.detail], ["s: no server ready", "for 2\u00a0s"]);
  const tile = (/** @type {string} */ label) => ({ label, value: "", unit: "", note: "", line: [] });
  const slow = [finding({})];
  assert.deepEqual(
    ["p99 of catalog", "p99 of other", "p50 of catalog", "Failed"].map((label) => isMarked(tile(label), slow)),
    [true, false, false, false],
  );
  const blind = { rule: "checks_blind", subject: "10.0.2.15:80 of catalog" };
  assert.ok(isMarked(tile("Failed"), [finding(blind)]));
  assert.ok(!isMarked(tile("Failed"), [finding({ ...blind, subject: "checks of catalog" })]));
});

test("heat is relative to what is usual, and equal cells are one", () => {
  assert.deepEqual(
    [null, 20, 40, 90, 200, 2000].map((value) => level(value, 20)),
    [-1, 0, 1, 2, 3, 4],
  );
  assert.deepEqual(runs([20, 20, null, 900], 20), [
    { x: 0, width: 2, level: 0 },
    { x: 2, width: 1, level: -1 },
    { x: 3, width: 1, level: 4 },
  ]);
  assert.deepEqual(
    marks([0, 2, 3, null]).map(({ x, width }) => [x, width]),
    [[1, 2]],
  );
});

test("a line has gaps where nothing was measured", () => {
  const { stroke, area } = spark([1, 2, null, 4], 30, 10);
  assert.equal(stroke.match(/M/g)?.length, 2);
  assert.equal(area.match(/Z/g)?.length, 2);
  assert.deepEqual(spark([], 30, 10), { stroke: "", area: "" });
  assert.doesNotMatch(spark([0, 0], 30, 10).stroke, /NaN/);
});

test("a server's 5xx are what was completed but not served", () => {
  const columns = { requests: [10], failed: [4], refused: [1], client_faults: [0] };
  const causes = [
    { row: 0, cause: "completed", count: 8 },
    { row: 0, cause: "queue_full", count: 1 },
    { row: 0, cause: "connection_reset", count: 1 },
  ];
  const frame = merge(emptyFrame(), answer([1000], [service("s", columns, causes)]), 10);
  const layers = endings(frame, [...frame.lines.values()], 6);
  assert.deepEqual(
    layers.map(({ name, total }) => [name, total]),
    [
      [SERVER_5XX, 3],
      ["queue_full", 1],
      ["connection_reset", 1],
    ],
  );
  assert.deepEqual(stacked(layers), [[3], [4], [5]]);
  assert.deepEqual(
    endings(frame, [...frame.lines.values()], 2).map(({ name, total }) => [name, total]),
    [
      [SERVER_5XX, 3],
      ["", 2],
    ],
  );
});

test("charts do not draw over a pause", () => {
  const frame = merge(emptyFrame(), answer([1000, 2000, 9000], [service("s", { x: [1, 2, 3] })]), 10);
  assert.deepEqual(withGaps(frame, [[1, 2, 3]]), { times: [1, 2, 3, 9], columns: [[1, 2, null, 3]] });
});

test("the tiles compare with a minute before, and name whose quantile it is", () => {
  const ended = Array.from({ length: 120 }, (_, row) => (row + 1) * 1000);
  const flat = (/** @type {number} */ value) => ended.map(() => value);
  const listener = {
    ...service("", { requests: ended.map((_, row) => (row < 60 ? 10 : 20)), failed: flat(1), refused: flat(0) }),
    kind: "listener",
    listener: "l",
    service: null,
  };
  const frame = merge(
    emptyFrame(),
    answer(ended, [
      listener,
      service("busy", {
        requests: flat(15),
        in_flight: flat(2),
        queue_length: flat(0),
        total_p50_us: flat(20_000),
        total_p99_us: flat(50_000),
      }),
      service("slow", {
        requests: flat(5),
        in_flight: flat(3),
        queue_length: flat(1),
        total_p50_us: flat(90_000),
        total_p99_us: flat(900_000),
      }),
    ]),
    900,
  );
  const shown = tiles(frame, 120_000, null).map(({ label, value, unit, note }) =>
    `${label}: ${value} ${unit}, ${note}`.replaceAll("\u00a0", " "),
  );
  assert.deepEqual(shown, [
    "Requests: 20 /s, 10 a minute before",
    "Failed: 5 %, 60 in the last minute",
    "Refused here: 0 /s, 0 a minute before",
    "p50 of busy: 20 ms, 20 ms a minute before",
    "p99 of slow: 900 ms, 900 ms a minute before",
    "In flight: 5 , 1 request queued",
  ]);
  assert.ok(tiles(emptyFrame(), 0, null).every(({ value }) => value === "–"));
});

test("the tiles of now have the quantiles of the windows, and count a shared server once", () => {
  const seen = traffic("a", { x: { requests: 100 } });
  const one = seen.services[0];
  const windows = one.windows.map((window) => ({ ...window, total: { p50_ms: 7, p90_ms: 8, p99_ms: 9 } }));
  const shared = server("x", { in_flight: 3, in_flight_max: 10 });
  const now = {
    services: [{ ...one, windows }],
    levels: levels([serviceState("a", [shared]), serviceState("b", [shared])]),
  };
  const shown = tiles(emptyFrame(), 0, now);
  assert.deepEqual(
    shown.slice(3).map(({ label, value, unit, line }) => [label, value, unit, line]),
    [
      ["p50 of a", "7", "ms", []],
      ["p99 of a", "9", "ms", []],
      ["In flight", "3", "of 10", []],
    ],
  );
});

/** @param {Partial<import("../src/api.js").Request>} change @returns {import("../src/api.js").Request} */
const request = (change) => ({
  age_ms: 10,
  stage: "queue",
  request_id: "r",
  client: "c",
  listener: "l",
  method: "GET",
  host: "h",
  path: "/",
  service: "s",
  server: null,
  attempts: 1,
  ...change,
});

test("a request's stages are followed from answer to answer, and forgotten when it is gone", () => {
  let tracked = track(new Map(), [request({})]);
  tracked = track(tracked, [request({ age_ms: 1010, stage: "response", server: "a" })]);
  const one = tracked.get("r");
  assert.deepEqual(one?.stages, [
    { stage: "queue", from: 0, to: 1010 },
    { stage: "response", from: 1010, to: null },
  ]);
  assert.match(
    plain(one ? sentences(one, true) : []),
    /arrived 1 s ago at l for s, from c\. Now it waits for the server's response \(a\)\./,
  );
  assert.equal(track(tracked, []).size, 0);
});

test("a request with unusual values has a readable story", () => {
  let tracked = new Map();
  for (let attempt = 1; attempt <= 4000; attempt += 1)
    tracked = track(tracked, [
      request({
        age_ms: attempt * 86_400_000,
        stage: attempt % 2 ? "response" : "connect",
        attempts: attempt,
        server: "a",
      }),
    ]);
  const one = tracked.get("r");
  assert.equal(one.stages.length, 12);
  assert.match(plain(sentences(one, true)), /arrived 4,000 d ago.*after 3,999 failed attempts.*3,988 earlier stages/);
  const { bars } = waterfall(one, 30_000);
  assert.ok(bars.every(({ x, width }) => x >= 0 && x <= 100 && width > 0 && width <= 100));
  const bare = track(new Map(), [/** @type {any} */ ({ request_id: "r" })]).get("r");
  assert.match(plain(bare ? sentences(bare, true) : []), /It arrived\. Now it is in an unknown stage\./);
  assert.ok(bare && waterfall(bare, null).bars.every(({ width }) => Number.isFinite(width)));
});

test("a stage that was not seen from its beginning is not dated", () => {
  const one = track(new Map(), [request({ stage: "response", server: "a" })]).get("r");
  assert.match(plain(one ? sentences(one, true) : []), /not known/);
});

test("the limit that ends a request", () => {
  const timeouts = { connect_ms: 1500, response_ms: 30_000, total_ms: null };
  assert.deepEqual(limit(request({ stage: "response" }), timeouts), { name: "timeouts.response", ms: 30_000 });
  assert.deepEqual(limit(request({}), { ...timeouts, total_ms: 3000 }), { name: "timeouts.total", ms: 3000 });
  assert.equal(limit(request({}), undefined), null);
});

test("certificates say when they expire", () => {
  const day = 86_400_000;
  assert.deepEqual(
    [null, -1, day, 10 * day, 90 * day].map((left) => expiry(left == null ? null : 1000 + left, 1000).word),
    ["unknown", "expired", "expires", "expires soon", "valid"],
  );
  assert.deepEqual(
    fromFiles({
      listeners: [
        { name: "l", tls: { certificates: [{ chain: "a", not_after_unix_s: 5 }, { acme: ["x"] }] } },
        { name: "m", tls: null },
      ],
    }).map(({ chain, notAfter }) => [chain, notAfter]),
    [["a", 5000]],
  );
  assert.deepEqual(fromFiles(undefined), []);
});

test("the configuration is searched by key, name and value", () => {
  const value = { services: [{ name: "catalog", timeouts: { connect_ms: 1500 } }] };
  assert.ok(matches(value, "catalog"));
  assert.ok(matches(value, "connect"));
  assert.ok(matches(value, "1500"));
  assert.ok(!matches(value, "nothing"));
  assert.equal(titleOf("0", { name: "catalog" }), "catalog");
  assert.equal(titleOf("2", 7), "#3");
});
