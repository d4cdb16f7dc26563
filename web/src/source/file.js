// Reads the text of a file, which may be compressed with gzip, as `weir bundle` writes it. A recording is read as a whole
// and takes several times its size in memory, so its size is bounded; that of a compressed one is known only while it is
// decompressed.

const BYTES_MAX = 400_000_000;
const GZIP = [0x1f, 0x8b];

/** The text, or one sentence on why there is none.
 * @param {Blob} file @param {number} [bytesMax]
 * @returns {Promise<{text: string, problem: null} | {text: null, problem: string}>} */
export async function textOf(file, bytesMax = BYTES_MAX) {
  const refused = (/** @type {string} */ problem) => ({ text: null, problem });
  const limit = `${bytesMax / 1e6} MB`;
  if (file.size > bytesMax) return refused(`This file is larger than ${limit}, too large for a recording.`);
  let gzipped = false;
  try {
    const start = new Uint8Array(await file.slice(0, GZIP.length).arrayBuffer());
    gzipped = GZIP.every((byte, at) => start[at] === byte);
    if (!gzipped) return { text: await file.text(), problem: null };
    const whole = await decompressed(file, bytesMax);
    return whole
      ? { text: await whole.text(), problem: null }
      : refused(`This file is larger than ${limit} when decompressed, too large for a recording.`);
  } catch {
    return refused(gzipped ? "This gzip file is damaged or cut off." : "The browser could not read this file.");
  }
}

/** @param {Blob} file @param {number} bytesMax @returns {Promise<Blob | null>} null: it is larger. */
async function decompressed(file, bytesMax) {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const parts = [];
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts);
    bytes += value.length;
    if (bytes > bytesMax) {
      await reader.cancel();
      return null;
    }
    parts.push(value);
  }
}
