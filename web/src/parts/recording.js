// Saves what the page can read as a file, and opens such a file.

import { html, useState } from "../html.js";
import { SPANS } from "../logic/address.js";
import { count, plural } from "../logic/figures.js";
import { together } from "../logic/history.js";
import { usePage } from "../use.js";

export function Recording() {
  const { source, board, open } = usePage();
  const [state, setState] = useState("");
  const { read } = source;
  const save = async () => {
    if (!read) return;
    const services = board.services.map(({ service }) => service.name);
    const { recording, missing } = await recordingOf(read, source.now(), services, setState);
    download(recording);
    setState(missing.length ? `saved, without: ${missing.join("; ")}` : "saved");
  };
  const choose = async (/** @type {any} */ event) => setState(await open(event.currentTarget.files[0]));
  return html`<section class="card" aria-labelledby="recording"><h2 id="recording">Recording</h2>
    <p>A recording is a file with the state of this moment and the history. Open it later, on any machine, with this page.
      It contains the names and addresses of servers, and requests in flight with their paths.</p>
    <p class="buttons">
      ${read && html`<button type="button" onClick=${save}>Save a recording</button>`}
      <label class="button">Open a recording<input class="hidden" type="file" accept="application/json,.json" onChange=${choose} /></label>
      <span role="status">${state}</span></p></section>`;
}

const PATHS = [
  "traffic",
  "status",
  "services",
  "findings",
  "reloads",
  "changes",
  "requests",
  "causes",
  "checks",
  "configuration",
];
/** Services whose history is saved: one request is needed for each. */
const SERVICES_MAX = 200;

/** @typedef {(path: string) => Promise<any>} Read */

/** @param {Read} read @param {number} at @param {string[]} services @param {(progress: string) => void} said */
async function recordingOf(read, at, services, said) {
  /** @type {string[]} */
  const missing = [];
  const get = (/** @type {string} */ path, /** @type {string} */ name) =>
    read(path).catch((/** @type {Error} */ error) => {
      missing.push(`${name} (${error.message || "no answer"})`);
      return null;
    });
  said("reading the state…");
  const answers = await Promise.all(PATHS.map((path) => get(path, path)));
  const saved = services.slice(0, SERVICES_MAX);
  if (saved.length < services.length)
    missing.push(`the history of ${plural(services.length - saved.length, "service")}`);
  // An answer has a limited size, so the history is read service by service.
  const queries = ["kind=listener", "kind=process", ...saved.map((name) => `service=${encodeURIComponent(name)}`)];
  /** @type {import("../api.js").History[]} */
  const history = [];
  for (const { seconds, label } of SPANS) {
    /** @type {import("../api.js").History[]} */
    const parts = [];
    for (const [place, query] of queries.entries()) {
      said(`reading the history of ${label}: ${count(place + 1)} of ${count(queries.length)}…`);
      const part = await get(`history?span_s=${seconds}&limit=1000&${query}`, `history ${query}`);
      if (part) parts.push(part);
    }
    if (parts.length === 0) continue;
    const joined = parts.reduce(together);
    if (joined.left_out > 0) missing.push(`${plural(joined.left_out, "server")} in the history of ${label}`);
    history.push(joined);
  }
  const known = PATHS.map((path, place) => [path, answers[place]]).filter(([, value]) => value != null);
  return { recording: { at_unix_ms: at, answers: Object.fromEntries(known), history }, missing };
}

/** @param {{at_unix_ms: number}} recording */
function download(recording) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(recording)], { type: "application/json" }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = `weir-${new Date(recording.at_unix_ms).toISOString().replace(/[:.]/g, "-")}.json`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
