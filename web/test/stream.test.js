import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { live } from "../src/source/live.js";
import { EventParser } from "../src/source/sse.js";
import { readStream } from "../src/source/stream.js";
import { browser, pipe, until, wait } from "./browser.js";

const STREAM = "/api/v1/stream?topics=traffic,status,services,findings,reloads,changes";
const isStream = (/** @type {string} */ path) => path.startsWith("/api/v1/stream");

beforeEach(browser.reset);
after(browser.reset);

/** A source whose stream the test writes. */
function streaming() {
  const pipes = /** @type {ReturnType<typeof pipe>[]} */ ([]);
  browser.respond = (path) => {
    if (!isStream(path)) return { status: 200, body: { polled: path } };
    const next = pipe();
    pipes.push(next);
    return { status: 200, stream: next.readable };
  };
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase }) => phases.push(phase));
  const readings = /** @type {any[]} */ ([]);
  source.watch("services", 1000, (reading) => readings.push(reading));
  return { source, pipes, phases, readings };
}

const polls = (/** @type {string} */ path) => browser.asked.filter((one) => one === `GET /api/v1/${path}`).length;

test("events are put together from pieces, and comments and unknown lines are left out", () => {
  const parser = new EventParser(1000);
  assert.deepEqual(parser.push(": hello\n\nevent: traffic\nda"), []);
  assert.deepEqual(parser.push('ta: {"a":\ndata:1}\r\n\r\nid: 7\nevent: status\ndata: x\n'), [
    { event: "traffic", data: '{"a":\n1}' },
  ]);
  assert.deepEqual(parser.push("\ndata\n\nevent: none\n\n"), [
    { event: "status", data: "x" },
    { event: "message", data: "" },
  ]);
});

test("an event cannot grow without end", () => {
  const parser = new EventParser(100);
  assert.throws(() => parser.push(`data: ${"x".repeat(200)}`), RangeError);
  const lines = new EventParser(100);
  assert.throws(() => Array.from({ length: 20 }, () => lines.push("data: 123456789\n")), RangeError);
});

test("a stream ends by silence, by its end, or because it is stopped", async () => {
  const { readable, send, end } = pipe();
  browser.respond = () => ({ status: 200, stream: readable });
  const listener = { heard() {}, event() {} };
  const never = new AbortController().signal;
  send(": alive\n");
  const silent = await readStream("/x", {}, never, listener, 60);
  assert.deepEqual(silent, { kind: "lost", why: "Nothing was received for 0.06 s.", silent: true });
  end();
  const ended = pipe();
  browser.respond = () => ({ status: 200, stream: ended.readable });
  ended.end();
  assert.equal((await readStream("/x", {}, never, listener)).kind, "lost");
  const stop = new AbortController();
  browser.respond = () => ({ status: 200, stream: pipe().readable });
  setTimeout(() => stop.abort(), 20);
  assert.deepEqual(await readStream("/x", {}, stop.signal, listener), { kind: "stopped" });
});

test("text that is cut within a letter arrives whole", async () => {
  const bytes = new TextEncoder().encode('event: a\ndata: "é"\n\nevent: closing\ndata: {}\n\n');
  const cut = bytes.indexOf(0xc3) + 1;
  const readable = new ReadableStream({
    start(controller) {
      controller.enqueue(bytes.slice(0, cut));
      controller.enqueue(bytes.slice(cut));
    },
  });
  browser.respond = () => ({ status: 200, stream: readable });
  const seen = /** @type {any[]} */ ([]);
  const end = await readStream("/x", {}, new AbortController().signal, { heard() {}, event: (one) => seen.push(one) });
  assert.deepEqual([seen, end], [[{ event: "a", data: '"é"' }], { kind: "closing" }]);
});

test("what is pushed is not polled; the rest is", async () => {
  const { source, pipes, phases, readings } = streaming();
  source.watch("causes", 300, () => {});
  await wait(50);
  pipes[0].event("services", { services: [] });
  await until(() => readings.length > 0 && polls("causes") >= 2);
  assert.deepEqual(readings, [{ value: { services: [] }, error: null }]);
  assert.equal(phases.at(-1), "connected");
  assert.equal(polls("services"), 0);
  assert.ok(polls("causes") >= 2);
  assert.equal(browser.asked.filter((one) => one === `GET ${STREAM}`).length, 1);
});

test("a topic that is unavailable says why, and keeps its last answer", async () => {
  const { pipes, readings } = streaming();
  await wait(50);
  pipes[0].event("unavailable", { topic: "services", message: "not here" });
  await wait(50);
  assert.deepEqual(readings.at(-1), { value: null, error: "not here" });
  pipes[0].event("services", { services: [1] });
  pipes[0].event("unavailable", { topic: "services", message: "no longer" });
  await wait(50);
  assert.deepEqual(readings.at(-1), { value: { services: [1] }, error: "no longer" });
});

test("with too many streams the topics are polled", async () => {
  browser.respond = (path) =>
    isStream(path) ? { status: 503, body: { error: "too_many_streams", message: "8" } } : { status: 200, body: {} };
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase }) => phases.push(phase));
  source.watch("services", 300, () => {});
  await until(() => polls("services") >= 2);
  assert.ok(polls("services") >= 2);
  assert.equal(browser.asked.filter((one) => one === `GET ${STREAM}`).length, 1);
  assert.equal(phases.at(-1), "connected");
});

test("a process that closes is followed at once by the next", async () => {
  const { pipes, phases } = streaming();
  await wait(1100);
  pipes[0].event("closing", {});
  await wait(50);
  assert.equal(pipes.length, 2);
  assert.ok(!phases.includes("lost"));
});

test("a process that closes again and again is not asked without a pause", async () => {
  const { pipes, phases } = streaming();
  await wait(50);
  pipes[0].event("closing", {});
  await wait(100);
  assert.deepEqual([pipes.length, phases.at(-1)], [1, "lost"]);
});

test("a broken stream is a lost connection, and is opened again after a while", async () => {
  const { pipes, phases } = streaming();
  await wait(50);
  pipes[0].event("services", {});
  await wait(50);
  pipes[0].end();
  await wait(50);
  assert.equal(phases.at(-1), "lost");
  await wait(1300);
  assert.equal(pipes.length, 2);
  assert.equal(phases.at(-1), "connected");
});

test("a balancer that restarts has its stream again as soon as it answers", async () => {
  const { pipes, phases } = streaming();
  await wait(1100);
  const answers = browser.respond;
  browser.respond = () => ({ status: 0 });
  pipes[0].event("closing", {});
  await wait(100);
  assert.equal(phases.at(-1), "lost");
  browser.respond = answers;
  await wait(1300);
  assert.deepEqual([pipes.length, phases.at(-1)], [2, "connected"]);
});

test("an event that is no JSON ends the stream", async () => {
  const { pipes, phases } = streaming();
  await wait(50);
  pipes[0].send("event: services\ndata: {\n\n");
  await wait(50);
  assert.equal(phases.at(-1), "lost");
});

test("a hidden page closes the stream, and opens it when it is shown", async () => {
  const { pipes } = streaming();
  await wait(50);
  browser.hide(true);
  await wait(300);
  assert.equal(pipes.length, 1);
  browser.hide(false);
  await wait(50);
  assert.equal(pipes.length, 2);
});

test("the stream carries the session, and a refused one asks for the token", async () => {
  browser.stored.set("weir-session", "old");
  const keys = /** @type {string[]} */ ([]);
  browser.respond = (_path, { headers }) => {
    keys.push(headers["weir-session"]);
    return { status: 401, body: {} };
  };
  const source = live();
  const phases = /** @type {string[]} */ ([]);
  source.connection(({ phase, session }) => phases.push(`${phase} ${session}`));
  source.watch("services", 1000, () => {});
  await wait(100);
  assert.deepEqual(keys, ["old"]);
  assert.deepEqual(phases, ["connecting true", "signed-out false"]);
  assert.equal(browser.stored.size, 0);
});
