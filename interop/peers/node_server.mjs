// Node's http2 module as a server: HTTP/2 in clear text and over TLS. SIGTERM sends GOAWAY and ends
// when the requests that run have ended. interop/README.md describes the paths.
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { parseArgs } from "node:util";

const { values: words } = parseArgs({
  options: Object.fromEntries(["clear", "tls", "chain", "key", "body"].map((name) => [name, { type: "string" }])),
});
const large = readFileSync(words.body);

function fieldsOf(headers) {
  const named = Object.keys(headers).filter((name) => name.startsWith("x-f-")).sort();
  return named.map((name) => `${name}: ${headers[name]}\n`).join("") + `cookie: ${headers.cookie}\n`;
}

function answer(stream, headers) {
  const url = new URL(headers[":path"], "http://peer");
  const text = (content) => {
    stream.respond({ ":status": 200, "content-length": content.length });
    if (headers[":method"] === "HEAD") stream.end();
    else stream.end(content);
  };
  stream.on("error", (error) => console.error("stream:", headers[":path"], error.code, error.message));
  switch (url.pathname) {
    case "/small": return text("hello\n");
    case "/large": return text(large);
    case "/early": return text("early\n");
    case "/fields": return text(fieldsOf(headers));
    case "/wait": return setTimeout(() => stream.destroyed || text("hello\n"), Number(url.searchParams.get("ms")));
    case "/echo":
      stream.respond({ ":status": 200 });
      return stream.pipe(stream);
    case "/trailers":
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "6" }));
      return stream.end("hello\n");
    case "/204": return stream.respond({ ":status": 204 }, { endStream: true });
    case "/304": return stream.respond({ ":status": 304, etag: '"1"' }, { endStream: true });
    default: return stream.respond({ ":status": 404 }, { endStream: true });
  }
}

const sessions = new Set();
const servers = [];
function start(server, address) {
  server.on("session", (session) => {
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.on("error", (error) => console.error("session:", error.code, error.message));
  });
  server.on("stream", answer);
  const [host, port] = address.split(":");
  server.listen(Number(port), host);
  servers.push(server);
}
// Node counts 10 MB for each session, and cancelled responses of 5 MB longer than they exist; above it, Node
// resets new streams with ENHANCE_YOUR_CALM. Weir shares few connections among all clients.
const limits = { maxSessionMemory: 1000 };
start(http2.createServer(limits), words.clear);
start(http2.createSecureServer({ ...limits, cert: readFileSync(words.chain), key: readFileSync(words.key) }), words.tls);

process.on("SIGTERM", () => {
  for (const server of servers) server.close();
  for (const session of sessions) session.close();
});
