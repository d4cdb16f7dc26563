// What the tests in a browser act on: a real balancer with real servers behind it, traffic, and Chromium.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer from "puppeteer-core";

const ROOT = new URL("../../", import.meta.url).pathname;
const WEIR = process.env.WEIR_BIN ?? join(ROOT, "target/debug/weir");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const APP = join(ROOT, "e2e/servers/app.py");
/** In ms. What a person would not wait for fails. */
const PATIENCE = 30_000;
/** Requests of the clients, per second. */
const RATE = 100;
const WORK_MS = 20;

/**
 * @typedef {object} Stage
 * @property {import("puppeteer-core").Page} page
 * @property {string} url Of the dashboard.
 * @property {string[]} servers Their addresses.
 * @property {(index: number, setting: string) => Promise<void>} set Changes a server: "work_ms=1500".
 * @property {(path: string) => Promise<any>} api
 * @property {string[]} complaints What the browser complained of: errors, violations of the policy.
 * @property {() => Promise<void>} end
 */

/** Three servers of the service "shop", clients of them, and a browser before the dashboard.
 * @param {{service?: string, admin?: string, files?: Record<string, string>}} [options] Lines of the service's table and of the
 *   admin table; files beside the configuration, which must be readable by their owner only.
 * @returns {Promise<Stage>} */
export async function stage({ service = "", admin = "", files = {} } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "weir-browser-"));
  /** @type {(() => unknown)[]} */
  const ends = [() => rmSync(folder, { recursive: true, force: true })];
  const end = async () => {
    const failures = [];
    for (const one of ends.reverse()) {
      try {
        await one();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length) throw failures[0];
  };
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 });
    const [front, adminPort, ...ports] = await freePorts(5);
    const servers = ports.map((port) => `127.0.0.1:${port}`);
    for (const address of servers)
      ends.push(start("/usr/bin/python3", [APP, "--address", address, "--work-ms", `${WORK_MS}`], folder));
    const tables = servers.map((address) => `[[service.shop.server]]\naddress = "${address}"\n`).join("");
    const configuration = `workers = 1
[admin]
address = "127.0.0.1:${adminPort}"
${admin.replaceAll("FOLDER", folder)}
[[listener]]
name = "public"
address = "127.0.0.1:${front}"
[[route]]
service = "shop"
[service.shop]
${service}
`;
    const file = join(folder, "weir.toml");
    writeFileSync(file, configuration + tables);
    for (const address of servers) await answered(`http://${address}/status`);
    ends.push(start(WEIR, ["serve", file], folder));
    await answered(`http://127.0.0.1:${adminPort}/ui/`);
    ends.push(clients(front));
    const browser = await puppeteer.launch({
      executablePath: CHROMIUM,
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    });
    ends.push(() => browser.close());
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE);
    await page.setViewport({ width: 1400, height: 1100 });
    const complaints = /** @type {string[]} */ ([]);
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(`${message.text()} ${message.location().url ?? ""}`);
    });
    const url = `http://127.0.0.1:${adminPort}/ui/`;
    return {
      page,
      url,
      servers,
      complaints,
      end,
      set: async (index, setting) => void (await get(`http://${servers[index]}/-/set?${setting}`)),
      api: async (path) => JSON.parse(await get(`http://127.0.0.1:${adminPort}/api/v1/${path}`)),
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Waits until what is asked for is true.
 * @template T @param {string} what @param {() => Promise<T>} ask @returns {Promise<NonNullable<T>>} */
export async function until(what, ask) {
  const late = Date.now() + PATIENCE;
  for (;;) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > late) throw new Error(`no ${what} after ${PATIENCE / 1000} s`);
    await pause(200);
  }
}

/** Starts a program; the returned function ends it.
 * @param {string} program @param {string[]} words @param {string} folder */
function start(program, words, folder) {
  const child = spawn(program, words, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return async () => {
    child.kill("SIGTERM");
    const forced = setTimeout(() => child.kill("SIGKILL"), 5000);
    await ended;
    clearTimeout(forced);
  };
}

/** Sends requests at a constant rate until the returned function is called. @param {number} port */
function clients(port) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
  const timer = setInterval(() => {
    const request = http.get({ host: "127.0.0.1", port, path: "/", agent }, (response) => response.resume());
    // A server that is to fail makes requests fail.
    request.on("error", () => {});
  }, 1000 / RATE);
  return () => {
    clearInterval(timer);
    agent.destroy();
  };
}

/** Ports that were free a moment ago. @param {number} count */
async function freePorts(count) {
  const listeners = Array.from({ length: count }, () => net.createServer().listen(0, "127.0.0.1"));
  await Promise.all(listeners.map((one) => new Promise((resolve) => one.once("listening", resolve))));
  const ports = listeners.map((one) => /** @type {net.AddressInfo} */ (one.address()).port);
  await Promise.all(listeners.map((one) => new Promise((resolve) => one.close(resolve))));
  return ports;
}

/** Waits until something answers there. @param {string} url */
async function answered(url) {
  await until(`answer from ${url}`, () =>
    get(url).then(
      () => true,
      () => false,
    ),
  );
}

/** @param {string} url @returns {Promise<string>} */
async function get(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  return response.text();
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
