// Starts or ends the maintenance of a service.

import { html, useState } from "../html.js";
import { maintained } from "../logic/effect.js";
import { usePage } from "../use.js";
import { Dialog } from "./dialog.js";

/** @param {{row: ServiceRow}} props */
export function Maintenance({ row }) {
  const { source } = usePage();
  // What was asked stays, whatever others do while the question is open.
  const [asked, setAsked] = useState(/** @type {boolean | null} */ (null));
  if (!source.act) return null;
  const { service, maintenance } = row;
  const by_operator = maintenance?.by_operator ?? false;
  const perform = () => source.act?.(`services/${encodeURIComponent(service.name)}/maintenance`, { on: asked });
  const effect = asked == null || asked === by_operator ? null : maintained(row, asked);
  // What only the file switches on cannot be ended here.
  const offered = !maintenance || by_operator;
  return html`${offered && html`<button type="button" onClick=${() => setAsked(!by_operator)}>${maintained(row, !by_operator).verb}…</button>`}
    ${asked != null && html`<${Dialog} heading=${`Maintenance of ${service.name}`} effect=${effect} perform=${perform} onClose=${() => setAsked(null)} />`}`;
}
