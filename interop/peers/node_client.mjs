// Node's http2 module as a client: every case on one session. Prints a line of JSON for each case.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const { values: words } = parseArgs({
  options: Object.fromEntries(["base", "ca", "body", "cases"].map((name) => [name, { type: "string" }])),
});
const base = new URL(words.base);
const prefix = base.pathname.replace(/\/$/, "");
const large = readFileSync(words.body);
const digest = (data) => createHash("sha256").update(data).digest("hex");
let session;

function connected() {
  if (!session || session.closed || session.destroyed) {
    session = http2.connect(base.origin, words.ca && base.protocol === "https:" ? { ca: readFileSync(words.ca) } : {});
    session.on("error", () => {});
  }
  return session;
}

// Sends one request; `pace(stream)` may read the response in its own way.
function request(path, { method = "GET", headers = {}, body, pace } = {}) {
  return new Promise((resolve, reject) => {
    const stream = connected().request(
      { ":method": method, ":path": prefix + path, ...headers }, { endStream: body === undefined });
    const got = { chunks: [], trailers: {} };
    const timer = setTimeout(() => { stream.close(http2.constants.NGHTTP2_CANCEL); reject(new Error("no response in 10 s")); }, 10_000);
    stream.on("response", (fields) => { got.fields = fields; });
    stream.on("trailers", (fields) => { got.trailers = fields; });
    stream.on("error", (error) => { clearTimeout(timer); reject(error); });
    stream.on("close", () => {
      clearTimeout(timer);
      got.body = Buffer.concat(got.chunks);
      if (got.fields) resolve(got); else reject(new Error(`reset with code ${stream.rstCode} before a response`));
    });
    if (pace) pace(stream, got); else stream.on("data", (chunk) => got.chunks.push(chunk));
    if (typeof body === "function") body(stream); else if (body !== undefined) stream.end(body);
  });
}

async function expect(path, status, body, options) {
  const got = await request(path, options);
  if (got.fields[":status"] !== status) throw new Error(`status ${got.fields[":status"]}: ${got.body.subarray(0, 80)}`);
  if (digest(got.body) !== digest(body)) throw new Error(`${got.body.length} bytes that differ from the ${body.length} expected`);
  return got;
}

async function many(count, at) {
  let failed = 0, first, left = count;
  const worker = async () => {
    while (left-- > 0) await expect("/wait?ms=50", 200, "hello\n").catch((error) => { failed++; first ??= error.message; });
  };
  await Promise.all(Array.from({ length: at }, worker));
  if (failed) throw new Error(`${failed} of ${count} failed: ${first}`);
}

async function sameSession(then) {
  await expect("/small", 200, "hello\n");
  const before = session;
  await then();
  await expect("/small", 200, "hello\n");
  if (session !== before) throw new Error("the connection was closed");
}

function fields() {
  const headers = {};
  for (let n = 0; n < 40; n++) headers[`x-f-${String(n).padStart(2, "0")}`] = String(n).padStart(2, "0").repeat(75);
  const cookies = Array.from({ length: 20 }, (_, n) => `c${String(n).padStart(2, "0")}=${"v".repeat(96)}`).join("; ");
  const want = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`).join("") + `cookie: ${cookies}\n`;
  return expect("/fields", 200, want, { headers: { ...headers, cookie: cookies } });
}

const cases = {
  "get": () => expect("/small", 200, "hello\n"),
  "get-5m": () => expect("/large", 200, large),
  "post-5m": () => expect("/echo", 200, large, { method: "POST", body: large }),
  "head": async () => {
    const got = await expect("/small", 200, "", { method: "HEAD" });
    if (got.fields["content-length"] !== "6") throw new Error(`content-length ${got.fields["content-length"]}`);
  },
  "204": () => expect("/204", 204, ""),
  "304": () => expect("/304", 304, ""),
  "parallel-100": () => sameSession(() => many(100, 100)),
  "goaway": () => { report("goaway", "started", ""); return many(200, 10); },
  "trailers": async () => {
    const got = await expect("/trailers", 200, "hello\n", { headers: { te: "trailers" } });
    if (got.trailers["x-sum"] !== "6") throw new Error(`trailers ${JSON.stringify(got.trailers)}`);
  },
  "fields-8k": fields,
  "early": () => sameSession(() => expect("/early", 200, "early\n", {
    method: "POST",
    body: async (stream) => {
      for (let left = 5_000_000; left > 0 && !stream.destroyed && !stream.closed; left -= 16_384) {
        stream.write(Buffer.alloc(16_384));
        await sleep(5);
      }
      if (!stream.destroyed) stream.end();
    },
  })),
  "cancel": () => sameSession(async () => {
    for (let n = 0; n < 5; n++) {
      await request("/large", { pace: (stream) => stream.once("data", () => stream.close(http2.constants.NGHTTP2_CANCEL)) });
      await expect("/small", 200, "hello\n");
    }
  }),
  "slow-reader": () => sameSession(() => expect("/large", 200, large, {
    pace: async (stream, got) => {
      let due = 250_000;
      for await (const chunk of stream) {
        got.chunks.push(chunk);
        if ((due -= chunk.length) <= 0) {
          due = 250_000;
          await sleep(50);
          await expect("/small", 200, "hello\n");
        }
      }
    },
  })),
};

function report(name, result, why) { console.log(JSON.stringify({ case: name, result, why })); }

for (const name of words.cases.split(",")) {
  if (!cases[name]) { report(name, "n/a", ""); continue; }
  await cases[name]().then(() => report(name, "pass", ""), (error) => report(name, "fail", error.message));
}
session?.destroy();
process.exit(0);
