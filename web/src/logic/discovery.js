// Where the servers of a service come from, as a sentence. No DOM.

import { count, duration } from "./figures.js";

/** @param {import("../api.js").ServiceSource} source @returns {{text: string, isWarning: boolean}} */
export function sourceLine(source) {
  const counts = [
    `${count(source.listed)} listed`,
    source.not_ready > 0 && `${count(source.not_ready)} not ready there`,
    source.held > 0 && `${count(source.held)} no longer listed but kept`,
    source.flapping > 0 && `${count(source.flapping)} coming and going`,
    source.refused > 0 && `${count(source.refused)} refused`,
  ];
  const none = source.restored ? "no answer yet, servers of the last run" : "no answer yet";
  const answered = source.answered_ms_ago == null ? none : `answered ${duration(source.answered_ms_ago)} ago`;
  const index = source.index == null ? "" : `, index ${source.index}`;
  const failing =
    source.failing_for_ms == null ? "" : `; failing for ${duration(source.failing_for_ms)}: ${source.error}`;
  return {
    text: `From ${source.source}: ${counts.filter(Boolean).join(", ")}; ${answered}${index}${failing}.`,
    isWarning: source.failing_for_ms != null || source.held > 0 || source.refused > 0,
  };
}
