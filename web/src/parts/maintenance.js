// Starts or ends the maintenance of a service.

import { html, useState } from "../html.js";
import { maintained } from "../logic/effect.js";
import { usePage } from "../use.js";
import { Dialog } from "./dialog.js";

/** @param {{row: import("../logic/services.js").ServiceRow}} props */
export function Maintenance({ row }) {
  const { source } = usePage();
  const [open, setOpen] = useState(false);
  if (!source.act) return null;
  const { service, maintenance } = row;
  const on = !maintenance?.by_operator;
  const effect = maintained(row, on);
  // What only the file switches on cannot be ended here.
  if (maintenance && !maintenance.by_operator) return null;
  const perform = () => source.act?.(`services/${encodeURIComponent(service.name)}/maintenance`, { on });
  return html`<button type="button" onClick=${() => setOpen(true)}>${effect.verb}…</button>
    ${open && html`<${Dialog} heading=${`Maintenance of ${service.name}`} effect=${effect} perform=${perform} onClose=${() => setOpen(false)} />`}`;
}
