// Leaves the dashboard open and measures whether it grows: node browser/open.js [MINUTES, 60 by default].
//
// One page stays on the overview, another one goes through all views. Every minute, after a collection of garbage, the heap,
// the nodes and the listeners of both are printed. The history of the last 15 minutes fills up first, so the five minutes after
// it are compared with the last five. Exit code 1 if something has grown by more than a tenth.

import { stage } from "./stage.js";

/** @typedef {{heap: number, nodes: number, listeners: number}} Size What a page holds. */

const VIEWS = [
  "",
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
const MINUTE = 60_000;
/** In minutes: what the page keeps by the second. */
const FILLED = 15;
const COMPARED = 5;
const GROWTH_MAX = 0.1;
/** Below this many bytes, or nodes, a tenth is chance. */
const SLACK = { heap: 500_000, nodes: 50, listeners: 20 };

const minutes = Number(process.argv[2] ?? 60);
if (!(minutes >= FILLED + 2 * COMPARED)) {
  console.error(`open: at least ${FILLED + 2 * COMPARED} minutes`);
  process.exit(2);
}
const { page: still, url, complaints, end } = await stage();
const moving = await still.browser().newPage();
try {
  await still.goto(url);
  await moving.goto(url);
  const sessions = await Promise.all([still, moving].map((page) => page.createCDPSession()));
  for (const session of sessions) {
    await session.send("Performance.enable");
    // A page in the background would rest.
    await session.send("Emulation.setFocusEmulationEnabled", { enabled: true });
  }
  const seen = /** @type {Size[][]} */ ([[], []]);
  for (let minute = 1; minute <= minutes; minute++) {
    const late = Date.now() + MINUTE;
    for (let step = 0; Date.now() < late; step++) {
      await moving.evaluate((view) => void (location.hash = `#/${view}`), VIEWS[step % VIEWS.length] ?? "");
      await new Promise((resolve) => setTimeout(resolve, Math.min(5000, Math.max(0, late - Date.now()))));
    }
    await moving.evaluate(() => void (location.hash = "#/"));
    const sizes = await Promise.all(sessions.map(size));
    sizes.forEach((one, index) => seen[index]?.push(one));
    const shown = sizes.map(
      (one) => `${(one.heap / 1e6).toFixed(1)} MB, ${one.nodes} nodes, ${one.listeners} listeners`,
    );
    console.log(`minute ${minute}: overview ${shown[0]}; all views ${shown[1]}`);
  }
  const grown = seen.flatMap((all, index) => growth(index ? "all views" : "overview", all));
  for (const complaint of complaints) console.error(`open: the browser complains: ${complaint}`);
  process.exitCode = grown.length || complaints.length ? 1 : 0;
} finally {
  await end();
}

/** What a page holds, garbage not counted. @param {import("puppeteer-core").CDPSession} session @returns {Promise<Size>} */
async function size(session) {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  /** @param {string} name */
  const of = (name) => metrics.find((one) => one.name === name)?.value ?? NaN;
  return { heap: of("JSHeapUsedSize"), nodes: of("Nodes"), listeners: of("JSEventListeners") };
}

/** Prints how much a page has grown; returns what has grown too much. @param {string} name @param {Size[]} all */
function growth(name, all) {
  const keys = /** @type {(keyof Size)[]} */ (["heap", "nodes", "listeners"]);
  return keys.filter((key) => {
    /** @param {Size[]} some */
    const mean = (some) => some.reduce((sum, one) => sum + one[key], 0) / some.length;
    const before = mean(all.slice(FILLED, FILLED + COMPARED));
    const after = mean(all.slice(-COMPARED));
    const share = ((after / before - 1) * 100).toFixed(1);
    console.log(`${name}: ${key} ${Math.round(before)} → ${Math.round(after)} (${share} %)`);
    return after > before * (1 + GROWTH_MAX) && after - before > SLACK[key];
  });
}
