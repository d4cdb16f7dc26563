// Events: a list, and the same events on the axis of the chosen span.

import { html, useState } from "../html.js";
import { clock, count, date, moment, plural } from "../logic/figures.js";
import { format, link, window as spanOf } from "../logic/address.js";
import { usePage, useWidth } from "../use.js";
import { Mark } from "./mark.js";

const LIST_ROWS = 8;
const HEIGHT = 44;

export function EventList() {
  const { board, address } = usePage();
  const [all, setAll] = useState(false);
  const shown = all ? board.events : board.events.slice(0, LIST_ROWS);
  return html`<section class="card events" aria-labelledby="happened">
    <h2 id="happened">Events</h2>
    ${board.errors.changes != null && html`<p class="empty">Changes are not known: ${board.errors.changes}.</p>`}
    ${shown.length === 0 && html`<p class="empty">No event is known.</p>`}
    <ol>${shown.map(
      (event) => html`<li key=${event.key} class=${event.kind}>
      <a class="time" href=${format({ ...address, at: event.at })} title="Move every chart to this moment"
        aria-label=${`${date(event.at)} ${clock(event.at)}: move every chart to this moment`}>${moment(event.at, board.now)}</a>
      <div><a href=${link(address, event.to.page, event.to.name)}><${Mark} kind=${event.kind} />${event.title}</a>
        ${event.detail && html`<p>${event.detail}</p>`}</div>
    </li>`,
    )}</ol>
    ${all && board.eventsLeftOut > 0 && html`<p class="empty">${plural(board.eventsLeftOut, "older event")} not listed.</p>`}
    ${
      board.events.length > LIST_ROWS &&
      html`<button type="button" class="quiet" onClick=${() => setAll(!all)}>
      ${all ? "Fewer" : `All ${count(board.events.length)}${board.eventsLeftOut > 0 ? ` listed, of ${count(board.events.length + board.eventsLeftOut)}` : ""}`}</button>`
    }
  </section>`;
}

/** Arrow keys move the chosen moment by this part of the span. */
const KEY_STEPS = 90;

/** The axis of the chosen span. A click on it, or on an event, moves every chart to that moment; so do the arrow keys on
 * the slider that lies on it. */
export function Timeline() {
  const { board, address, source } = usePage();
  const [box, width] = useWidth();
  const [start, end] = spanOf(address, board.now);
  const x = (/** @type {number} */ at) => ((at - start) / (end - start)) * width;
  const inside = board.events.filter(({ at }) => at >= start && at <= end);
  const oldest = board.events.at(-1)?.at ?? start;
  const pick = (/** @type {any} */ event) => {
    if (event.target.closest("a")) return;
    const left = event.clientX - event.currentTarget.getBoundingClientRect().left;
    location.hash = format({ ...address, at: Math.round(start + (left / width) * (end - start)) });
  };
  const slide = (/** @type {any} */ event) => {
    const { value } = event.currentTarget;
    const at = Math.round(start + (Number(value) / KEY_STEPS) * (end - start));
    // Each step would be an entry of the browser's history.
    location.replace(format({ ...address, at, to: end }));
  };
  return html`<div class="timeline" ref=${box}>
    ${
      width > 0 &&
      html`<svg width=${width} height=${HEIGHT} onClick=${pick} role="group" aria-label="Events over time">
      <path class="axis" d=${`M0,20H${width}`} />
      ${ticks(start, end, width).map(
        (at) => html`<g key=${at}>
        <path class="axis" d=${`M${x(at).toFixed(1)},20v5`} />
        <text x=${x(at).toFixed(1)} y="38" text-anchor="middle">${clock(at, false)}</text></g>`,
      )}
      ${address.at != null && html`<path class="moment" d=${`M${x(address.at).toFixed(1)},2V26`} />`}
      ${inside.map(
        (event) => html`<a key=${event.key} href=${format({ ...address, at: event.at })}
          aria-label=${`${clock(event.at)} ${event.title}`}>
        <title>${clock(event.at)} ${event.title}</title>
        <rect class="hit" x=${(x(event.at) - 12).toFixed(1)} y="0" width="24" height="26" />
        <svg x=${(x(event.at) - 6).toFixed(1)} y="4" width="12" height="12"><${Mark} kind=${event.kind} /></svg></a>`,
      )}
    </svg>
    <input type="range" min="0" max=${KEY_STEPS} step="1" value=${(((address.at ?? end) - start) / (end - start)) * KEY_STEPS} onInput=${slide}
      aria-label="Moment that figures and charts show" aria-valuetext=${address.at == null ? (source.recording ? "the end of the recording" : "now") : clock(address.at)} />`
    }
    ${board.eventsLeftOut > 0 && oldest > start && html`<p class="empty">Events before ${moment(oldest, board.now)} are not listed.</p>`}
  </div>`;
}

const STEPS_MS = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600].map((seconds) => seconds * 1000);

/** @param {number} start @param {number} end @param {number} width */
function ticks(start, end, width) {
  const most = Math.max(2, Math.floor(width / 110));
  const step = STEPS_MS.find((one) => (end - start) / one <= most) ?? STEPS_MS[STEPS_MS.length - 1];
  // Whole hours of the reader's zone, not of UTC.
  const zone = new Date(end).getTimezoneOffset() * 60_000;
  const first = Math.ceil((start - zone) / step) * step + zone;
  const all = [];
  for (let at = first; at <= end; at += step) all.push(at);
  return all.filter((at) => ((at - start) / (end - start)) * width > 16 && ((end - at) / (end - start)) * width > 16);
}
