// The summary at the top of the overview, with the way to the evidence and to the action.

import { html, useMemo, useState } from "../html.js";
import { headline, whyUnexamined } from "../logic/headline.js";
import { takenOut } from "../logic/effect.js";
import { link } from "../logic/address.js";
import { clock, plural } from "../logic/figures.js";
import { usePage } from "../use.js";
import { Mark } from "./mark.js";
import { ChangeServer, proposed } from "./change.js";

export function Banner() {
  const { board } = usePage();
  const [change, setChange] = useState(/** @type {import("./change.js").ServerChange | null} */ (null));
  const said = headline({
    services: board.services,
    findings: board.findings?.findings ?? [],
    status: board.status,
    unexamined: whyUnexamined(board.findings, board.errors.findings ?? null, board.frame.enabled),
    traffic: board.traffic,
    changed: board.errors.changes == null ? (board.events.find(({ at }) => at <= board.now)?.at ?? null) : null,
    now: board.now,
  });
  // Read out when the trouble is another one, not whenever one of its figures changes.
  const announced = useMemo(() => said.title, [said.key]);
  const calm = said.level === "fine" || said.level === "idle";
  return html`<div class="summary">${calm ? html`<${Calm} said=${said} />` : html`<${Trouble} said=${said} change=${setChange} />`}
    <p class="hidden" role="status">${announced}</p></div>
    ${change && html`<${ChangeServer} change=${change} onClose=${() => setChange(null)} />`}`;
}

/** @param {{said: import("../logic/headline.js").Headline}} props */
function Calm({ said }) {
  const { board } = usePage();
  const { phase, since } = board.connection;
  const unknown = board.errors.services != null;
  const then = phase === "lost" && since != null ? `Last known, at ${clock(since)}: ` : "";
  return html`<p class="calm"><${Mark} kind=${unknown || then ? "idle" : said.level} />${then}${unknown ? "The state of services is not known." : said.title}</p>`;
}

/** @param {{said: import("../logic/headline.js").Headline, change: (change: import("./change.js").ServerChange) => void}} props */
function Trouble({ said, change }) {
  const { address, source } = usePage();
  const { drain, evidence, more, consequences } = said;
  const effect = drain && takenOut(drain.service, drain.row, "drain");
  return html`<section class=${"banner " + said.level} aria-label="What is wrong">
    <div><h2><${Mark} kind=${said.level} />${said.title}</h2><p>${said.detail}</p>
      ${consequences.length > 0 && html`<p class="effect" id="consequences">Consequences:</p><ul aria-labelledby="consequences">${consequences.map((one) => html`<li>${one}</li>`)}</ul>`}
      ${effect && html`<p class="effect">Draining it: ${effect.sentences.slice(0, 2).join(" ")}</p>`}</div>
    <div class="do">
      ${evidence && html`<a class="button" href=${link(address, evidence.page, evidence.name)}>Evidence</a>`}
      ${
        drain &&
        effect &&
        source.act &&
        html`<button type="button" class="main"
          onClick=${() => change(proposed(drain.service.service.name, drain.row.server))}>${effect.verb}…</button>`
      }
      ${more && html`<a class="more" href=${link(address, more.page)}>and ${plural(more.count, "more problem")}</a>`}
    </div>
  </section>`;
}
