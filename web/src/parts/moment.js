// Says which figures of a page are those of the chosen moment or span, and which are those of now.

import { html } from "../html.js";
import { moment } from "../logic/figures.js";
import { usePage } from "../use.js";

/** @param {{now: string, then: string}} props What shows now, and what shows the moment: beginnings of sentences. */
export function MomentNote({ now, then }) {
  const { board, address, source } = usePage();
  const present = source.recording ? "the end of the recording" : "now";
  if (address.at == null) {
    return (
      address.to != null &&
      html`<p class="lead">Charts and lines show the chosen span. All figures are those of ${present}.</p>`
    );
  }
  return html`<p class="lead">${then} ${moment(address.at, board.now)}. ${now} are those of ${present}.</p>`;
}
