// Changes of a server: its state, or its weight.

import { html, useEffect, useState } from "../html.js";
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

/** How often a dry run is repeated while the question is shown, in ms. */
const PREVIEW_MS = 2000;

/** The service as it would be after a change, as far as the balancer has said so. A null path asks nothing.
 * @param {string | null} path @param {object} body @returns {import("../api.js").Service | null} */
function usePreview(path, body) {
  const { source } = usePage();
  const key = path && JSON.stringify([path, body]);
  const [preview, setPreview] = useState({
    key: /** @type {string | null} */ (null),
    service: /** @type {any} */ (null),
  });
  useEffect(() => {
    if (!path || !source.preview) return undefined;
    let current = true;
    const ask = async () => {
      const service = await source.preview?.(path, body);
      if (current) setPreview({ key, service });
    };
    ask();
    const timer = setInterval(ask, PREVIEW_MS);
    return () => {
      current = false;
      clearInterval(timer);
    };
  }, [source, key]);
  return preview.key === key ? preview.service : null;
}

/** @param {{change: ServerChange, onClose: () => void}} props */
export function ChangeServer({ change, onClose }) {
  const { source, board } = usePage();
  const [choice, setChoice] = useState(change.choice);
  const [weight, setWeight] = useState(/** @type {string | null} */ (null));
  const service = board.services.find((one) => one.service.name === change.service);
  const row = service?.servers.find((one) => one.server.address === change.server);
  const server = row?.server;
  const text = weight ?? String(server?.weight ?? "");
  const number = /^\d{1,4}$/.test(text) && Number(text) <= WEIGHT_MAX ? Number(text) : null;
  const same = choice === "weight" ? number == null || number === server?.weight : choice === server?.state;
  const names = ["services", change.service, "servers", change.server, choice === "weight" ? "weight" : "state"];
  const path = names.map(encodeURIComponent).join("/");
  const body = choice === "weight" ? { weight: number } : { state: choice };
  const after = usePreview(row && !same ? path : null, body);
  const heading = html`${change.server} <span>of ${change.service}</span>`;
  if (!service || !row || !server) {
    return html`<${Dialog} heading=${heading} effect=${null} onClose=${onClose}><p>This server has left the service.</p></${Dialog}>`;
  }

  const effectOf = () => {
    if (choice === "weight") return weighed(service, row, number ?? 0, after);
    return choice === "ready" ? putBack(service, row, after) : takenOut(service, row, choice, after);
  };
  const effect = same ? null : effectOf();
  const perform = () => source.act?.(path, body);
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
