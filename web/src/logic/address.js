// The page's address: `#/service/catalog?at=1795716464880&span=7200`. Parsing never fails: what cannot be read
// is left out, and an unknown page is the overview. No DOM.

export const PAGES = /** @type {const} */ ([
  "overview",
  "services",
  "routes",
  "requests",
  "causes",
  "findings",
  "checks",
  "reloads",
  "certificates",
  "fleet",
  "configuration",
  "host",
]);

/** Spans of time to choose from: what the history keeps by the second, by ten seconds, by the minute. Dragging over a
 * chart chooses others. */
export const SPANS = [
  { seconds: 900, label: "15 min" },
  { seconds: 7200, label: "2 h" },
  { seconds: 86_400, label: "24 h" },
];
const SPAN_MIN_S = 10;
const SPAN_MAX_S = 86_400;

/** @param {string} hash @returns {Address} */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page, ...rest] = path.split("/");
  const parameters = new URLSearchParams(query);
  const moment = (/** @type {string} */ key) => {
    const value = Number(parameters.get(key));
    return Number.isSafeInteger(value) && value > 0 && value < 8.64e15 ? value : null;
  };
  const span = Number(parameters.get("span"));
  const known = page === "service" || PAGES.some((one) => one === page);
  return {
    page: known ? page : "overview",
    name: known && rest.length ? decoded(rest.join("/")) : null,
    at: moment("at"),
    to: moment("to"),
    span: Number.isInteger(span) && span >= SPAN_MIN_S && span <= SPAN_MAX_S ? span : SPANS[0].seconds,
  };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @param {Address} address */
export function format({ page, name, at, to, span }) {
  const parameters = new URLSearchParams();
  if (at != null) parameters.set("at", String(at));
  if (to != null) parameters.set("to", String(to));
  if (span !== SPANS[0].seconds) parameters.set("span", String(span));
  const query = parameters.toString();
  return `#/${page}${name == null ? "" : "/" + encodeURIComponent(name)}${query ? "?" + query : ""}`;
}

/** The address of another page at the same moment and span.
 * @param {Address} from @param {string} page @param {string | null} [name] */
export function link(from, page, name = null) {
  return format({ ...from, page, name });
}

/** The address of a span that was chosen by dragging from one moment to another.
 * @param {Address} from @param {number} start @param {number} end */
export function zoomed(from, start, end) {
  const span = Math.min(SPAN_MAX_S, Math.max(SPAN_MIN_S, Math.round((end - start) / 1000)));
  const at = from.at != null && from.at >= start && from.at <= end ? from.at : null;
  return format({ ...from, at, to: Math.round(end), span });
}

/** The present, with one of the usual spans.
 * @param {Address} from */
export function live(from) {
  const usual = SPANS.some(({ seconds }) => seconds === from.span);
  return format({ ...from, at: null, to: null, span: usual ? from.span : SPANS[0].seconds });
}

/** The address within a recording: its moment and its span do not leave what was recorded.
 * @param {Address} address @param {{from: number, at: number}} recording @returns {Address} */
export function within(address, { from, at: end }) {
  const inside = (/** @type {number | null} */ moment) =>
    moment != null && moment >= from && moment <= end ? moment : null;
  return {
    ...address,
    at: inside(address.at),
    to: inside(address.to),
    span: Math.min(address.span, wholeSpan({ from, at: end })),
  };
}

/** The span of a recording in seconds.
 * @param {{from: number, at: number}} recording */
export function wholeSpan({ from, at }) {
  return Math.min(SPAN_MAX_S, Math.max(SPAN_MIN_S, Math.ceil((at - from) / 1000)));
}

/** Spans to choose from: the usual ones, or those that a recording has.
 * @param {{from: number, at: number} | null} recording */
export function spansOf(recording) {
  if (!recording) return SPANS;
  const whole = wholeSpan(recording);
  return [...SPANS.filter(({ seconds }) => seconds < whole), { seconds: whole, label: "All" }];
}

/** The span of history to show, as [start, end]: a chosen one, or it ends now, or it has the chosen moment in its middle.
 * @param {Address} address @param {number} now @returns {[number, number]} */
export function window({ at, to, span }, now) {
  const end = Math.min(now, to ?? (at == null ? now : at + span * 500));
  return [end - span * 1000, end];
}
