import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { History } from "../src/source/rows.js";
import { recorded } from "../src/source/recorded.js";
import { live } from "../src/source/live.js";
import { browser, wait } from "./browser.js";
import { answer, serverSeries, service } from "./made.js";

/** Answers all but the stream, so that topics are polled.
 * @param {(path: string, init: any) => import("./browser.js").Answer} answer */
function respond(answer) {
  browser.respond = (path, init) =>
    path.startsWith("/api/v1/stream") ? { status: 501, body: { message: "no stream" } } : answer(path, init);
}
const asked = () => browser.asked.filter((one) => !one.includes("/stream"));
beforeEach(browser.reset);
after(browser.reset);

test("a path is read at once and again, and no more after no one watches it", async () => {
  respond(() => ({ status: 200, body: { at_unix_ms: Date.now() } }));
  const source = live();
  const seen = /** @type {any[]} */ ([]);
  const stop = source.watch("traffic", 300, (reading) => seen.push(reading));
  await wait(1500);
  stop();
  const reads = asked().length;
  assert.ok(reads >= 2 && seen.length === reads, `${reads} reads, ${seen.length} seen`);
  await wait(600);
  assert.equal(asked().length, reads);
});

test("a hidden page reads nothing", async () => {
  browser.hide(true);
  const source = live();
  source.watch("status", 300, () => {});
  await wait(600);
  assert.deepEqual(browser.asked, []);
  browser.hide(false);
});

test("without an answer the connection is lost, said, and tried again after a while; then it is back", async () => {
  respond(() => ({ status: 0, body: null }));
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase, retryAt }) => phases.push(retryAt ? `${phase}, tries again` : phase));
  source.watch("status", 300, () => {});
  await wait(700);
  assert.deepEqual(phases, ["connecting", "lost, tries again"]);
  respond(() => ({ status: 200, body: {} }));
  await wait(900);
  assert.equal(phases.at(-1), "connected");
});

test("an answer that says no reaches the view, and does not end the connection", async () => {
  respond(() => ({ status: 501, body: { error: "not_available", message: "a reload is not available" } }));
  const source = live();
  const seen = /** @type {any[]} */ ([]);
  source.watch("reloads", 300, (reading) => seen.push(reading));
  await wait(400);
  assert.deepEqual(seen, [{ value: null, error: "a reload is not available" }]);
});

test("without a session the page stops reading; the token is only posted, and the key is sent with every request", async () => {
  const bodies = /** @type {string[]} */ ([]);
  const methods = /** @type {string[]} */ ([]);
  respond((path, init) => {
    if (path === "/ui/session") {
      methods.push(init.method);
      if (init.method === "DELETE") return { status: 204 };
      assert.equal(init.headers["weir-request"], "1");
      bodies.push(JSON.parse(init.body).token);
      if (bodies.length === 3) return { status: 500, body: {} };
      return bodies.at(-1) === "right" ? { status: 200, body: { key: "k1" } } : { status: 401, body: {} };
    }
    return init.headers["weir-session"] === "k1" ? { status: 200, body: {} } : { status: 401, body: {} };
  });
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase, session, why }) => phases.push(`${phase} ${session}${why}`));
  source.watch("causes", 300, () => {});
  await wait(900);
  assert.equal(phases.at(-1), "signed-out false");
  assert.equal(asked().length, 1);
  assert.equal(await source.signIn?.("wrong"), "The token is wrong.");
  assert.equal(await source.signIn?.("right"), null);
  await wait(500);
  assert.equal(phases.at(-1), "connected true");
  assert.match((await source.signIn?.("again")) ?? "", /answered 500/);
  await source.signOut?.();
  assert.equal(phases.at(-1), "signed-out falseYou are signed out.");
  assert.equal(browser.stored.size, 0);
  assert.deepEqual(bodies, ["wrong", "right", "again"]);
  assert.equal(methods.at(-1), "DELETE");
  assert.ok(asked().every((one) => !one.includes("right")));
});

test("one path without an answer is no lost connection, and its last answer stays", async () => {
  let slow = false;
  respond((path) => (slow && path.endsWith("causes") ? { status: 0 } : { status: 200, body: { path } }));
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase }) => phases.push(phase));
  const readings = /** @type {any[]} */ ([]);
  source.watch("causes", 300, (reading) => readings.push(reading));
  source.watch("checks", 300, () => {});
  await wait(200);
  slow = true;
  await wait(700);
  assert.equal(phases.at(-1), "connected");
  assert.deepEqual(readings.at(-1), { value: { path: "/api/v1/causes" }, error: "The admin API cannot be reached." });
});

test("an action is a POST that other origins cannot send, and its refusal is passed on", async () => {
  let init = /** @type {any} */ (null);
  respond((_path, given) => {
    init = given;
    return { status: 404, body: { error: "server_not_found", message: "no such server" } };
  });
  const outcome = await live().act?.("services/a%2Fb/servers/x/state", { state: "drain" });
  assert.deepEqual(outcome && [outcome.ok, outcome.message], [false, "no such server"]);
  assert.equal(init.method, "POST");
  assert.equal(init.headers["content-type"], "application/json");
  assert.equal(init.headers["weir-request"], "1");
  assert.equal(init.body, '{"state":"drain"}');
});

/** A balancer's history by the second up to `now`.
 * @param {number} now */
const balancer = (now) => (/** @type {string} */ path) => {
  const query = new URLSearchParams(path.split("?")[1]);
  const span = Number(query.get("span_s"));
  const end = Math.min(now, Number(query.get("until_unix_ms") ?? now));
  const ended = Array.from(
    { length: Math.min(span, end / 1000) },
    (_, row) => end - (Math.min(span, end / 1000) - 1 - row) * 1000,
  );
  return Promise.resolve(answer(ended, [service("a", { requests: ended.map((at) => at / 1000) })]));
};

test("history is read as a whole once, then only its new rows", async () => {
  const paths = /** @type {string[]} */ ([]);
  let frame = /** @type {any} */ (null);
  const history = new History(
    { kinds: ["service"], columns: ["requests"], series: 1, span: 900, until: null },
    (reading) => {
      frame = reading.frame;
    },
  );
  for (const now of [2_000_000, 2_001_000, 2_002_000, 2_010_000]) {
    const read = balancer(now);
    (
      await history.read((path) => {
        paths.push(path);
        return read(path);
      }, now)
    )();
  }
  assert.deepEqual(
    paths.map((path) => new URLSearchParams(path.split("?")[1]).get("span_s")),
    ["900", "4", "4", "11"],
  );
  assert.equal(frame.ended.length, 900);
  assert.equal(frame.ended.at(-1), 2_010_000);
  const values = frame.lines.values().next().value.columns.requests;
  assert.deepEqual(
    values,
    Array.from({ length: 900 }, (_, row) => 1111 + row),
  );
});

test("a clock that was set back starts the rows again", async () => {
  const history = new History(
    { kinds: ["service"], columns: ["requests"], series: 1, span: 900, until: null },
    () => {},
  );
  await history.read(balancer(2_000_000), 2_000_000);
  await history.read(balancer(1_900_000), 1_900_000);
  assert.equal(history.frame.ended.at(-1), 1_900_000);
});

test("a span that has ended is read once", async () => {
  const history = new History({ kinds: ["service"], columns: [], series: 1, span: 900, until: 1_500_000 }, () => {});
  (await history.read(balancer(2_000_000), 2_000_000))();
  assert.equal(history.due, Infinity);
});

test("a recording answers like the balancer of its moment, and changes nothing", () => {
  const source = recorded({
    host: null,
    from: 0,
    at: 5000,
    failed: { checks: "no answer within 5 s" },
    answers: { services: { services: [] } },
    history: [
      answer(
        [1000, 2000, 3000, 4000, 5000],
        [
          service("a", { requests: [1, 2, 3, 4, 5], failed: [0, 0, 0, 0, 1] }, [
            { row: 0, cause: "x", count: 1 },
            { row: 3, cause: "y", count: 2 },
          ]),
          serverSeries("a", "s", { requests: [1, 1, 1, 1, 1] }),
        ],
      ),
    ],
  });
  assert.equal(source.act, null);
  assert.equal(source.now(), 5000);
  source.watch("services", 1000, ({ value }) => assert.deepEqual(value, { services: [] }));
  source.watch("checks", 1000, ({ value, error }) => assert.deepEqual([value, error], [null, "no answer within 5 s"]));
  source.watch("causes", 1000, ({ error }) => assert.equal(error, "it was not recorded"));
  source.history(
    { kinds: ["service"], columns: ["requests", "causes"], series: 1, span: 2, until: 4000 },
    ({ frame }) => {
      assert.deepEqual(frame.ended, [3000, 4000]);
      const [own] = [...frame.lines.values()];
      assert.deepEqual([frame.lines.size, own.columns, [...own.causes]], [1, { requests: [3, 4] }, [["y", [0, 2]]]]);
    },
  );
  source.history({ kinds: ["service"], columns: [], series: 1, span: 2, until: 500 }, ({ frame }) =>
    assert.equal(frame.ended.length, 0),
  );
});

test("a recording shows its finest rows that reach back far enough", () => {
  const rows = (/** @type {number} */ step, /** @type {number} */ number) => {
    const ended = Array.from({ length: number }, (_, row) => 6_000_000 - (number - 1 - row) * step);
    return { ...answer(ended, [service("a", { requests: ended.map(() => 1) })]), step_ms: step };
  };
  const stepOf = (/** @type {import("../src/api.js").History[]} */ history, /** @type {number} */ span) => {
    let step = 0;
    const source = recorded({ host: null, from: 0, at: 6_000_000, answers: {}, history, failed: {} });
    const query = { kinds: [/** @type {const} */ ("service")], columns: [], series: 1, span, until: null };
    source.history(query, ({ frame }) => {
      step = frame.stepMs;
    });
    return step;
  };
  const old = [rows(60_000, 90), rows(1000, 900), rows(10_000, 540)];
  assert.deepEqual([stepOf(old, 900), stepOf(old, 7200)], [1000, 10_000]);
  const young = [rows(1000, 480), rows(10_000, 48), rows(60_000, 8)];
  assert.deepEqual([stepOf(young, 900), stepOf(young, 86_400)], [1000, 1000]);
});

test("many series get longer rows instead of a part of the answer", async () => {
  const asked = /** @type {string[]} */ ([]);
  for (const [series, span] of [
    [40, 900],
    [60, 900],
    [1000, 900],
    [1000, 7200],
  ]) {
    const history = new History(
      { kinds: ["service"], columns: ["a", "b", "c", "d", "e", "f", "g"], series, span, until: null },
      () => {},
    );
    await history.read((path) => {
      asked.push(new URLSearchParams(path.split("?")[1]).get("span_s") ?? "");
      return balancer(2_000_000)(path);
    }, 2_000_000);
  }
  assert.deepEqual(asked, ["900", "910", "7260", "7260"]);
});

test("a refused history is no lost connection", async () => {
  respond((path) =>
    path.includes("history") ? { status: 400, body: { message: "no such column" } } : { status: 200, body: {} },
  );
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase }) => phases.push(phase));
  const errors = /** @type {(string | null)[]} */ ([]);
  source.history({ kinds: ["service"], columns: ["x"], series: 1, span: 900, until: null }, ({ error }) =>
    errors.push(error),
  );
  await wait(400);
  assert.deepEqual([phases.at(-1), errors], ["connected", ["no such column"]]);
});
