// The page's address: `#/service/catalog?at=1795716464880&span=7200`. Parsing never fails: what cannot be read
// is left out, and an unknown page is the overview. No DOM.

export const PAGES = /** @type {const} */ ([
  "overview",
  "services",
  "requests",
  "causes",
  "findings",
  "checks",
  "reloads",
  "certificates",
  "configuration",
  "host",
]);

/** Spans of time to choose from: what the history keeps by the second, by ten seconds, by the minute. */
export const SPANS = [
  { seconds: 900, label: "15 min" },
  { seconds: 7200, label: "2 h" },
  { seconds: 86_400, label: "24 h" },
];

/**
 * @typedef {object} Address
 * @property {string} page One of PAGES, or "service".
 * @property {string | null} name The service of the page "service", the cause or finding of the others.
 * @property {number | null} at A moment in ms since 1970; null: now.
 * @property {number} span In seconds.
 */

/** @param {string} hash @returns {Address} */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [page, ...rest] = path.split("/");
  const parameters = new URLSearchParams(query);
  const at = Number(parameters.get("at"));
  const span = Number(parameters.get("span"));
  const known = page === "service" || PAGES.some((one) => one === page);
  return {
    page: known ? page : "overview",
    name: known && rest.length ? decoded(rest.join("/")) : null,
    at: Number.isSafeInteger(at) && at > 0 && at < 8.64e15 ? at : null,
    span: SPANS.some((one) => one.seconds === span) ? span : SPANS[0].seconds,
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
export function format({ page, name, at, span }) {
  const parameters = new URLSearchParams();
  if (at != null) parameters.set("at", String(at));
  if (span !== SPANS[0].seconds) parameters.set("span", String(span));
  const query = parameters.toString();
  return `#/${page}${name == null ? "" : "/" + encodeURIComponent(name)}${query ? "?" + query : ""}`;
}

/** The address of another page at the same moment and span.
 * @param {Address} from @param {string} page @param {string | null} [name] */
export function link(from, page, name = null) {
  return format({ ...from, page, name });
}

/** The span of history to show, as [start, end]: it ends now, or has the chosen moment in its middle.
 * @param {Address} address @param {number} now @returns {[number, number]} */
export function window({ at, span }, now) {
  const end = at == null ? now : Math.min(now, at + span * 500);
  return [end - span * 1000, end];
}
