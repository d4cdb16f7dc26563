// All services, those in trouble first.

import { html } from "../html.js";
import { usePage } from "../use.js";
import { Services } from "../parts/services.js";
import { Timeline } from "../parts/events.js";

const ORDER = ["bad", "warn", "aside", "fine"];

export function ServicesView() {
  const { board } = usePage();
  const rows = [...board.services].sort((a, b) => ORDER.indexOf(a.condition.level) - ORDER.indexOf(b.condition.level));
  return html`<h1>Services</h1>
    <${Timeline} />
    <section class="card" aria-label="All services"><${Services} rows=${rows} /></section>`;
}
