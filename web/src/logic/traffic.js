// Figures of /api/v1/traffic: its windows by their span, rates, and what is usual among a service's servers. No DOM.

/** The spans of windows in their usual order, for an API that does not name them. */
const SPANS_S = [10, 60, 3600];
/** A server counts for what is usual if it has answered this many requests in a window. */
const REQUESTS_MIN = 8;

/** The window of a span.
 * @template {object} T @param {{windows: T[]} | undefined} traffic @param {number} span @returns {T | undefined} */
function windowOf(traffic, span) {
  return traffic?.windows.find((window, at) => spanOf(window, at) === span);
}

/** @param {{span_s?: number}} window @param {number} at */
function spanOf({ span_s: span }, at) {
  return span ?? SPANS_S[at];
}

/** The last ten seconds.
 * @template {object} T @param {{windows: T[]} | undefined} traffic @returns {T | undefined} */
export function newest(traffic) {
  return windowOf(traffic, 10);
}

/** The last minute.
 * @template {object} T @param {{windows: T[]} | undefined} traffic @returns {T | undefined} */
export function minute(traffic) {
  return windowOf(traffic, 60);
}

/** A count of a window per second; null if nothing was measured.
 * @param {{seconds: number} | undefined} window @param {number | undefined} count */
export function perSecondOf(window, count) {
  return window && count != null && window.seconds > 0 ? count / window.seconds : null;
}

/** Requests per second; zero if nothing was measured.
 * @param {{seconds: number, requests: number} | undefined} window */
export function requestRate(window) {
  return perSecondOf(window, window?.requests) ?? 0;
}

/** The lower median.
 * @param {number[]} values */
export function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** What is usual: the median of the servers' median response times in ms, each of the newest window with enough requests.
 * @param {ServiceTraffic | undefined} traffic @returns {number | null} */
export function usualFirstByte(traffic) {
  return median(
    (traffic?.servers ?? []).flatMap(
      ({ windows }) => windows.find(({ requests }) => requests >= REQUESTS_MIN)?.first_byte.p50_ms ?? [],
    ),
  );
}
