// Changes of a server: its state, or its weight.

import { html, useState } from "../html.js";
import { putBack, takenOut, weighed } from "../logic/effect.js";
import { usePage } from "../use.js";
import { Dialog } from "./dialog.js";

/** @typedef {"drain" | "maintenance" | "ready" | "weight"} Choice */
/** @typedef {{service: string, server: string, choice: Choice}} ServerChange */

const WORDS = { drain: "Drain", maintenance: "Maintenance", ready: "Ready", weight: "Weight" };
const WEIGHT_MAX = 1000;

/** The change that a server's button proposes.
 * @param {string} service @param {import("../api.js").Server} server @returns {ServerChange} */
export function proposed(service, server) {
  return { service, server: server.address, choice: server.state === "ready" ? "drain" : "ready" };
}

/** @param {{change: ServerChange, onClose: () => void}} props */
export function ChangeServer({ change, onClose }) {
  const { source, board } = usePage();
  const [choice, setChoice] = useState(change.choice);
  const [weight, setWeight] = useState(/** @type {string | null} */ (null));
  const service = board.services.find((one) => one.service.name === change.service);
  const row = service?.servers.find((one) => one.server.address === change.server);
  const heading = html`${change.server} <span>of ${change.service}</span>`;
  if (!service || !row) {
    return html`<${Dialog} heading=${heading} effect=${null} onClose=${onClose}><p>This server has left the service.</p></${Dialog}>`;
  }

  const { server } = row;
  const text = weight ?? String(server.weight);
  const number = /^\d{1,4}$/.test(text) && Number(text) <= WEIGHT_MAX ? Number(text) : null;
  const effect =
    choice === "weight"
      ? number == null || number === server.weight
        ? null
        : weighed(service, row, number)
      : choice === server.state
        ? null
        : choice === "ready"
          ? putBack(service, row)
          : takenOut(service, row, choice);
  const perform = () => {
    const path = ["services", change.service, "servers", server.address, choice === "weight" ? "weight" : "state"];
    const body = choice === "weight" ? { weight: number } : { state: choice };
    return source.act?.(path.map(encodeURIComponent).join("/"), body);
  };
  return html`<${Dialog} heading=${heading} effect=${effect} perform=${perform} onClose=${onClose}>
    <fieldset><legend class="hidden">Change</legend>${Object.entries(WORDS).map(
      ([value, word]) => html`
      <label><input type="radio" name="choice" value=${value} checked=${choice === value}
        onChange=${() => setChoice(/** @type {Choice} */ (value))} /> ${word}
        ${value === server.state && html`<small> now</small>`}</label>`,
    )}
    </fieldset>
    ${
      choice === "weight" &&
      html`<label class="weight">New weight, 0 to ${WEIGHT_MAX}
      <input inputmode="numeric" value=${text} size="5" aria-invalid=${number == null}
        onInput=${(/** @type {any} */ event) => setWeight(event.currentTarget.value)} />
      <small>now ${server.weight}, configured ${server.weight_configured}</small></label>`
    }
  </${Dialog}>`;
}
