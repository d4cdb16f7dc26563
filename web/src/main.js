// Starts the page: on the live balancer, or on a recording that is opened later.

import { html, render } from "./html.js";
import { App } from "./app.js";
import { live } from "./source/live.js";
import { recorded } from "./source/recorded.js";
import { restoreTheme } from "./theme.js";

const root = /** @type {HTMLElement} */ (document.getElementById("app"));

/** @param {File} file */
async function open(file) {
  try {
    const recording = JSON.parse(await file.text());
    if (!recording.answers || !Array.isArray(recording.history)) throw new Error();
    render(html`<${App} key=${file.name} source=${recorded(recording)} open=${open} />`, root);
    return "";
  } catch {
    return "This file is not a recording of Weir.";
  }
}

restoreTheme();
render(html`<${App} source=${live()} open=${open} />`, root);
