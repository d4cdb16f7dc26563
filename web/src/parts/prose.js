// Text of the API in which names stand between backticks.

import { html } from "../html.js";

/** @param {{text: string}} props */
export function Prose({ text }) {
  return html`${text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part))}`;
}
