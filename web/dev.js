// A server for development: the files as a balancer serves them, below /ui/ and with the same policy, and /api/ of a
// running balancer: node dev.js [PORT] [ADMIN-ADDRESS]
// With a token on the balancer, the page's sign-in works as well: this server keeps the token of a session.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { served } from "./tools/manifest.js";

const port = Number(process.argv[2] ?? 9901);
const [host, adminPort] = (process.argv[3] ?? "127.0.0.1:9900").split(":");

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

http
  .createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0];
    if (path.startsWith("/api/")) return forward(request, response);
    if (path === "/ui/session" && request.method === "POST") return signIn(request, response);
    // The list is read again each time, so that new files need no restart.
    const found = served().find((one) => "/ui/" + one.path === path);
    if (!found) {
      response.writeHead(path === "/" ? 302 : 404, path === "/" ? { location: "/ui/" } : {});
      return response.end();
    }
    response.writeHead(200, {
      "content-type": found.type,
      "content-security-policy": POLICY,
      "x-content-type-options": "nosniff",
      "cache-control": "no-cache",
    });
    return response.end(readFileSync(found.url));
  })
  .listen(port, "127.0.0.1", () =>
    console.log(`http://127.0.0.1:${port}/ui/ for the balancer at ${host}:${adminPort}`),
  );

/** Tokens by session. @type {Map<string, string>} */
const sessions = new Map();

/** @param {http.IncomingMessage} request @param {http.ServerResponse} response */
async function signIn(request, response) {
  let body = "";
  for await (const piece of request) body += piece;
  const authorization = `Bearer ${JSON.parse(body).token}`;
  const asked = http.get({ host, port: adminPort, path: "/api/v1/status", headers: { authorization } }, (answer) => {
    answer.resume();
    const session = randomUUID();
    if (answer.statusCode === 200) sessions.set(session, authorization);
    response.writeHead(answer.statusCode === 200 ? 204 : 401, {
      "set-cookie": `session=${session}; HttpOnly; SameSite=Strict; Path=/`,
    });
    response.end();
  });
  asked.on("error", () => response.destroy());
}

/** The API rejects foreign origins and hosts, and this server's are foreign to it.
 * @param {http.IncomingMessage} request @param {http.ServerResponse} response */
function forward(request, response) {
  const { origin: _origin, cookie = "", ...headers } = request.headers;
  const session = /session=([^;]+)/.exec(cookie)?.[1];
  const authorization = session && sessions.get(session);
  if (authorization) headers.authorization = authorization;
  const there = http.request(
    {
      host,
      port: adminPort,
      method: request.method,
      path: request.url,
      headers: { ...headers, host: `${host}:${adminPort}` },
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  there.on("error", () => response.destroy());
  request.pipe(there);
}
