import assert from "node:assert/strict";
import { test } from "node:test";
import { routesOf } from "../src/logic/routes.js";
import { found, items } from "../src/logic/search.js";
import { serviceRows } from "../src/logic/services.js";
import { finding, server, serviceState, traffic } from "./made.js";

const services = serviceRows(
  [
    serviceState("catalog", [server("10.0.2.15:80", { name: "c1.internal:80" }), server("10.0.2.16:80")]),
    serviceState("cat", [server("10.0.3.1:80")]),
  ],
  traffic("catalog", { "10.0.2.15:80": { requests: 90, failed: 9 }, "10.0.2.16:80": { requests: 10 } }),
  [],
);
const forward = (/** @type {string[]} */ ...names) => ({
  forward: { split: names.map((service) => ({ service, weight: 1 })), mirror: [{ service: "shadow" }] },
});
const configuration = {
  listeners: [
    { name: "public", protocol: "http", service: null },
    { name: "db", protocol: "tcp", service: "cat", server_names: { "a.example": "cat" } },
  ],
  routes: [
    {
      name: "shop",
      listeners: ["public"],
      host: "a.example",
      path: { prefix: "/catalog" },
      method: "GET",
      header: [["X-Team", "search"]],
      conditions: ["client in 10.0.0.0/8"],
      action: forward("catalog"),
      rate_limits: [{ requests: 10, per_ms: 1000, by: "client" }],
      authenticate: "staff",
    },
    {
      name: "gone",
      path: { exact: "/old" },
      action: { redirect: { status: 308, host: "b.example", port: null, path: { whole: "/new" } } },
    },
    { name: "rest", path: { prefix: "/" }, action: forward("cat", "nowhere") },
    { name: "denied", action: { deny: 403 } },
    {
      name: "shed",
      action: {
        forward: {
          split: [
            { service: "beyond", weight: 3 },
            { deny: 503, weight: 1 },
          ],
        },
      },
    },
  ],
};

test("routes say what matches, where requests go, and what applies to them", () => {
  const maintenance = /** @type {any} */ ([{ kind: "route", name: "rest", on: true }]);
  const all = routesOf(configuration, services, maintenance);
  assert.deepEqual(
    all.map(({ name, listeners, match, action, services: to }) => [
      name,
      listeners,
      match,
      action || to.map((one) => one.name).join(),
    ]),
    [
      [
        "shop",
        "public",
        "GET · a.example · /catalog and below · header X-Team = search · client in 10.0.0.0/8",
        "catalog",
      ],
      ["gone", "all", "/old only", "redirects (308) to host b.example, path /new"],
      ["rest", "all", "any request", "cat,nowhere"],
      ["denied", "all", "any request", "answers 403"],
      ["shed", "all", "any request", "beyond,answers 503"],
      ["tcp db", "db", "server name a.example", "cat"],
      ["tcp db", "db", "any other server name", "cat"],
    ],
  );
  assert.deepEqual(
    all[0].more.map((one) => one.replaceAll("\u00a0", " ")),
    ["at most 10 requests per 1 s, by client", "requires authentication by staff", "mirrored to shadow"],
  );
  assert.deepEqual(
    all[2].services.map(({ known }) => known),
    [true, false],
  );
  assert.equal(all[2].condition?.word, "maintenance");
});

test("a route has a rate only if no other one leads to its services", () => {
  const [shop, gone, rest] = routesOf(configuration, services, []);
  assert.deepEqual([shop.rate, shop.failed, shop.requests], [10, 9, 100]);
  assert.deepEqual([gone.rate, rest.rate], [null, null]);
  assert.match(rest.uncounted, /3 routes lead to cat/);
});

test("routes of a configuration that is missing or strange are few, not an exception", () => {
  assert.deepEqual(routesOf(undefined, [], []), []);
  const strange = { routes: [{ header: [null, { a: 1 }], action: null }, {}], listeners: "x" };
  assert.equal(routesOf(strange, services, []).length, 2);
});

const all = items({
  services,
  findings: [finding({ namespace: "app" })],
  configuration,
  causes: [],
  requests: /** @type {any} */ ([
    { request_id: "4e2c62745b5cc915", method: "GET", path: "/catalog/17", client: "192.0.2.7:999" },
    { request_id: null, method: null, client: "192.0.2.8:1", listener: "db", server: null },
  ]),
  ended: [{ ended_unix_ms: 1000, kept_for: "cause", request_id: "77aa11", method: "POST", cause: "queue_full" }],
  pages: ["overview", "causes"],
});
const names = (/** @type {string} */ text) => found(all, text).shown.map(({ kind, label }) => `${kind} ${label}`);

test("whole names are found first, then beginnings, then parts and other words", () => {
  assert.deepEqual(names("cat").slice(0, 2), ["service cat", "service catalog"]);
  assert.equal(names("10.0.2.16")[0], "server 10.0.2.16:80");
  assert.equal(names("C1.internal")[0], "server 10.0.2.15:80");
  assert.equal(names("4e2c")[0], "request 4e2c62745b5cc915");
  assert.equal(names("77aa")[0], "request 77aa11");
  assert.equal(names("192.0.2.8")[0], "request 192.0.2.8:1");
  assert.equal(names("server_slow app")[0], "finding 10.0.2.15:80 of catalog is slow.");
  assert.equal(names("caus")[0], "page causes");
  assert.deepEqual([names(""), names("nothing at all")], [[], []]);
});

test("a search shows a part of many results, and counts the others", () => {
  const many = Array.from({ length: 4000 }, (_, at) => server(`10.0.${at >> 8}.${at & 255}:80`));
  const given = { findings: [], configuration: null, causes: [], requests: [], ended: [], pages: [] };
  const { shown, more } = found(
    items({ ...given, services: serviceRows([serviceState("s", many)], undefined, []) }),
    "10.0",
  );
  assert.deepEqual([shown.length, shown.length + more], [12, 4000]);
});
