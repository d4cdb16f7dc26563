import assert from "node:assert/strict";
import { test } from "node:test";
import { format, link, live, parse, window, zoomed } from "../src/logic/address.js";

test("what is formatted is parsed again, whatever the name", () => {
  for (const name of ["catalog", "a/b:*", "ü <script>", "100%", "a?b#c&d=e", ""]) {
    const address = { page: "service", name, at: 1795716464880, to: null, span: 7200 };
    assert.deepEqual(parse(format(address)), { ...address, name: name === "" ? "" : name });
  }
});

test("nonsense is the overview of now", () => {
  const home = { page: "overview", name: null, at: null, to: null, span: 900 };
  for (const hash of [
    "",
    "#",
    "#/",
    "#/nothing/x",
    "#/overview?at=-1&span=5",
    "#/overview?at=1e99",
    "#/overview?at=x",
  ]) {
    assert.deepEqual(parse(hash), home, hash);
  }
  assert.equal(parse("#/service/%E0%A4%A").name, "%E0%A4%A");
});

test("links keep the moment and the span", () => {
  assert.equal(link(parse("#/overview?at=5&span=7200"), "causes"), "#/causes?at=5&span=7200");
  assert.equal(link(parse("#/service/x"), "overview"), "#/overview");
});

test("the window ends now, or has the moment in its middle as far as there is time after it", () => {
  const at = parse("#/overview?at=1000000");
  assert.deepEqual(window(parse("#/overview"), 2_000_000), [1_100_000, 2_000_000]);
  assert.deepEqual(window(at, 9_000_000), [550_000, 1_450_000]);
  assert.deepEqual(window(at, 1_100_000), [200_000, 1_100_000]);
});

test("a span that was dragged over stays, until the page is live again", () => {
  const hash = zoomed(parse("#/service/x?at=5000"), 1_000_000, 1_060_400);
  assert.equal(hash, "#/service/x?to=1060400&span=60");
  assert.deepEqual(window(parse(hash), 2_000_000), [1_000_400, 1_060_400]);
  assert.deepEqual(window(parse(hash), 1_050_000), [990_000, 1_050_000]);
  assert.equal(live(parse(hash)), "#/service/x");
  assert.equal(live(parse("#/host?at=5&span=7200")), "#/host?span=7200");
  assert.equal(parse(zoomed(parse("#/"), 1000, 1001)).span, 10);
  assert.equal(parse(zoomed(parse("#/?at=1500"), 1000, 2000)).at, 1500);
});
