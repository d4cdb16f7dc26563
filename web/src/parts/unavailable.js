// Says that the balancer does not answer a path now, and why: the figures from it are then older, or missing.

import { html } from "../html.js";
import { Mark } from "./mark.js";

/** @param {{path: string, why: string | null}} props */
export function Unavailable({ path, why }) {
  return why != null && html`<p class="notice"><${Mark} kind="warn" />No current answer for ${path}: ${why}</p>`;
}
