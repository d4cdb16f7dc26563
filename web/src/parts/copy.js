// A command to copy with a click.

import { html, useState } from "../html.js";

/** @param {{text: string}} props */
export function Copy({ text }) {
  const [state, setState] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setState("copied");
    } catch {
      setState("select it and copy");
    }
    setTimeout(() => setState(""), 2000);
  };
  return html`<span class="copy"><code>${text}</code>
    <button type="button" onClick=${copy} aria-label=${`Copy: ${text}`}>Copy</button>
    <span class="said" role="status">${state}</span></span>`;
}
