// Opens a recording that is dropped anywhere on the page, and says why a file could not be opened.

import { html, useEffect, useState } from "../html.js";
import { Mark } from "./mark.js";

/** @param {{open: Page["open"]}} props */
export function Drop({ open }) {
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const hasFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
    const dragged = (/** @type {DragEvent} */ event) => {
      if (!hasFiles(event)) return;
      // Without this the browser leaves the page for the file.
      event.preventDefault();
      setOver(true);
    };
    const left = (/** @type {DragEvent} */ event) => {
      if (event.relatedTarget == null) setOver(false);
    };
    const dropped = async (/** @type {DragEvent} */ event) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file) setProblem(await open(file));
    };
    addEventListener("dragover", dragged);
    addEventListener("dragleave", left);
    addEventListener("drop", dropped);
    return () => {
      removeEventListener("dragover", dragged);
      removeEventListener("dragleave", left);
      removeEventListener("drop", dropped);
    };
  }, [open]);
  return html`${over && html`<p class="drop" aria-hidden="true">Drop a recording of Weir to open it</p>`}
    ${
      problem &&
      html`<p class="toast" role="alert"><${Mark} kind="bad" />${problem} <button type="button" onClick=${() => setProblem("")}>Close</button></p>`
    }`;
}
