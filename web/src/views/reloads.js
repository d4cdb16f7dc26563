// Reloads and their receipts, and a reload by hand.

import { html, useState } from "../html.js";
import { summary } from "../logic/events.js";
import { count, duration, moment, plural } from "../logic/figures.js";
import { usePage, useWatch } from "../use.js";
import { Dialog } from "../parts/dialog.js";
import { Mark } from "../parts/mark.js";

/** @typedef {import("../api.js").Reload} Receipt */

const KINDS = /** @type {Record<string, string>} */ ({ applied: "good", unchanged: "change", refused: "bad" });

export function ReloadsView() {
  const { board } = usePage();
  const { value, error } = useWatch("reloads");
  const reloads = /** @type {Receipt[] | undefined} */ (value?.reloads);
  return html`<h1>Reloads</h1>
    <p class="lead">Configuration ${board.status?.generation ?? "–"} is in force.</p>
    <${Reload} />
    ${!reloads && html`<section class="card"><p class="empty">${error ?? "Loading…"}</p></section>`}
    ${reloads?.length === 0 && html`<section class="card"><p class="empty">The configuration has not been reloaded since the process started.</p></section>`}
    ${reloads?.map((one) => html`<${ReceiptCard} key=${one.at} reload=${one} now=${board.now} />`)}`;
}

const EFFECT = {
  verb: "Reload the configuration",
  sentences: [
    "Weir reads its configuration file. If it has no error, it is in force at once, for new requests.",
    "If it has an error, nothing changes and the errors are shown here.",
  ],
  warning: null,
};

function Reload() {
  const { source } = usePage();
  const [open, setOpen] = useState(false);
  if (!source.act) return null;
  return html`<p><button type="button" onClick=${() => setOpen(true)}>${EFFECT.verb}…</button></p>
    ${open && html`<${Dialog} heading="Reload" effect=${EFFECT} perform=${() => source.act?.("reload", null)} onClose=${() => setOpen(false)} />`}`;
}

/** @param {{reload: Receipt, now: number}} props */
function ReceiptCard({ reload, now }) {
  const kind = KINDS[reload.result] ?? "change";
  const { carried } = reload;
  return html`<article class="card finding">
    <p class="over"><span class=${"state " + kind}><${Mark} kind=${kind} />${reload.result}</span>
      <span>${moment(Date.parse(reload.at), now)}</span><span>by ${reload.trigger}</span><span>took ${duration(reload.took_ms)}</span>
      ${reload.first_used_after_ms != null && html`<span>first used after ${duration(reload.first_used_after_ms)}</span>`}</p>
    <h2 class="what">${reload.result === "refused" ? "The previous configuration stays in force" : `Configuration ${reload.generation}`}</h2>
    <dl>
      ${reload.changes && html`<dt>Changed</dt><dd>${summary(reload)}${details(reload).map((line) => html`<div class="mono">${line}</div>`)}</dd>`}
      ${
        carried &&
        html`<dt>Kept</dt><dd>${plural(carried.connections, "connection")}, ${plural(carried.in_flight, "request")} in flight, ${count(carried.waiting)} queued${", "}
        ${plural(carried.servers, "server")} (${plural(carried.verdicts, "check result")}, ${count(carried.ejected)} ejected, ${count(carried.set_by_hand)} set by hand)</dd>`
      }
      ${reload.waiting_for_upgrade?.length ? html`<dt>Needs an upgrade</dt><dd>${reload.waiting_for_upgrade.map((line) => html`<div class="mono">${line}</div>`)}</dd>` : null}
      ${reload.why && html`<dt>Why</dt><dd><pre tabindex="0">${reload.why}</pre></dd>`}
      ${reload.warnings && html`<dt>Warnings</dt><dd><pre tabindex="0">${reload.warnings}</pre></dd>`}
    </dl></article>`;
}

/** @param {Receipt} reload */
function details(reload) {
  if (!reload.changes) return [];
  const { settings, ...kinds } = reload.changes;
  return [
    ...settings,
    ...Object.values(kinds).flatMap((kind) =>
      kind.changed.flatMap((one) => one.what.map((what) => `${one.name}: ${what}`)),
    ),
  ];
}
