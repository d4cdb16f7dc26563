// Copies the libraries that the page uses from node_modules into vendor/, so that the balancer can embed
// them and a build needs no npm. Their imports become relative: an import map would be an inline script,
// which the Content-Security-Policy forbids. With --check it compares instead of writing.
//
// uPlot is not here: the page uses the copy in crates/page/src/assets, see served.json.

import { existsSync, readFileSync, writeFileSync } from "node:fs";

const here = (/** @type {string} */ path) => new URL(`../${path}`, import.meta.url);

const copies = [
  { from: "preact/dist/preact.mjs", to: "preact.js", licence: "preact/LICENSE" },
  { from: "preact/hooks/dist/hooks.mjs", to: "hooks.js", licence: null },
  { from: "htm/dist/htm.mjs", to: "htm.js", licence: "htm/LICENSE" },
];

let stale = false;
const put = (/** @type {string} */ name, /** @type {string} */ text) => {
  const target = here(`vendor/${name}`);
  if (process.argv.includes("--check")) {
    if (!existsSync(target) || readFileSync(target, "utf8") !== text) {
      console.error(`vendor/${name} differs from node_modules: run npm run vendor`);
      stale = true;
    }
  } else {
    writeFileSync(target, text);
  }
};

const version = (/** @type {string} */ name) =>
  JSON.parse(readFileSync(here(`node_modules/${name}/package.json`), "utf8")).version;

for (const { from, to, licence } of copies) {
  const name = from.split("/")[0];
  const code = readFileSync(here(`node_modules/${from}`), "utf8")
    .replaceAll(/from\s*"preact"/g, 'from"./preact.js"')
    .replace(/\n?\/\/# sourceMappingURL=.*\n?/, "");
  put(to, `/*! ${name} ${version(name)}; licence in ${name}-LICENSE */\n${code.trimEnd()}\n`);
  if (licence) put(`${name}-LICENSE`, readFileSync(here(`node_modules/${licence}`), "utf8"));
}
process.exit(stale ? 1 : 0);
