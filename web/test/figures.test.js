import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytes,
  count,
  duration,
  evidence,
  figure,
  percent,
  plural,
  share,
  shortened,
  visible,
} from "../src/logic/figures.js";

const plain = (/** @type {string} */ text) => text.replaceAll("\u00a0", " ");

test("what was not measured is a dash, never zero", () => {
  for (const text of [count, figure, duration, bytes]) {
    assert.equal(text(null), "–");
    assert.equal(text(undefined), "–");
    assert.equal(text(NaN), "–");
  }
  assert.equal(percent(3, 0), "–");
  assert.equal(share(null, 10), "–");
});

test("counts have commas between thousands", () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
});

test("rates and times keep about three digits", () => {
  assert.deepEqual(
    [0, 0.003, 0.05, 0.996, 1, 9.94, 9.96, 118.4, 2184].map((value) => plain(figure(value))),
    ["0", "< 0.01", "0.05", "1", "1", "9.9", "10", "118", "2,184"],
  );
});

test("durations choose their unit without jumping over one", () => {
  const cases = /** @type {[number, string][]} */ ([
    [0.3, "0.3 ms"],
    [20, "20 ms"],
    [999.4, "999 ms"],
    [999.6, "1 s"],
    [1508, "1.5 s"],
    [59_900, "59.9 s"],
    [60_000, "1 min"],
    [90_000, "1 min 30 s"],
    [660_000, "11 min"],
    [3_599_000, "1 h"],
    [5_400_000, "1 h 30 min"],
    [7_200_000, "2 h"],
    [1_641_600_000, "19 d"],
    [1e14, "1,157,407 d"],
  ]);
  for (const [ms, text] of cases) assert.equal(plain(duration(ms)), text);
});

test("shares say when there is little, and when there is nothing", () => {
  assert.equal(plain(share(0, 100)), "0");
  assert.equal(plain(share(3, 10_000)), "0.03 %");
  assert.equal(plain(share(1, 1_000_000)), "< 0.01 %");
  assert.equal(plain(share(461, 1000)), "46 %");
});

test("sizes and plurals", () => {
  assert.equal(plain(bytes(243_000)), "243 kB");
  assert.equal(plain(bytes(64_000_000)), "64 MB");
  assert.equal(plain(plural(1, "server")), "1 server");
  assert.equal(plain(plural(1000, "server")), "1,000 servers");
});

test("evidence has its unit, and the count behind a rate", () => {
  assert.equal(
    plain(evidence({ name: "a", figure: 90, unit: "per second", in_all: 900 })),
    "90 per second; 900 in all",
  );
  assert.equal(plain(evidence({ name: "a", figure: 97.77, unit: "%" })), "98 %");
  assert.equal(evidence({ name: "a", figure: "a line" }), "a line");
});

test("long names keep both ends", () => {
  assert.equal(shortened("short", 10), "short");
  const cut = shortened("uploads-with-a-very-long-name.eu-west-1", 20);
  assert.equal(cut.length, 20);
  assert.match(cut, /^uploads.*….*st-1$/);
});

test("characters that would mislead a reader are visible", () => {
  assert.equal(visible("a\u202eb\u0007\u200bc"), "a\\u{202e}b\\u{7}\\u{200b}c");
  assert.equal(visible("\u061c\u00ad\u180e\u2060\u2064"), "\\u{61c}\\u{ad}\\u{180e}\\u{2060}\\u{2064}");
  assert.equal(visible("two\n\tlines"), "two\n\tlines");
  assert.equal(visible("<b>é</b>"), "<b>é</b>");
});
