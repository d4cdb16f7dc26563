// An operator before the dashboard: finds what is wrong, changes it, sees it recover.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { stage, until } from "./stage.js";

const TOKEN = "0123456789abcdef0123456789abcdef";

/** The text that a person reads. @param {import("puppeteer-core").Page} page */
const text = (page) => page.evaluate(() => document.body.innerText);

/** Clicks what has this role and name. @param {import("puppeteer-core").Page} page @param {string} role @param {string} name */
async function click(page, role, name) {
  await page.locator(`::-p-aria([name="${name}"][role="${role}"])`).click();
}

test("the sentence names the slow server; two clicks drain it, and three put it back", async (t) => {
  const { page, url, servers, set, api, complaints, end } = await stage();
  t.after(end);
  const slow = servers[1];
  const state = async () => {
    const { servers: all } = await api("services/shop");
    return all.find((/** @type {any} */ one) => one.address === slow).state;
  };
  await page.goto(url);
  // The doctor may have found something else on this host.
  const isNamed = async () => {
    const banner = await page.$("section.banner");
    return banner != null && (await banner.evaluate((one) => one.textContent ?? "")).includes(slow);
  };
  const calm = async () => (await text(page)).includes("shop") && !(await isNamed());
  await until("calm page", calm);
  await set(1, "work_ms=1500");
  // The sentence at the top names it.
  await until("sentence on the slow server", isNamed);
  await page.screenshot({ path: process.env.SHOTS ? `${process.env.SHOTS}/slow-server.png` : undefined });

  // The button beside the sentence, then the one in the question.
  await click(page, "button", `Drain ${slow}…`);
  await page.waitForSelector("dialog[open]");
  await page.screenshot({ path: process.env.SHOTS ? `${process.env.SHOTS}/drain.png` : undefined });
  await click(page, "button", `Drain ${slow}`);
  await until("drained server", async () => (await state()) === "drain");
  await set(1, "work_ms=20");
  await until("end of the finding", async () => {
    const { findings } = await api("findings");
    return !findings.some((/** @type {any} */ one) => one.is_present && one.service === "shop");
  });
  await until("calm page", calm);

  // Back, on the service's page.
  await click(page, "link", "shop");
  await click(page, "button", `Change ${slow}`);
  await click(page, "button", `Set ${slow} to ready`);
  await until("server that is back", async () => (await state()) === "ready");
  assert.deepEqual(complaints, []);
});

test("a recording opens with what it has, and the key / finds a server", async (t) => {
  const { page, url, servers, api, complaints, end } = await stage();
  t.after(end);
  const folder = mkdtempSync(join(tmpdir(), "weir-recording-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  /** @param {string} name @param {object} content */
  const open = async (name, content) => {
    const file = join(folder, name);
    writeFileSync(file, JSON.stringify(content));
    const input = /** @type {import("puppeteer-core").ElementHandle<HTMLInputElement>} */ (
      await page.waitForSelector("input[type=file]")
    );
    await input.uploadFile(file);
  };
  await page.goto(`${url}#/host`);
  await page.waitForSelector("input[type=file]");
  const { at_unix_ms: at } = await api("traffic");
  const bundle = {
    format: "weir-bundle",
    version: 1,
    at_unix_ms: at,
    from_unix_ms: at - 60_000,
    host: "lb-3 <img src=x>",
    answers: { services: await api("services"), status: await api("status"), traffic: { listeners: 7 } },
    history: [await api("history?limit=1000")],
    failed: { findings: "no answer within 5 s" },
  };
  await open("other.json", { ...bundle, version: 2 });
  await until("refusal", async () => (await text(page)).includes("has version 2; this page reads version 1"));
  await open("bundle.json", bundle);
  await until("host", async () => (await text(page)).includes("recording of lb-3 <img src=x>"));
  const said = await text(page);
  assert.match(said, /findings \(no answer within 5 s\)/);
  assert.match(said, /traffic \(the recorded answer has a form that this page cannot read: at_unix_ms/);

  await page.keyboard.press("/");
  await page.waitForSelector("dialog[open] input");
  await page.keyboard.type(servers[1]);
  await until("result", async () => (await page.$("[role=option]")) != null);
  await page.keyboard.press("Enter");
  await until("page of the service", async () =>
    (await page.evaluate(() => location.hash)).startsWith("#/service/shop"),
  );
  await until("servers", async () => (await text(page)).includes(servers[1]));
  assert.equal(await page.$(`::-p-aria([name="Change ${servers[1]}"])`), null);
  await click(page, "button", "Close recording");
  await page.waitForSelector(`::-p-aria([name="Change ${servers[1]}"])`);
  assert.deepEqual(complaints, []);
});

test("a page with a token asks for it once and keeps it nowhere", async (t) => {
  const { page, url, complaints, end } = await stage({
    admin: 'token_file = "FOLDER/token"',
    files: { token: TOKEN },
  });
  t.after(end);
  await page.goto(url);
  const field = await page.waitForSelector("input[type=password]");
  await field?.type("not the token");
  await page.keyboard.press("Enter");
  await until("refusal", async () => (await text(page)).includes("The token is wrong."));
  await field?.type(TOKEN);
  await page.keyboard.press("Enter");
  await until("overview", async () => (await text(page)).includes("shop"));
  await page.reload();
  await until("overview", async () => (await text(page)).includes("shop"));
  const kept = await page.evaluate(() =>
    JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.documentElement.outerHTML]),
  );
  assert.ok(!kept.includes(TOKEN), kept);
  assert.deepEqual(
    (await page.cookies()).map(({ httpOnly, sameSite }) => ({ httpOnly, sameSite })),
    [{ httpOnly: true, sameSite: "Strict" }],
  );
  // 401 answers are in the console as errors; nothing else is.
  assert.deepEqual(
    complaints.filter((one) => !one.includes("401")),
    [],
  );
});
