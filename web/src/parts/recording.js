// Saves what the page can read as a file of the form that `weir bundle` writes, and opens such a file.

import { html, useState } from "../html.js";
import { SPANS } from "../logic/address.js";
import { count, plural } from "../logic/figures.js";
import { together } from "../logic/history.js";
import { FORMAT, VERSION } from "../source/bundle.js";
import { usePage } from "../use.js";

export function Recording() {
  const { source, board, open } = usePage();
  const [state, setState] = useState("");
  const { read } = source;
  const save = async () => {
    const services = board.services.map(({ service }) => service.name);
    const recording = await recordingOf(read, source.now(), services, setState);
    download(recording);
    const missing = Object.entries(recording.failed).map(([path, why]) => `${path} (${why})`);
    setState(missing.length ? `saved, without: ${missing.join("; ")}` : "saved");
  };
  const choose = async (/** @type {any} */ event) => {
    const [file] = event.currentTarget.files;
    // The same file can be chosen again after it was changed.
    event.currentTarget.value = "";
    if (file) setState(await open(file));
  };
  return html`<section class="card" aria-labelledby="recording"><h2 id="recording">Recording</h2>
    <p>A recording is a file with the state of this moment and the history. Open it later, on any machine, with this page:
      here, or by dropping it on any page. <code>weir bundle</code> writes such files, too. It contains the names and addresses of servers, and requests with their paths.</p>
    <p class="buttons">
      ${source.mode === "live" && html`<button type="button" onClick=${save}>Save a recording</button>`}
      <label class="button">Open a recording<input class="hidden" type="file" accept="application/json,application/gzip,.json,.gz" onChange=${choose} /></label>
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
  "requests/ended",
  "causes",
  "checks",
  "fleet",
  "configuration",
];
/** Parameters of paths whose answers are otherwise cut. @type {Record<string, string>} */
const ALL = { "requests/ended": "?limit=10000" };
/** Services whose history is saved: one request is needed for each. */
const SERVICES_MAX = 200;

/** @typedef {(path: string) => Promise<any>} Read */

/** @param {Read} read @param {number} at @param {string[]} services @param {(progress: string) => void} said */
async function recordingOf(read, at, services, said) {
  /** @type {Record<string, string>} */
  const failed = {};
  const fail = (/** @type {string} */ path, /** @type {string} */ why) => {
    failed[path] = failed[path] == null ? why : `${failed[path]}; ${why}`;
  };
  const get = (/** @type {string} */ path, /** @type {string} */ name, /** @type {string} */ what) =>
    read(path).catch((/** @type {Error} */ error) => {
      fail(name, `${what}${error.message || "no answer"}`);
      return null;
    });
  said("reading the state…");
  const answers = await Promise.all(PATHS.map((path) => get(path + (ALL[path] ?? ""), path, "")));
  const saved = services.slice(0, SERVICES_MAX);
  if (saved.length < services.length) fail("history", `${plural(services.length - saved.length, "service")} left out`);
  // An answer has a limited size, so the history is read service by service.
  const queries = ["kind=listener", "kind=process", ...saved.map((name) => `service=${encodeURIComponent(name)}`)];
  /** @type {import("../api.js").History[]} */
  const history = [];
  for (const { seconds, label } of SPANS) {
    /** @type {import("../api.js").History[]} */
    const parts = [];
    for (const [place, query] of queries.entries()) {
      said(`reading the history of ${label}: ${count(place + 1)} of ${count(queries.length)}…`);
      const part = await get(`history?span_s=${seconds}&limit=1000&${query}`, "history", `${query}: `);
      if (part) parts.push(part);
    }
    if (parts.length === 0) continue;
    const joined = parts.reduce(together);
    if (joined.left_out > 0) fail("history", `${plural(joined.left_out, "server")} left out of ${label}`);
    history.push(joined);
  }
  const starts = history.flatMap((one) => (one.ended_unix_ms.length ? one.ended_unix_ms[0] - one.step_ms : []));
  return {
    format: FORMAT,
    version: VERSION,
    at_unix_ms: at,
    from_unix_ms: Math.min(at, ...starts),
    // The admin API does not say which host it is.
    host: null,
    answers: Object.fromEntries(
      PATHS.flatMap((path, place) => (answers[place] == null ? [] : [[path, answers[place]]])),
    ),
    history,
    failed,
  };
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
