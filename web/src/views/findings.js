// What the doctor found, with evidence and remedies, and what it could not check.

import { html } from "../html.js";
import { ago, plural } from "../logic/figures.js";
import { findingKey } from "../logic/headline.js";
import { usePage } from "../use.js";
import { FindingCard } from "../parts/finding.js";

/** @typedef {import("../api.js").Finding} Finding */

export function FindingsView() {
  const { board, address } = usePage();
  const answer = board.findings;
  if (!answer) return html`<h1>Findings</h1><section class="card"><p class="empty">Loading…</p></section>`;
  if (!answer.enabled) {
    return html`<h1>Findings</h1><section class="card"><p class="empty">The doctor does not run: enabled is false in [doctor] of the configuration.</p></section>`;
  }
  const present = answer.findings.filter((one) => one.is_present);
  const over = answer.findings.filter((one) => !one.is_present);
  const card = (/** @type {Finding} */ one) =>
    html`<${FindingCard} key=${findingKey(one)} finding=${one} chosen=${findingKey(one) === address.name} />`;
  const looked =
    answer.looked_at_unix_ms == null ? "has not looked yet" : `looked ${ago(board.now - answer.looked_at_unix_ms)}`;
  return html`<h1>Findings</h1>
    <p class="lead">The doctor ${looked}${answer.interval_ms ? `; it looks every ${answer.interval_ms / 1000} s` : ""}. ${present.length ? `${plural(present.length, "finding")} now.` : "It finds nothing now."}</p>
    ${present.map(card)}
    ${over.length > 0 && html`<h2>Over, in the last minute</h2>${over.map(card)}`}
    <section class="card" aria-labelledby="unchecked"><h2 id="unchecked">What could not be checked</h2>
      ${
        answer.could_not_check.length === 0
          ? html`<p class="empty">Everything could be checked.</p>`
          : html`<ul class="plain">${answer.could_not_check.map((one) => html`<li><b>${one.what}</b>: ${one.reason}</li>`)}</ul>
            <p class="soft">What could not be checked counts neither as good nor as bad.</p>`
      }
    </section>`;
}
