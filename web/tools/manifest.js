// The files that a browser gets, from served.json: the path below /ui/, the file, its type and its contents.

import { readFileSync, readdirSync } from "node:fs";
import { withoutComments } from "./strip.js";

const here = new URL("../", import.meta.url);

/** Own: written here, so that its comments are not for the browser. Those of others have licences.
 * @typedef {{path: string, url: URL, type: string, own: boolean}} Served */

const TYPES = /** @type {Record<string, string>} */ ({
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
});

/** @returns {Served[]} */
export function served() {
  const list = /** @type {Record<string, string>} */ (JSON.parse(readFileSync(new URL("served.json", here), "utf8")));
  return Object.entries(list).map(([path, file]) => ({
    path,
    url: new URL(file, here),
    type: TYPES[file.split(".").pop() ?? ""] ?? "application/octet-stream",
    own: /^(src|styles)\//.test(file),
  }));
}

/** What a browser gets of a file.
 * @param {Served} file */
export function contents({ path, url, own }) {
  const bytes = readFileSync(url);
  return own ? Buffer.from(withoutComments(bytes.toString(), path.endsWith(".js"))) : bytes;
}

/** Files of this folder that a browser needs, for comparison with the list. */
export function present() {
  const below = (/** @type {string} */ folder) =>
    readdirSync(new URL(folder, here), { recursive: true }).map((name) => `${folder}/${String(name)}`);
  return ["src", "styles", "vendor"]
    .flatMap(below)
    .filter((name) => /\.(js|css)$/.test(name))
    .sort();
}
