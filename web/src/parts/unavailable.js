// Says that there is no answer for a path, and why: the figures from it are then older, or missing.

import { html } from "../html.js";
import { usePage } from "../use.js";
import { Mark } from "./mark.js";

/** @param {{path: string, why: string | null}} props */
export function Unavailable({ path, why }) {
  const { source } = usePage();
  if (why == null) return null;
  return source.recording
    ? html`<${Missing} errors=${{ [path]: why }} />`
    : html`<p class="notice"><${Mark} kind="warn" />No current answer for ${path}: ${why}</p>`;
}

/** What a recording lacks, in one line.
 * @param {{errors: Record<string, string>}} props */
export function Missing({ errors }) {
  const all = Object.entries(errors);
  if (all.length === 0) return null;
  return html`<p class="notice"><${Mark} kind="warn" />Missing in this recording: ${all.map(([path, why]) => `${path} (${why})`).join("; ")}.</p>`;
}
