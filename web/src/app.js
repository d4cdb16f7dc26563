// The frame of the page: navigation, the state of the connection, the chosen span, and the view.

import { html, useEffect, useRef, useState } from "./html.js";
import { parse, within } from "./logic/address.js";
import { visible } from "./logic/figures.js";
import { Drop } from "./parts/drop.js";
import { useBoard } from "./board.js";
import { PageContext } from "./use.js";
import { onTheme, shownTheme } from "./theme.js";
import { Boundary } from "./parts/boundary.js";
import { Header } from "./parts/header.js";
import { Navigation } from "./parts/navigation.js";
import { Raw } from "./parts/raw.js";
import { SignIn } from "./parts/signin.js";
import { Missing, Unavailable } from "./parts/unavailable.js";
import { Overview } from "./views/overview.js";
import { ServicesView } from "./views/services.js";
import { RoutesView } from "./views/routes.js";
import { ServiceView } from "./views/service.js";
import { RequestsView } from "./views/requests.js";
import { CausesView } from "./views/causes.js";
import { FindingsView } from "./views/findings.js";
import { ChecksView } from "./views/checks.js";
import { ReloadsView } from "./views/reloads.js";
import { CertificatesView } from "./views/certificates.js";
import { FleetView } from "./views/fleet.js";
import { ConfigurationView } from "./views/configuration.js";
import { HostView } from "./views/host.js";

const VIEWS = /** @type {Record<string, () => any>} */ ({
  overview: Overview,
  services: ServicesView,
  service: ServiceView,
  routes: RoutesView,
  requests: RequestsView,
  causes: CausesView,
  findings: FindingsView,
  checks: ChecksView,
  reloads: ReloadsView,
  certificates: CertificatesView,
  fleet: FleetView,
  configuration: ConfigurationView,
  host: HostView,
});

/** @param {{source: Source, open: Page["open"], close: Page["close"]}} props */
export function App({ source, open, close }) {
  const [parsed, setAddress] = useState(() => parse(location.hash));
  const address = source.recording ? within(parsed, source.recording) : parsed;
  useEffect(() => {
    const moved = () => setAddress(parse(location.hash));
    addEventListener("hashchange", moved);
    // It may have changed since the first drawing.
    moved();
    return () => removeEventListener("hashchange", moved);
  }, []);
  const board = useBoard(source, address);
  const [theme, setTheme] = useState(shownTheme());
  // A choice that changes nothing that is drawn changes the switch.
  const [, redraw] = useState({});
  useEffect(() => onTheme(() => (setTheme(shownTheme()), redraw({}))), []);
  const where = address.page === "service" ? address.name : address.page;
  const shown = useRef(where);
  useEffect(() => {
    scrollTo(0, 0);
    // A screen reader goes on where the new page begins.
    if (shown.current !== where) document.getElementById("main")?.focus({ preventScroll: true });
    shown.current = where;
  }, [where]);
  const first = useRef(/** @type {string | null} */ (null));
  const version = board.status?.version ?? null;
  first.current ??= version;
  const upgraded = source.mode === "live" && version !== null && version !== first.current;
  const trouble = board.services.some((one) => one.condition.level === "bad");
  const recording = source.recording
    ? `, recording${source.recording.host == null ? "" : ` of ${source.recording.host}`}`
    : "";
  document.title = `${trouble ? "✕ " : ""}${visible(where ? where[0].toUpperCase() + where.slice(1) : "Overview")}${visible(recording)} – Weir`;
  const View = VIEWS[address.page];
  return html`<${PageContext.Provider} value=${{ source, address, board, theme, open, close }}>
    <${Drop} open=${open} />
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Navigation} />
    <main id="main" tabindex="-1">
      <${Header} />
      ${upgraded && html`<p class="lost" role="status">Weir was upgraded to ${version}. <button type="button" onClick=${() => location.reload()}>Reload this page</button></p>`}
      ${
        board.connection.phase === "signed-out"
          ? html`<${SignIn} />`
          : board.loaded
            ? html`${
                source.recording
                  ? html`<${Missing} errors=${board.errors} />`
                  : Object.entries(board.errors).map(
                      ([path, why]) => html`<${Unavailable} key=${path} path=${path} why=${why} />`,
                    )
              }<${Boundary} key=${where}><${View} /></${Boundary}><${Raw} />`
            : html`<${Loading} connection=${board.connection} />`
      }
    </main>
  </${PageContext.Provider}>`;
}

/** @param {any} event */
function skip(event) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** @param {{connection: Connection}} props */
function Loading({ connection }) {
  return connection.phase === "lost"
    ? html`<section class="card"><h1>No connection</h1><p>${connection.why} Weir may be stopped, or the tunnel to it closed. This page tries again by itself.</p></section>`
    : html`<h1 class="hidden">Loading</h1><p class="calm" role="status">Loading…</p>
      <div class="tiles" aria-hidden="true">${[1, 2, 3, 4, 5, 6].map(() => html`<div class="tile ghost"></div>`)}</div>
      <div class="card ghost tall" aria-hidden="true"></div>`;
}
