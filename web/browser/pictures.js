// Draws the pictures of docs/dashboard.md again: three services in three zones, some minutes of traffic, then one server that
// becomes slow. In a network namespace of its own, which `scripts/dashboard pictures` makes, since the servers have addresses.

import { execFile, execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = new URL("../../", import.meta.url).pathname;
const WEIR = process.env.WEIR_BIN ?? join(ROOT, "target/debug/weir");
const APP = join(ROOT, "e2e/servers/app.py");
const WARM_MS = Number(process.env.WARM_MINUTES ?? 6) * 60_000;
/** The finding is there after some seconds, and its effects are to be seen. */
const SLOW_MS = 25_000;
/** Service → requests per second, and servers: address, zone, milliseconds for a request. */
const SERVICES = /** @type {Record<string, {rate: number, servers: [string, string, number][]}>} */ ({
  catalog: {
    rate: 80,
    servers: [
      ["10.0.1.5", "a", 16],
      ["10.0.1.6", "a", 19],
      ["10.0.2.5", "b", 21],
      ["10.0.2.6", "b", 24],
      ["10.0.3.5", "c", 25],
    ],
  },
  checkout: {
    rate: 20,
    servers: [
      ["10.0.1.7", "a", 31],
      ["10.0.2.7", "b", 34],
    ],
  },
  images: {
    rate: 20,
    servers: [
      ["10.0.1.8", "a", 36],
      ["10.0.2.8", "b", 38],
      ["10.0.3.8", "c", 41],
    ],
  },
});
const SLOW = "10.0.2.5";

const folder = mkdtempSync(join(tmpdir(), "weir-pictures-"));
const started = /** @type {import("node:child_process").ChildProcess[]} */ ([]);
/** @param {string} program @param {string[]} words */
const start = (program, words) => started.push(spawn(program, words, { cwd: folder, stdio: "ignore" }));
/** @param {number} ms */
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
try {
  execFileSync("ip", ["link", "set", "lo", "up"]);
  let text = '[admin]\naddress = "127.0.0.1:9900"\n[[listener]]\nname = "public"\naddress = "127.0.0.1:8080"\n';
  for (const [name, { servers }] of Object.entries(SERVICES)) {
    text += `[[route]]\nname = "${name}"\npath = "/${name}"\nservice = "${name}"\n[service.${name}]\nin_flight_max = 32\n`;
    text += 'check = { path = "/status" }\n';
    for (const [ip, zone, ms] of servers) {
      execFileSync("ip", ["address", "add", `${ip}/32`, "dev", "lo"]);
      start("/usr/bin/python3", [APP, "--address", `${ip}:8080`, "--work-ms", `${ms}`]);
      text += `[[service.${name}.server]]\naddress = "${ip}:8080"\nzone = "${zone}"\n`;
    }
  }
  const file = join(folder, "weir.toml");
  writeFileSync(file, text);
  await pause(3000);
  start(WEIR, ["serve", file]);
  await pause(2000);
  const agent = new http.Agent({ keepAlive: true });
  for (const [name, { rate }] of Object.entries(SERVICES))
    setInterval(() => {
      const request = http.get({ host: "127.0.0.1", port: 8080, path: `/${name}`, agent }, (seen) => seen.resume());
      request.on("error", () => {});
    }, 1000 / rate).unref();
  await pause(WARM_MS);
  await fetch(`http://${SLOW}:8080/-/set?work_ms=880`);
  await pause(SLOW_MS);
  const look = new URL("../tools/look.js", import.meta.url).pathname;
  for (const [view, name] of [
    ["overview-1400-light", "overview"],
    ["service-catalog-1400-light", "service"],
  ]) {
    // Without blocking: the clients go on.
    await promisify(execFile)("node", [look, "http://127.0.0.1:9900/ui/", folder, `${view}`]);
    copyFileSync(join(folder, `${view}.png`), join(ROOT, `docs/dashboard-${name}.png`));
  }
} finally {
  for (const child of started.reverse()) child.kill();
  await pause(500);
  rmSync(folder, { recursive: true, force: true });
}
process.exit(process.exitCode ?? 0);
