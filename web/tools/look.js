// Opens every page in a real browser, wide and narrow, light and dark: takes a screenshot, runs axe, and reports what axe finds serious, what the
// Content-Security-Policy blocks, errors in the console, and pages that are wider than the window.
// node tools/look.js URL FOLDER [FILTER]; with RECORDING=FILE the pages are those of a recording. FORMAT (png or webp) and
// HEIGHT (of the wide window, in CSS pixels) are those of the screenshots.

import { mkdirSync, readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

const [url = "http://127.0.0.1:9901/ui/", folder = "look", filter = ""] = process.argv.slice(2);
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FORMAT = process.env.FORMAT === "webp" ? "webp" : "png";
const HEIGHT = Number(process.env.HEIGHT ?? 1180);
const WAIT_MS = Number(process.env.WAIT_MS ?? 3500);
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

const service = process.env.SERVICE ?? "catalog";
const pages = [
  "overview",
  "services",
  "routes",
  `service/${service}`,
  "requests",
  "causes",
  "findings",
  "checks",
  "reloads",
  "certificates",
  "fleet",
  "configuration",
  "host",
];
const looks = ["light", "dark"]
  .flatMap((theme) => [1400, 390].flatMap((width) => pages.map((page) => ({ page, width, theme }))))
  .map((look) => ({ ...look, name: `${look.page.replace(/\W+/g, "-")}-${look.width}-${look.theme}` }))
  .filter(({ name }) => name.includes(filter));

mkdirSync(folder, { recursive: true });
const browser = await puppeteer.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--disable-gpu"] });
let problems = 0;
for (const { page, width, theme, name } of looks) {
  const tab = await browser.newPage();
  const said = /** @type {string[]} */ ([]);
  tab.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) said.push(message.text());
  });
  tab.on("pageerror", (error) => said.push(String(error)));
  await tab.setViewport({ width, height: width < 600 ? 844 : HEIGHT });
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await tab.goto(`${url}#/${page}`);
  if (process.env.RECORDING) await open(tab, process.env.RECORDING, page);
  await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  await tab.screenshot({ path: `${folder}/${name}.${FORMAT}`, type: FORMAT, fullPage: Boolean(process.env.FULL) });
  const wide = await tab.evaluate("document.documentElement.scrollWidth - innerWidth");
  if (Number(wide) > 0) said.push(`${wide} px wider than the window`);
  // axe runs in a world separate from the page: the policy of the page forbids other scripts.
  const world = await tab.createCDPSession();
  await world.send("Runtime.evaluate", { expression: axe });
  const { result } = await world.send("Runtime.evaluate", {
    expression: `axe.run(document, { resultTypes: ["violations"] }).then((found) => JSON.stringify(found.violations.map((one) =>
      ({ id: one.id, impact: one.impact, nodes: one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + " " + node.any.map((any) => any.message).join("; ").slice(0, 200)) }))))`,
    awaitPromise: true,
  });
  for (const { id, impact, nodes } of JSON.parse(result.value))
    said.push(`axe ${impact} ${id}\n      ${nodes.join("\n      ")}`);
  console.log(`${name}${said.length ? "" : ": nothing"}`);
  for (const one of new Set(said)) console.log(`    ${one}`);
  problems += said.length;
  await tab.close();
}
/** Opens a recording as a person does, on the page that has the button for it.
 * @param {import("puppeteer-core").Page} tab @param {string} file @param {string} page */
async function open(tab, file, page) {
  await tab.goto(`${url}#/host`);
  const input = /** @type {import("puppeteer-core").ElementHandle<HTMLInputElement>} */ (
    await tab.waitForSelector("input[type=file]")
  );
  await input.uploadFile(file);
  await tab.waitForFunction(() => document.title.includes("recording"));
  await tab.evaluate((hash) => void (location.hash = hash), `#/${page}`);
}

await browser.close();
process.exit(problems ? 1 : 0);
