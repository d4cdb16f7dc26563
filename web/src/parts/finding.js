// One finding: what, since when, how sure, the evidence, what to do, how to verify.

import { html, useEffect, useRef, useState } from "../html.js";
import { link } from "../logic/address.js";
import { duration, evidence, moment } from "../logic/figures.js";
import { about, findingKey, levelOf } from "../logic/findings.js";
import { usePage } from "../use.js";
import { ChangeServer, proposed } from "./change.js";
import { Copy } from "./copy.js";
import { Mark } from "./mark.js";
import { Prose } from "./prose.js";

const EVIDENCE_ROWS = 8;
const SERVERS_MAX = 4;

/** @param {{finding: Finding, chosen: boolean}} props */
export function FindingCard({ finding, chosen }) {
  const { board, address, source } = usePage();
  const card = useRef(/** @type {HTMLElement | null} */ (null));
  const [all, setAll] = useState(false);
  const [change, setChange] = useState(/** @type {import("./change.js").ServerChange | null} */ (null));
  useEffect(() => {
    if (chosen) card.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const level = levelOf(finding.severity);
  const lasted = duration((finding.is_present ? board.now : finding.last_seen_unix_ms) - finding.first_seen_unix_ms);
  const rows = all ? finding.evidence : finding.evidence.slice(0, EVIDENCE_ROWS);
  const { service, rows: servers } = about(finding, board.services) ?? { service: null, rows: [] };
  const consequences = finding.consequences ?? [];
  return html`<article ref=${card} class=${`card finding ${level}${chosen ? " chosen" : ""}`} id=${findingKey(finding)}>
    <p class="over"><span class=${"state " + level}><${Mark} kind=${level} />${finding.severity}</span>
      <span>${finding.certainty}</span><span>${finding.rule}</span>
      <span>since ${moment(finding.first_seen_unix_ms, board.now)}, ${finding.is_present ? "for" : "ended after"} ${lasted}</span>
      ${finding.namespace && html`<span>network namespace ${finding.namespace}</span>`}</p>
    <h2 class="what">${finding.what}</h2>
    <dl>
      <dt>Evidence</dt><dd><table class="evidence"><tbody>${rows.map(
        (one) => html`<tr>
        <th scope="row">${one.name}</th><td>${evidence(one)}</td></tr>`,
      )}</tbody></table>
        ${
          finding.evidence.length > EVIDENCE_ROWS &&
          html`<button type="button" class="quiet" onClick=${() => setAll(!all)}>
          ${all ? "Fewer" : `All ${finding.evidence.length} pieces of evidence`}</button>`
        }</dd>
      ${consequences.length > 0 && html`<dt>Consequences</dt><dd><ul class="plain">${consequences.map(({ what }) => html`<li>${what}</li>`)}</ul></dd>`}
      <dt>Why it matters</dt><dd><${Prose} text=${finding.why} /></dd>
      ${(finding.remedy ?? []).map(
        (remedy, at) => html`<dt>${at === 0 ? "To do" : "Or"}</dt><dd>
        <p><${Prose} text=${remedy.action} /></p>
        ${(remedy.commands ?? []).map((command) => html`<${Copy} text=${command} />`)}
        <p class="soft">Risk: ${remedy.risk}</p></dd>`,
      )}
      ${
        service &&
        html`<dt>Service</dt><dd class="buttons"><a href=${link(address, "service", service.service.name)}>${service.service.name}</a>
        ${
          source.act &&
          servers.slice(0, SERVERS_MAX).map(
            ({
              server,
            }) => html`<button type="button" onClick=${() => setChange(proposed(service.service.name, server))}>
            Change ${server.address}…</button>`,
          )
        }</dd>`
      }
      <dt>Verify</dt><dd><${Prose} text=${finding.verify} /></dd>
      <dt>Sources</dt><dd class="soft">${finding.source.join(", ")}</dd>
    </dl>
    ${change && html`<${ChangeServer} change=${change} onClose=${() => setChange(null)} />`}
  </article>`;
}
