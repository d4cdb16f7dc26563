// The top line: which balancer this is, whether it can be reached, the span of time, and the theme.

import { html, useEffect, useState } from "../html.js";
import { format, live, spansOf, window as spanOf } from "../logic/address.js";
import { clock, date, duration, moment, shortened } from "../logic/figures.js";
import { usePage } from "../use.js";
import { THEMES, chooseTheme, chosenTheme } from "../theme.js";
import { Mark } from "./mark.js";
import { Search } from "./search.js";

export function Header() {
  const { board, address, source, close } = usePage();
  const { status, connection } = board;
  const lost = connection.phase === "lost";
  const chosen = address.at != null || address.to != null;
  const [start, end] = spanOf(address, board.now);
  const spans = spansOf(source.recording);
  const custom = !spans.some(({ seconds }) => seconds === address.span);
  const [word, kind] = standing(source, board);
  const facts = status &&
    connection.phase !== "signed-out" && [
      source.recording && recordedSpan(source.recording),
      `Weir ${status.version}`,
      status.zone,
      `configuration ${status.generation}`,
      `up ${duration(status.uptime_s * 1000)}`,
    ];
  const known = facts || (source.recording && [recordedSpan(source.recording)]);
  return html`<header>
    <p class="where"><span class=${"state " + kind}><${Mark} kind=${kind} />${word}</span>
      ${known && html`<span class="dim">${known.filter(Boolean).join(" · ")}</span>`}</p>
    ${
      chosen &&
      html`<p class="at">${address.at != null ? html`At <b>${moment(address.at, board.now)}</b>` : html`From <b>${moment(start, board.now)}</b> to <b>${clock(end)}</b>`}${" "}
      <a class="button" href=${live(address)}>${source.recording ? "Back to its end" : "Back to live"}</a></p>`
    }
    <div class="range" role="group" aria-label="Span of time">${spans.map(
      ({ seconds, label }, place) => html`
      <a href=${format({ ...address, to: null, span: seconds })} aria-current=${address.span === seconds ? "true" : undefined}>
        ${place === 0 && !chosen && source.mode === "live" ? "Live" : label}</a>`,
    )}${custom && html`<span>${duration(address.span * 1000)}</span>`}</div>
    ${source.recording && html`<button type="button" class="theme" onClick=${close}>Close recording</button>`}
    ${board.loaded && connection.phase !== "signed-out" && html`<${Search} />`}
    <${Theme} />
    ${connection.session && source.signOut && html`<button type="button" class="theme" onClick=${() => source.signOut?.()}>Sign out</button>`}
    ${lost && board.loaded && html`<p class="lost" role="alert"><${Mark} kind="bad" />${connection.why} The figures are those of ${clock(connection.since ?? 0)}. <${Retry} at=${connection.retryAt ?? 0} /></p>`}
  </header>`;
}

/** @param {{from: number, at: number}} recording */
function recordedSpan({ from, at }) {
  return from < at ? `${date(from)} ${clock(from)} to ${moment(at, from)}` : `${date(at)} ${clock(at)}`;
}

/** Whether the figures are those of now, in a word and a shape.
 * @param {Source} source @param {Board} board
 * @returns {[string, string]} */
function standing(source, { connection, status }) {
  if (source.recording)
    return [
      source.recording.host == null ? "recording" : `recording of ${shortened(source.recording.host, 60)}`,
      "change",
    ];
  if (connection.phase === "lost") return [`no connection since ${clock(connection.since ?? 0)}`, "bad"];
  if (connection.phase === "signed-out") return ["not signed in", "idle"];
  if (connection.phase === "connecting" || !status) return ["connecting", "idle"];
  return status.ready ? ["ready", "fine"] : ["not ready", "warn"];
}

/** @param {{at: number}} props */
function Retry({ at }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const left = Math.max(0, Math.round((at - now) / 1000));
  return html`<span aria-live="off">${left > 0 ? `Trying again in ${left} s.` : "Trying again…"}</span>`;
}

function Theme() {
  const theme = chosenTheme();
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  return html`<button type="button" class="theme" onClick=${() => chooseTheme(next)} title=${`Colours: ${theme}. Change to ${next}.`}>
    <span class="hidden">Colours: </span>${theme[0].toUpperCase() + theme.slice(1)}</button>`;
}
