// The dialog that changes a server: it says what will happen, and does it after a confirmation.

import { html, useEffect, useRef, useState } from "../html.js";
import { putBack, takenOut, weighed } from "../logic/effect.js";
import { usePage } from "../use.js";

/** @typedef {"drain" | "maintenance" | "ready" | "weight"} Choice */
/** @typedef {{service: string, server: string, choice: Choice}} Wish */

const WORDS = { drain: "Drain", maintenance: "Maintenance", ready: "Ready", weight: "Weight" };
const WEIGHT_MAX = 1000;

/** @param {{wish: Wish, onClose: () => void}} props */
export function Change({ wish, onClose }) {
  const { source, board } = usePage();
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [choice, setChoice] = useState(wish.choice);
  const [weight, setWeight] = useState(/** @type {string | null} */ (null));
  const [state, setState] = useState({ busy: false, failure: "" });
  useEffect(() => dialog.current?.showModal(), []);

  const service = board.services.find((one) => one.service.name === wish.service);
  const row = service?.servers.find((one) => one.server.address === wish.server);
  const heading = html`<h2 id="change">${wish.server} <span>of ${wish.service}</span></h2>`;
  if (!service || !row) {
    return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="change">${heading}
      <p>This server has left the service.</p>
      <form method="dialog"><button>Close</button></form></dialog>`;
  }

  const text = weight ?? String(row.server.weight);
  const number = /^\d{1,4}$/.test(text) && Number(text) <= WEIGHT_MAX ? Number(text) : null;
  const same = choice === "weight" ? number == null || number === row.server.weight : choice === row.server.state;
  const effect =
    choice === "ready"
      ? putBack(service, row)
      : choice === "weight"
        ? weighed(service, row, number ?? row.server.weight)
        : takenOut(service, row, choice);
  const perform = async () => {
    setState({ busy: true, failure: "" });
    const path = ["services", wish.service, "servers", row.server.address, choice === "weight" ? "weight" : "state"];
    const body = choice === "weight" ? { weight: number } : { state: choice };
    const outcome = await source.act?.(path.map(encodeURIComponent).join("/"), body);
    if (outcome?.ok) dialog.current?.close();
    else setState({ busy: false, failure: outcome?.message ?? "" });
  };
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="change">
    ${heading}
    <fieldset><legend class="hidden">Change</legend>${Object.entries(WORDS).map(
      ([value, word]) => html`
      <label><input type="radio" name="choice" value=${value} checked=${choice === value}
        onChange=${() => setChoice(/** @type {Choice} */ (value))} /> ${word}
        ${value === row.server.state && html`<small> now</small>`}</label>`,
    )}
    </fieldset>
    ${
      choice === "weight" &&
      html`<label class="weight">New weight, 0 to ${WEIGHT_MAX}
      <input inputmode="numeric" value=${text} size="5" aria-invalid=${number == null}
        onInput=${(/** @type {any} */ event) => setWeight(event.currentTarget.value)} />
      <small>now ${row.server.weight}, configured ${row.server.weight_configured}</small></label>`
    }
    <div class="effect" role="status">
      ${same ? html`<p>Nothing changes.</p>` : effect.sentences.map((one) => html`<p>${one}</p>`)}
      ${!same && effect.warning && html`<p class="warning"><b>Careful:</b> ${effect.warning}</p>`}
      ${state.failure && html`<p class="warning" role="alert">${state.failure}</p>`}
    </div>
    <form method="dialog" class="buttons">
      <button value="cancel">Cancel</button>
      <button type="button" class="main" disabled=${same || state.busy} onClick=${perform}>
        ${state.busy ? "Working…" : effect.verb}</button>
    </form>
  </dialog>`;
}
