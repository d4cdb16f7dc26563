// Hooks by which views read from the source and from the page's address.

import { createContext } from "../vendor/preact.js";
import { useContext } from "../vendor/hooks.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { window as spanOf } from "./logic/address.js";
import { ago, moment } from "./logic/figures.js";
import { emptyFrame } from "./logic/history.js";
import { EVERY } from "./source/source.js";

export const PageContext = createContext(/** @type {Page} */ (/** @type {unknown} */ (null)));

/** @returns {Page} */
export function usePage() {
  return useContext(PageContext);
}

/** When something was, in a sentence: how long ago, or the time of day in a recording, whose reader lives later.
 * @param {number} unixMs */
export function useWhen(unixMs) {
  const { source, board } = usePage();
  return source.recording ? `at ${moment(unixMs, board.now)}` : ago(board.now - unixMs);
}

/** The last answer of a path, and why there is none.
 * @param {keyof typeof EVERY} path @returns {Reading} */
export function useWatch(path) {
  const { source } = usePage();
  const [reading, setReading] = useState(/** @type {Reading} */ ({ value: null, error: null }));
  useEffect(() => source.watch(path, EVERY[path], setReading), [source, path]);
  return reading;
}

/** Rows of history. A query that is null reads nothing.
 * @param {HistoryQuery | null} query
 * @returns {HistoryReading & {loading: boolean}} */
export function useHistory(query) {
  const { source } = usePage();
  const key = JSON.stringify(query);
  const [reading, setReading] = useState({ key: "", frame: emptyFrame(), error: /** @type {string | null} */ (null) });
  useEffect(() => {
    if (!query) return undefined;
    return source.history(query, (next) => setReading({ key, ...next }));
  }, [source, key]);
  // While another query loads, the rows of the one before stay: nothing flickers.
  return { ...reading, loading: query != null && reading.key !== key };
}

/** The end of the history to ask for: that of the shown span, or null for now.
 * @param {Address} address @param {number} now */
export function untilOf(address, now) {
  const [, until] = spanOf(address, now);
  return until < now ? until : null;
}

/** The span that small lines show: the chosen one, ending with the newest row, so that they do not flicker between rows.
 * @param {Frame} frame @param {Address} address @param {number} now
 * @returns {[number, number]} */
export function shownSpan(frame, address, now) {
  const newest = frame.ended.at(-1);
  const [start, end] = spanOf(address, now);
  const shift = newest != null && address.at == null && address.to == null ? newest - end : 0;
  return [start + shift, end + shift];
}

/** The width of an element, in whole pixels, as it changes.
 * @returns {[import("preact").RefObject<any>, number]} */
export function useWidth() {
  const ref = useRef(/** @type {any} */ (null));
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    setWidth(Math.floor(element.clientWidth));
    const observer = new ResizeObserver(() => setWidth(Math.floor(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
