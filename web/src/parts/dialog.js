// A dialog that says what an action will do, and does it after a confirmation.

import { html, useEffect, useRef, useState } from "../html.js";

/**
 * @typedef {object} Props
 * @property {any} heading @property {import("../logic/effect.js").Effect | null} effect Null: nothing changes.
 * @property {() => Promise<Outcome> | undefined} [perform]
 * @property {() => void} onClose @property {any} [children] What there is to choose.
 */

/** @param {Props} props */
export function Dialog({ heading, effect, perform, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [state, setState] = useState({ busy: false, failure: "" });
  useEffect(() => dialog.current?.showModal(), []);
  const confirm = async () => {
    setState({ busy: true, failure: "" });
    const outcome = await perform?.();
    if (outcome?.ok) dialog.current?.close();
    else setState({ busy: false, failure: outcome?.message ?? "" });
  };
  return html`<dialog ref=${dialog} onClose=${onClose} aria-labelledby="dialog">
    <h2 id="dialog">${heading}</h2>
    ${children}
    <div class="effect" role="status">
      ${effect ? effect.sentences.map((one) => html`<p>${one}</p>`) : html`<p>Nothing changes.</p>`}
      ${effect?.warning && html`<p class="warning"><b>Careful:</b> ${effect.warning}</p>`}
    </div>
    ${state.failure && html`<pre class="warning" role="alert">${state.failure}</pre>`}
    <form method="dialog" class="buttons">
      <button value="cancel">Cancel</button>
      <button type="button" class="main" disabled=${!effect || state.busy} onClick=${confirm}>
        ${state.busy ? "Working…" : (effect?.verb ?? "Change")}</button>
    </form>
  </dialog>`;
}
