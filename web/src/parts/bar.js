// Requests in flight against a limit.

import { html } from "../html.js";
import { count } from "../logic/figures.js";

/** @param {{value: number, limit: number | null, level: string}} props */
export function Bar({ value, limit, level }) {
  const width = limit ? Math.min(1, value / limit) * 64 : 0;
  return html`<span class="bar">
    ${
      limit != null &&
      html`<svg class=${level} width="64" height="8" aria-hidden="true">
      <rect class="track" width="64" height="8" rx="4" /><rect class="part" width=${width} height="8" rx="4" /></svg>`
    }
    <span class="figure">${count(value)}${limit != null && html`<small> of ${count(limit)}</small>`}</span>
  </span>`;
}
