// Links to the answers that a page shows, as JSON in a new tab.

import { html, useState } from "../html.js";
import { API } from "../source/api.js";
import { untilOf, usePage } from "../use.js";

/** A tab that has been opened keeps its text. */
const KEPT_MS = 60_000;

export function Raw() {
  const { source, address, board } = usePage();
  const [problem, setProblem] = useState("");
  // A link sends neither the session's key nor anything to a recording.
  const linked = source.mode === "live" && !board.connection.session;
  const show = async (/** @type {string} */ path) => {
    try {
      const text = JSON.stringify(await source.read(path), null, 2);
      const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      open(url, "_blank");
      setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
      setProblem("");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : "no answer");
    }
  };
  return html`<footer class="raw"><span>Raw JSON:</span>
    ${rawPaths(address, untilOf(address, board.now)).map((path) => {
      const title = path.replace(/\?.*/, "");
      return linked
        ? html`<a key=${path} href=${API + path} target="_blank" rel="noopener" title=${API + path}>${title}</a>`
        : html`<button key=${path} type="button" class="quiet" title=${API + path} onClick=${() => show(path)}>${title}</button>`;
    })}
    <span role="status">${problem}</span></footer>`;
}

/** @type {Record<string, string[]>} */
const PATHS = {
  overview: ["traffic", "services", "findings", "changes", "status"],
  services: ["services", "traffic"],
  routes: ["configuration", "services", "traffic?servers=false", "causes"],
  requests: ["requests", "requests/ended"],
  causes: ["causes"],
  findings: ["findings"],
  checks: ["checks"],
  reloads: ["reloads"],
  certificates: ["configuration", "status"],
  fleet: ["status", "fleet"],
  configuration: ["configuration"],
  host: ["status", "findings", "traffic?servers=false"],
};

/** Pages with charts, and the series that they draw. @type {Record<string, string>} */
const HISTORY = { overview: "kind=service", causes: "kind=listener", host: "kind=process" };

/** Paths below /api/v1/ for a page.
 * @param {Address} address @param {number | null} until The end of the history that is shown.
 * @returns {string[]} */
function rawPaths({ page, name, span }, until) {
  const end = until == null ? "" : `&until_unix_ms=${Math.round(until)}`;
  const history = (/** @type {string} */ series) => `history?span_s=${span}&${series}${end}`;
  if (page === "service") {
    const service = encodeURIComponent(name ?? "");
    return [`services/${service}`, `traffic?service=${service}`, history(`service=${service}`)];
  }
  const series = HISTORY[page];
  return [...(PATHS[page] ?? []), ...(series ? [history(series)] : [])];
}
