import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned, condensed, perSecond, rateIn, rowsBefore, sumOf, total } from "../src/logic/columns.js";
import { coarser, emptyFrame, line, merge, together } from "../src/logic/history.js";
import { answer, service } from "./made.js";

test("merging adds only rows that are new, and keeps the newest", () => {
  let frame = merge(emptyFrame(), answer([1000, 2000, 3000], [service("a", { requests: [1, 2, 3] })]), 4);
  frame = merge(frame, answer([2000, 3000, 4000, 5000], [service("a", { requests: [9, 9, 4, 5] })]), 4);
  assert.deepEqual(frame.ended, [2000, 3000, 4000, 5000]);
  assert.deepEqual(line(frame, "service", "a")?.columns.requests, [2, 3, 4, 5]);
});

test("an answer without new rows changes nothing", () => {
  const first = merge(emptyFrame(), answer([1000, 2000], [service("a", { requests: [1, 2] })]), 10);
  const again = merge(first, answer([1000, 2000], [service("a", { requests: [1, 2] })]), 10);
  assert.deepEqual(again, first);
});

test("a clock that was corrected by less than half a step adds no row twice", () => {
  let frame = merge(emptyFrame(), answer([1000, 2000], [service("a", { requests: [1, 2] })]), 10);
  frame = merge(frame, answer([1300, 2300, 3300], [service("a", { requests: [1, 2, 3] })]), 10);
  assert.deepEqual(line(frame, "service", "a")?.columns.requests, [1, 2, 3]);
});

test("rows of another length start again", () => {
  const seconds = merge(emptyFrame(), answer([1000, 2000], [service("a", { requests: [1, 2] })]), 10);
  const tens = merge(
    seconds,
    { ...answer([20_000, 30_000], [service("a", { requests: [10, 20] })]), step_ms: 10_000 },
    10,
  );
  assert.deepEqual(tens.ended, [20_000, 30_000]);
});

test("a service that is new has gaps before, and one that is gone leaves", () => {
  let frame = merge(emptyFrame(), answer([1000], [service("old", { requests: [1] })]), 10);
  frame = merge(frame, answer([1000, 2000], [service("new", { requests: [null, 7] })]), 10);
  assert.equal(line(frame, "service", "old"), undefined);
  assert.deepEqual(line(frame, "service", "new")?.columns.requests, [null, 7]);
});

test("an hour of seconds does not grow beyond the bound", () => {
  let frame = emptyFrame();
  for (let second = 1; second <= 3600; second += 1) {
    const ended = [second - 1, second].filter((one) => one > 0).map((one) => one * 1000);
    const values = ended.map(() => second);
    frame = merge(
      frame,
      answer(ended, [
        service(
          "a",
          { requests: values },
          values.map((_, row) => ({ row, cause: "c" + (second % 9), count: 1 })),
        ),
      ]),
      900,
    );
  }
  assert.equal(frame.ended.length, 900);
  const own = line(frame, "service", "a");
  assert.equal(own?.columns.requests.length, 900);
  assert.equal(own?.causes.size, 9);
  for (const counts of own?.causes.values() ?? []) assert.equal(counts.length, 900);
});

test("causes that have left the rows are forgotten", () => {
  let frame = merge(
    emptyFrame(),
    answer([1000], [service("a", { requests: [1] }, [{ row: 0, cause: "gone", count: 1 }])]),
    2,
  );
  assert.deepEqual([...(line(frame, "service", "a")?.causes.keys() ?? [])], ["gone"]);
  frame = merge(frame, answer([2000, 3000], [service("a", { requests: [1, 1] })]), 2);
  assert.equal(line(frame, "service", "a")?.causes.size, 0);
});

test("rates use the time that rows cover, not their number", () => {
  const frame = merge(
    emptyFrame(),
    { ...answer([1000, 3000], [service("a", { requests: [10, 40] })]), covered_ms: [1000, 2000] },
    10,
  );
  const column = line(frame, "service", "a")?.columns.requests;
  assert.equal(rateIn(frame, column, [0, 2]), 50 / 3);
  assert.deepEqual(perSecond(frame, column), [10, 20]);
  assert.equal(rateIn(frame, column, [1, 1]), null);
});

test("sums skip what was not measured, and are null if nothing was", () => {
  const frame = merge(
    emptyFrame(),
    answer([1000, 2000], [service("a", { x: [1, null] }), service("b", { x: [2, null] })]),
    10,
  );
  assert.deepEqual(sumOf(frame, [...frame.lines.values()], "x"), [3, null]);
  assert.equal(total([null, null], [0, 2]), null);
  assert.equal(total([null, 2], [0, 2]), 2);
});

test("the rows before a moment", () => {
  const frame = merge(emptyFrame(), answer([1000, 2000, 3000, 4000], [service("a", { x: [1, 2, 3, 4] })]), 10);
  assert.deepEqual(rowsBefore(frame, 3500, 2000), [1, 3]);
  assert.deepEqual(rowsBefore(frame, 500, 2000), [0, 0]);
});

test("condensing keeps spikes and the newest cell whole", () => {
  assert.deepEqual(condensed([1, 9, 1, 1, 2], 3), [1, 9, 2]);
  assert.deepEqual(condensed([1, null, 9, 1, 1, 2], 3), [1, 9, 2]);
  assert.deepEqual(condensed([null, null], 1), [null]);
  assert.deepEqual(condensed([1, 2], 5), [1, 2]);
});

test("aligned columns have a cell for each step, and gaps for what is missing", () => {
  const frame = merge(emptyFrame(), answer([3000, 4000, 6000], [service("a", { x: [3, 4, 6] })]), 10);
  assert.deepEqual(aligned(frame, line(frame, "service", "a")?.columns.x, [1000, 6000]), [null, 3, 4, null, 6]);
});

test("two answers are joined on the rows that both have", () => {
  const one = answer([1000, 2000], [service("a", { x: [1, 2] }, [{ row: 1, cause: "c", count: 5 }])]);
  const other = answer(
    [2000, 3000],
    [
      service("b", { x: [20, 30] }, [
        { row: 0, cause: "d", count: 6 },
        { row: 1, cause: "e", count: 7 },
      ]),
    ],
  );
  const both = together(one, other);
  assert.deepEqual(both.ended_unix_ms, [2000]);
  assert.deepEqual(
    both.series.map(({ columns }) => columns.x),
    [[2], [20]],
  );
  assert.deepEqual(
    both.series.map(({ causes }) => causes),
    [[{ row: 0, cause: "c", count: 5 }], [{ row: 0, cause: "d", count: 6 }]],
  );
});

test("coarser rows keep counts, covered time and the newest moment", () => {
  const causes = [1, 4].map((row) => ({ row, cause: "c", count: 2 }));
  const frame = merge(
    emptyFrame(),
    answer([1000, 2000, 3000, 4000, 5000], [service("a", { x: [1, 2, null, null, 5] }, causes)]),
    10,
  );
  const coarse = coarser(frame, 3);
  assert.deepEqual([coarse.ended, coarse.covered, coarse.stepMs], [[2000, 4000, 5000], [2000, 2000, 1000], 2000]);
  const own = line(coarse, "service", "a");
  assert.deepEqual(
    [own?.columns.x, own?.causes.get("c")],
    [
      [3, null, 5],
      [2, 0, 2],
    ],
  );
  assert.equal(coarser(frame, 5), frame);
});
