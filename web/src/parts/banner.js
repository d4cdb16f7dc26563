// The sentence at the top of the overview, with the way to the evidence and to the action.

import { html, useMemo, useState } from "../html.js";
import { headline, conditionKey } from "../logic/headline.js";
import { began } from "../logic/since.js";
import { takenOut } from "../logic/effect.js";
import { line } from "../logic/history.js";
import { link } from "../logic/address.js";
import { usePage } from "../use.js";
import { Mark } from "./mark.js";
import { Change } from "./change.js";

/** @param {{frames: Map<string, import("../logic/history.js").Frame>}} props Rows of the servers of troubled services. */
export function Banner({ frames }) {
  const { board, address, source } = usePage();
  const [wish, setWish] = useState(/** @type {import("./change.js").Wish | null} */ (null));
  const said = headline({
    services: board.services,
    findings: board.findings?.findings ?? [],
    status: board.status,
    // Rows around a chosen moment do not say since when something is so now.
    since: address.at == null ? beginnings(board, frames) : new Map(),
    now: board.now,
    changed: board.events.find(({ at }) => at <= board.now)?.at ?? null,
  });
  // Read out when the trouble is another one, not whenever one of its figures changes.
  const title = useMemo(() => said.title, [said.key]);
  const announced = html`<p class="hidden" role="status">${title}</p>`;
  if (said.level === "fine" || said.level === "idle") {
    return html`<p class="calm"><${Mark} kind=${said.level} />${said.title}</p>${announced}`;
  }
  const effect = said.drain && takenOut(said.drain.service, said.drain.row, "drain");
  const drain = said.drain;
  return html`<section class=${"banner " + said.level} aria-label="What is wrong">
    <div><h2><${Mark} kind=${said.level} />${said.title}</h2><p>${said.detail}</p>
      ${effect && html`<p class="effect">Draining it: ${effect.sentences[0]}</p>`}</div>
    <div class="do">
      ${said.evidence && html`<a class="button" href=${link(address, said.evidence.page, said.evidence.name)}>Evidence</a>`}
      ${
        drain &&
        effect &&
        source.act &&
        html`<button type="button" class="main" onClick=${() =>
          setWish({
            service: drain.service.service.name,
            server: drain.row.server.address,
            choice: "drain",
          })}>${effect.verb}</button>`
      }
      ${said.more > 0 && html`<a class="more" href=${link(address, "services")}>and ${said.more} more</a>`}
    </div>
    ${wish && html`<${Change} wish=${wish} onClose=${() => setWish(null)} />`}
  </section>${announced}`;
}

/** When each condition began, as far as the rows reach back.
 * @param {import("../board.js").Board} board @param {Map<string, import("../logic/history.js").Frame>} frames */
function beginnings(board, frames) {
  /** @type {import("../logic/headline.js").Since} */
  const since = new Map();
  for (const { service, peers, troubled } of board.services) {
    const frame = frames.get(service.name);
    if (!frame) continue;
    for (const { server, condition } of troubled) {
      const start = began(frame, line(frame, "server", service.name, server.address), condition.word, {
        p50: peers.p50,
        limit: server.in_flight_max,
      });
      if (start == null) continue;
      // A run that fills all rows began at an unknown moment before them.
      const before = start <= (frame.ended[0] ?? 0);
      since.set(conditionKey(service.name, server.address, condition.word), { at: start, before });
    }
  }
  return since;
}
