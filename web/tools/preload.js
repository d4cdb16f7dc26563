// Lists every module in index.html as preloaded, so that a browser asks for all at once instead of following imports
// from one to the next. With --check it compares instead of writing.

import { readFileSync, writeFileSync } from "node:fs";
import { served } from "./manifest.js";

const page = new URL("../index.html", import.meta.url);
const [BEGIN, END] = ["<!-- modules -->", "<!-- end of modules -->"];

const text = readFileSync(page, "utf8");
const modules = served()
  .map(({ path }) => path)
  .filter((path) => path.endsWith(".js") && path !== "vendor/uplot.js" && path !== "src/main.js");
const lines = modules.map((path) => `    <link rel="modulepreload" href="/ui/${path}" />\n`).join("");
const [before, after] = [text.indexOf(BEGIN) + BEGIN.length, text.indexOf(END)];
const wanted = `${text.slice(0, before)}\n${lines}    ${text.slice(after)}`;

if (!process.argv.includes("--check")) {
  writeFileSync(page, wanted);
} else if (wanted !== text) {
  console.error("index.html does not preload the modules of served.json: run npm run preload");
  process.exit(1);
}
