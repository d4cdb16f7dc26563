// All services, those in trouble first.

import { html } from "../html.js";
import { LEVELS } from "../logic/condition.js";
import { usePage } from "../use.js";
import { Services } from "../parts/services.js";
import { Timeline } from "../parts/events.js";
import { MomentNote } from "../parts/moment.js";

export function ServicesView() {
  const { board } = usePage();
  const rows = [...board.services].sort(
    (a, b) => LEVELS.indexOf(a.condition.level) - LEVELS.indexOf(b.condition.level),
  );
  return html`<h1>Services</h1>
    <${Timeline} />
    <${MomentNote} now="States and numbers of servers" then="Figures are those of" />
    <section class="card" aria-label="All services"><${Services} rows=${rows} /></section>`;
}
