import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { test } from "node:test";
import { textOf } from "../src/source/file.js";

const text = JSON.stringify({ host: "é" }) + " ".repeat(100_000);

test("a file is read as it is, or decompressed", async () => {
  assert.equal((await textOf(new Blob([text]))).text, text);
  assert.equal((await textOf(new Blob([gzipSync(text)]))).text, text);
  assert.equal((await textOf(new Blob([]))).text, "");
});

test("what is too large is refused, also if only its contents are", async () => {
  assert.match((await textOf(new Blob([text]), 50_000)).problem ?? "", /^This file is larger than 0\.05 MB, too/);
  assert.match((await textOf(new Blob([gzipSync(text)]), 50_000)).problem ?? "", /when decompressed/);
});

test("a damaged or cut file is refused", async () => {
  const whole = gzipSync(text);
  for (const bytes of [
    whole.subarray(0, 60),
    whole.subarray(0, 2),
    Buffer.concat([whole.subarray(0, 20), Buffer.alloc(9, 7)]),
  ])
    assert.match((await textOf(new Blob([bytes]))).problem ?? "", /damaged or cut off/);
});
