// Starts the page: on the live balancer, or on a recording that is opened later.

import { html, render } from "./html.js";
import { App } from "./app.js";
import { Boundary } from "./parts/boundary.js";
import { readRecording } from "./source/bundle.js";
import { textOf } from "./source/file.js";
import { live } from "./source/live.js";
import { recorded } from "./source/recorded.js";
import { restoreTheme } from "./theme.js";

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const balancer = live();
let opened = 0;

/** @param {Source} source */
function show(source) {
  render(
    html`<${Boundary} key=${opened} whole=${true}><${App} source=${source} open=${open} close=${close} /></${Boundary}>`,
    root,
  );
}

/** @param {File} file */
async function open(file) {
  const read = await textOf(file);
  if (read.problem != null) return read.problem;
  const { recording, problem } = readRecording(read.text);
  if (problem != null) return problem;
  opened += 1;
  show(recorded(recording));
  return "";
}

function close() {
  opened += 1;
  show(balancer);
}

restoreTheme();
show(balancer);
