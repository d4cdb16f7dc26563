// Saves what the page can read as a file, and opens such a file.

import { html, useState } from "../html.js";
import { SPANS } from "../logic/address.js";
import { usePage } from "../use.js";

export function Recording() {
  const { source } = usePage();
  const [state, setState] = useState("");
  const save = async () => {
    setState("reading…");
    try {
      download(await recordingOf(source));
      setState("saved");
    } catch (error) {
      setState(error instanceof Error ? error.message : "failed");
    }
  };
  return html`<section class="card" aria-labelledby="recording"><h2 id="recording">Recording</h2>
    <p>A recording is a file with the state of this moment and the history. Open it later, on any machine, with this page.
      It contains the names and addresses of servers, and requests in flight with their paths.</p>
    <p class="buttons">
      ${source.mode === "live" && html`<button type="button" onClick=${save}>Save a recording</button>`}
      <label class="button">Open a recording<input class="hidden" type="file" accept="application/json,.json"
        onChange=${(/** @type {any} */ event) => dispatchEvent(new CustomEvent("weir-open", { detail: event.currentTarget.files[0] }))} /></label>
      <span role="status">${state}</span></p></section>`;
}

const PATHS = ["traffic", "status", "services", "findings", "reloads", "requests", "causes", "checks", "configuration"];

/** @param {import("../source/source.js").Source} source */
async function recordingOf(source) {
  const at = source.now();
  const answers = await Promise.all(PATHS.map((path) => once(source, path)));
  const history = await Promise.all(SPANS.map(({ seconds }) => once(source, `history?span_s=${seconds}&limit=1000`)));
  return {
    at_unix_ms: at,
    answers: Object.fromEntries(
      PATHS.map((path, place) => [path, answers[place]]).filter(([, value]) => value != null),
    ),
    history: history.filter((one) => one != null),
  };
}

/** @param {import("../source/source.js").Source} source @param {string} path @returns {Promise<any>} */
function once(source, path) {
  return new Promise((resolve) => {
    const stop = source.watch(path, 60_000, ({ value }) => {
      queueMicrotask(() => stop());
      resolve(value);
    });
  });
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
