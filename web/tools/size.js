// Prints the size of every served file, as it is and gzipped, and fails if their sum is above the limit or the list
// of served files is not complete.

import { gzipSync } from "node:zlib";
import { contents, present, served } from "./manifest.js";

const LIMIT_BYTES = 150_000;

const rows = served().map((file) => {
  const bytes = contents(file);
  return { path: file.path, plain: bytes.length, gzipped: gzipSync(bytes, { level: 9 }).length };
});
for (const { path, plain, gzipped } of rows) {
  console.log(`${String(plain).padStart(8)} ${String(gzipped).padStart(8)}  ${path || "(the page)"}`);
}
const sum = rows.reduce((total, row) => total + row.gzipped, 0);
const plain = rows.reduce((total, row) => total + row.plain, 0);
console.log(
  `${String(plain).padStart(8)} ${String(sum).padStart(8)}  ${rows.length} files, plain and gzipped bytes; the limit is ${LIMIT_BYTES}`,
);

const listed = new Set(served().map(({ path }) => path));
const missing = present().filter((name) => !listed.has(name));
if (missing.length) console.error(`not in served.json: ${missing.join(", ")}`);
process.exit(sum > LIMIT_BYTES || missing.length ? 1 : 0);
