// The shapes that stand beside a word, so that trouble is never shown by colour alone.

import { html } from "../html.js";

const SHAPES = /** @type {Record<string, string>} */ ({
  fine: "M6 2.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7Z",
  good: "M6 2.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7Z",
  idle: "M6 2.5a3.5 3.5 0 1 0 0 7a3.5 3.5 0 1 0 0-7Zm0 1.6a1.9 1.9 0 1 1 0 3.8a1.9 1.9 0 1 1 0-3.8Z",
  disabled: "M3 2.5h2.2v7H3ZM6.8 2.5H9v7H6.8Z",
  change: "M6 1.5L10.5 6L6 10.5L1.5 6Z",
  warn: "M6 1L11.5 10.5H.5Z",
  bad: "M3.2 1.6L6 4.4L8.8 1.6L10.4 3.2L7.6 6L10.4 8.8L8.8 10.4L6 7.6L3.2 10.4L1.6 8.8L4.4 6L1.6 3.2Z",
});

/** @param {{kind: string}} props */
export function Mark({ kind }) {
  return html`<svg class=${"mark " + kind} viewBox="0 0 12 12" width="10" height="10" aria-hidden="true">
    <path d=${SHAPES[kind] ?? SHAPES.idle} />
  </svg>`;
}

/** A condition: shape and word, with its reason on hover.
 * @param {{condition: Condition}} props */
export function State({ condition }) {
  return html`<span class=${"state " + condition.level} title=${condition.why}>
    <${Mark} kind=${condition.level} />${condition.word}</span>`;
}
