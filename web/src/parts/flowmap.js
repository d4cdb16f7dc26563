// The map of traffic: from listeners over services to zones or servers, with links as wide as the rate.

import { html, useMemo } from "../html.js";
import { flow } from "../logic/flow.js";
import { layout } from "../logic/layout.js";
import { figure } from "../logic/figures.js";
import { link } from "../logic/address.js";
import { usePage, useWatch, useWidth } from "../use.js";
import { Mark } from "./mark.js";

const NARROW_PX = 520;

export function FlowMap() {
  const { board, address } = usePage();
  const { value, error } = useWatch("configuration");
  const configuration = error ? null : value?.configuration;
  const [box, width] = useWidth();
  const whole = useMemo(
    () => flow(board.traffic, board.services, configuration),
    [board.traffic, board.services, configuration],
  );
  if (!board.traffic) {
    return html`<section class="card"><h2>Traffic</h2><p class="empty">The traffic is not known${board.errors.traffic == null ? "" : `: ${board.errors.traffic}`}.</p></section>`;
  }
  const drawn = layout(whole, Math.max(300, width));
  const uncounted = drawn.ribbons.some((one) => one.rate == null);
  const quiet = drawn.ribbons.length === 0;
  return html`<section class="card" aria-labelledby="map">
    <h2 id="map">Traffic <span>requests per second, last 10 s</span></h2>
    <div ref=${box} class="map">
      ${
        width > 0 &&
        html`<svg width=${drawn.width} height=${drawn.height} role="group" aria-label="Map of traffic">
        <defs>${["warn", "bad"].map(
          (level) => html`<pattern id=${"hatch-" + level} class=${"hatch " + level} width="6" height="6"
          patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" /><path d="M1,0V6" /></pattern>`,
        )}</defs>
        ${drawn.titles.map(({ title, x }) => html`<text class="column" x=${x} y="12">${title}</text>`)}
        ${drawn.ribbons.map(
          (one) => html`<path key=${[one.from, one.to, one.level].join()} class=${ribbonClass(one)} d=${one.path}
          stroke-width=${one.width.toFixed(1)}><title>${ribbonText(one)}</title></path>`,
        )}
        ${drawn.boxes.map(
          (box) => html`<${Box} key=${box.key} box=${box} narrow=${width < NARROW_PX}
          href=${box.service && link(address, "service", box.service)} />`,
        )}
      </svg>`
      }
    </div>
    ${quiet && html`<p class="empty">No request has ended in the last ten seconds.</p>`}
    ${
      uncounted &&
      html`<p class="key"><svg width="28" height="8" aria-hidden="true"><path class="ribbon uncounted" d="M0,4H28" stroke-width="3" /></svg>
      <span>Several listeners reach this service. Requests are not counted by listener and service, so this link has no width.</span></p>`
    }
  </section>`;
}

/** @param {import("../logic/layout.js").Ribbon} one */
function ribbonClass({ rate: known, level }) {
  if (known == null) return "ribbon uncounted";
  return "ribbon" + (level === "warn" || level === "bad" ? " trouble " + level : "");
}

/** @param {import("../logic/layout.js").Ribbon} one */
function ribbonText({ from, to, rate: known }) {
  return `${from.slice(2)} to ${to.slice(2)}: ${known == null ? "not counted" : `${figure(known)} requests/s`}`;
}

/** @param {{box: import("../logic/layout.js").Box, href: string | null, narrow: boolean}} props */
function Box({ box, href, narrow }) {
  const { x, y, width, height, level, label, text, figure } = box;
  const trouble = level === "warn" || level === "bad";
  const middle = y + height / 2;
  const body = html`<g class=${"box " + level}>
    ${text !== label && html`<title>${label}</title>`}
    <rect x=${x + 0.5} y=${y} width=${width - 1} height=${height} rx="6" />
    <text x=${x + 9} y=${middle - 2}>${text}</text>
    <text class="sub" x=${x + 9} y=${middle + 13}>${narrow ? figure.split(" · ")[0] : figure}</text>
    ${trouble && html`<svg x=${x + width - 18} y=${y + 5} width="12" height="12"><${Mark} kind=${level} /></svg>`}
  </g>`;
  return href ? html`<a href=${href}>${body}</a>` : body;
}
