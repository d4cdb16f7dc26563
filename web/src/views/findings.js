// The findings of the doctor, with evidence and remedies, and what it could not check.

import { html } from "../html.js";
import { duration, plural } from "../logic/figures.js";
import { findingKey } from "../logic/findings.js";
import { usePage, useWhen } from "../use.js";
import { FindingCard } from "../parts/finding.js";

export function FindingsView() {
  const { board, address, source } = usePage();
  const answer = board.findings;
  const looked = useWhen(answer?.looked_at_unix_ms ?? 0);
  const word = source.recording ? "" : " now";
  if (!answer)
    return html`<h1>Findings</h1><section class="card"><p class="empty">${board.errors.findings ?? "Loading…"}</p></section>`;
  if (!answer.enabled) {
    return html`<h1>Findings</h1><section class="card"><p class="empty">The doctor does not run: enabled is false in [doctor] of the configuration.</p></section>`;
  }
  const present = answer.findings.filter((one) => one.is_present);
  const ended = answer.findings.filter((one) => !one.is_present);
  const card = (/** @type {Finding} */ one) =>
    html`<${FindingCard} key=${findingKey(one)} finding=${one} chosen=${findingKey(one) === address.name} />`;
  const examined = answer.looked_at_unix_ms == null ? "has not examined this host yet" : `examined this host ${looked}`;
  const every = answer.interval_ms ? `, and does so every ${duration(answer.interval_ms)}` : "";
  const traffic = board.frame.enabled
    ? "It examines the traffic every second."
    : "It does not examine the traffic: history_memory_max is 0 in the configuration.";
  return html`<h1>Findings</h1>
    <p class="lead">The doctor ${examined}${every}. ${traffic} ${present.length ? `${plural(present.length, "finding")}${word}.` : `No findings${word}.`}</p>
    ${
      address.name != null &&
      !answer.findings.some((one) => findingKey(one) === address.name) &&
      html`<p class="notice">The chosen finding has ended, and is no longer listed: ${address.name}</p>`
    }
    ${present.map(card)}
    ${ended.length > 0 && html`<h2>Ended in the last minute</h2>${ended.map(card)}`}
    <section class="card" aria-labelledby="unchecked"><h2 id="unchecked">Not checked</h2>
      ${
        answer.could_not_check.length === 0
          ? html`<p class="empty">Everything could be checked.</p>`
          : html`<ul class="plain">${answer.could_not_check.map((one) => html`<li><b>${one.what}</b>: ${one.reason}</li>`)}</ul>
            <p class="soft">What could not be checked counts neither as good nor as bad.</p>`
      }
    </section>`;
}
