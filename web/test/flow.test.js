import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceRows } from "../src/logic/services.js";
import { flow, gathered, routed } from "../src/logic/flow.js";
import { layout } from "../src/logic/layout.js";
import { finding, server, serviceState, traffic } from "./made.js";

/** @param {string} key @param {number} rate @returns {import("../src/logic/flow.js").Node} */
const node = (key, rate) => ({ key, label: key.slice(2), rate, level: "fine", word: "", service: null, stands: 1 });

test("a link from a listener has a rate only where it is known", () => {
  const configuration = {
    listeners: [
      { name: "a", protocol: "http" },
      { name: "b", protocol: "http" },
      { name: "db", protocol: "tcp", service: "store" },
    ],
    routes: [
      { listeners: ["a"], action: { forward: { split: [{ service: "one" }] } } },
      { listeners: [], action: { forward: { split: [{ service: "both" }] } } },
      { listeners: [], action: { deny: 403 } },
    ],
  };
  const links = routed(
    [node("l a", 10), node("l b", 5), node("l db", 3)],
    [node("s one", 4), node("s both", 9), node("s store", 3)],
    configuration,
  );
  const rates = Object.fromEntries(links.map((one) => [`${one.from.slice(2)}-${one.to.slice(2)}`, one.rate]));
  assert.deepEqual(rates, { "a-one": 4, "a-both": null, "b-both": null, "db-store": 3 });
});

test("a listener without traffic takes nothing from a link", () => {
  const links = routed([node("l a", 10), node("l b", 0)], [node("s one", 10)], null);
  assert.deepEqual(
    links.map((one) => one.rate),
    [10, 0],
  );
});

test("traffic to servers in trouble has a link of its own", () => {
  const figures = { a: { requests: 100 }, b: { requests: 100 }, c: { requests: 50, p50: 2000 } };
  const servers = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map((address) => server(address, { zone: "z" }));
  const slow = finding({ service: "s", servers: ["c"] });
  const rows = serviceRows([serviceState("s", servers)], traffic("s", figures), [slow]);
  const { links, columns } = flow(traffic("s", figures), rows, null);
  const toZone = links.filter((one) => one.to === "e z");
  assert.deepEqual(
    toZone.map(({ rate, level }) => [rate, level]),
    [
      [20, "fine"],
      [5, "warn"],
    ],
  );
  assert.deepEqual(
    columns[2].nodes.map(({ label, word, level }) => [label, word, level]),
    [["z", "1 slow", "warn"]],
  );
});

test("few servers stand for themselves, many for their zones", () => {
  const few = serviceRows([serviceState("s", [server("a", { zone: "z" })])], undefined, []);
  assert.equal(flow(undefined, few, null).columns[2].title, "Servers");
  const many = serviceRows(
    [
      serviceState(
        "s",
        Array.from({ length: 30 }, (_, at) => server("a" + at, { zone: "z" })),
      ),
    ],
    undefined,
    [],
  );
  assert.equal(flow(undefined, many, null).columns[2].title, "Zones");
});

test("a long column is gathered: trouble and traffic stay, rates are kept", () => {
  const nodes = Array.from({ length: 40 }, (_, at) => node("s " + at, at));
  nodes[3] = { ...nodes[3], level: "bad" };
  const links = nodes.map((one) => ({
    from: "l a",
    to: one.key,
    rate: one.rate,
    level: /** @type {const} */ ("fine"),
  }));
  const { columns, links: joined } = gathered({ columns: [{ title: "Services", nodes }], links });
  assert.equal(columns[0].nodes.length, 9);
  assert.ok(columns[0].nodes.some(({ key }) => key === "s 3"));
  const sum = (/** @type {{rate: number | null}[]} */ all) => all.reduce((total, one) => total + (one.rate ?? 0), 0);
  assert.equal(sum(joined), sum(links));
  assert.equal(columns[0].nodes.at(-1)?.stands, 32);
});

test("boxes do not overlap, and links fit into their boxes", () => {
  const figures = Object.fromEntries(["a", "b", "c"].map((address, at) => [address, { requests: 10 ** at }]));
  const rows = serviceRows(
    [
      serviceState(
        "s",
        Object.keys(figures).map((address) => server(address)),
      ),
    ],
    traffic("s", figures),
    [],
  );
  for (const width of [300, 390, 840]) {
    const drawn = layout(flow(traffic("s", figures), rows, null), width);
    for (const box of drawn.boxes) {
      assert.ok(box.x >= 0 && box.x + box.width <= width + 0.01);
      assert.ok(box.y >= 0 && box.y + box.height <= drawn.height);
      const inside = drawn.ribbons.filter((one) => one.to === box.key).reduce((sum, one) => sum + one.width, 0);
      assert.ok(inside <= box.height, `${inside} in ${box.height}`);
    }
    const servers = drawn.boxes.filter(({ key }) => key.startsWith("e ")).sort((a, b) => a.y - b.y);
    servers.slice(1).forEach((box, at) => assert.ok(box.y >= servers[at].y + servers[at].height));
  }
});

test("the height of the map does not follow the rates", () => {
  const heights = [1, 50, 4000].map((requests) => {
    const figures = { a: { requests }, b: { requests: 10 } };
    const rows = serviceRows([serviceState("s", [server("a"), server("b")])], traffic("s", figures), []);
    return layout(flow(traffic("s", figures), rows, null), 800).height;
  });
  assert.equal(new Set(heights).size, 1);
});
