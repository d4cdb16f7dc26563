// A server for development: the files as a balancer serves them, below /ui/ and with the same policy, and the API and
// sessions of a running balancer: node dev.js [PORT] [ADMIN-ADDRESS]

import http from "node:http";
import { contents, served } from "./tools/manifest.js";

const port = Number(process.argv[2] ?? 9901);
const [host, adminPort] = (process.argv[3] ?? "127.0.0.1:9900").split(":");

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

http
  .createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0];
    if (path.startsWith("/api/") || path === "/ui/session") return forward(request, response);
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
    return response.end(contents(found));
  })
  .listen(port, "127.0.0.1", () =>
    console.log(`http://127.0.0.1:${port}/ui/ for the balancer at ${host}:${adminPort}`),
  );

/** Forwards a request to the balancer, and its answer as it arrives, which may be a stream of events. The balancer rejects
 * foreign origins and hosts, and this server's are foreign to it. Its cookie is sent to every port of the host.
 * @param {http.IncomingMessage} request @param {http.ServerResponse} response */
function forward(request, response) {
  const { origin: _origin, ...headers } = request.headers;
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
  response.on("close", () => there.destroy());
  request.pipe(there);
}
