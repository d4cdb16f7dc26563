// Starts the page: on the live balancer, or on a recording that is opened later.

import { html, render } from "./html.js";
import { App } from "./app.js";
import { Boundary } from "./parts/boundary.js";
import { readRecording } from "./source/bundle.js";
import { live } from "./source/live.js";
import { recorded } from "./source/recorded.js";
import { restoreTheme } from "./theme.js";

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
const balancer = live();
/** A recording is read as a whole, and takes several times its size in memory. */
const FILE_BYTES_MAX = 400_000_000;
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
  if (file.size > FILE_BYTES_MAX) return "This file is larger than 400 MB, too large for a recording.";
  let text;
  try {
    text = await file.text();
  } catch {
    return "The browser could not read this file.";
  }
  const { recording, problem } = readRecording(text);
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
