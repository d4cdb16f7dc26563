// What the views cannot do without: lists that they go through, objects that they look into, and text that they take
// apart. The balancer answers by its own types; a recorded file may be of another version, cut, or written by hand.

/** A sample: "" is text, 0 a number, [] a list, {} an object; an element and members are samples themselves. A member
 * whose name ends in ? may be missing or null. @typedef {any} Shape */

const NAMES = { added: [""], removed: [""], changed: [{ name: "", what: [""] }] };
const LISTENER = { name: "", connections: {} };
const SERVICE = { name: "", eligible: 0, queue: {}, servers: [{ name: "", address: "" }], unresolved: [{ name: "" }] };
const SERVER_TRAFFIC = { address: "", windows: [{ first_byte: {} }] };
const SERVICE_TRAFFIC = { name: "", windows: [{ total: {}, first_byte: {} }], servers: [SERVER_TRAFFIC] };
const FINDING = {
  rule: "",
  subject: "",
  "servers?": [""],
  what: "",
  evidence: [{ name: "" }],
  "consequences?": [{ what: "" }],
  why: "",
  "remedy?": [{ action: "", "commands?": [""] }],
  verify: "",
  source: [""],
  first_seen_unix_ms: 0,
  last_seen_unix_ms: 0,
};
const RELOAD = {
  at: "",
  result: "",
  "changes?": { settings: [""], listeners: NAMES, routes: NAMES, services: NAMES, servers: NAMES },
  "waiting_for_upgrade?": [""],
  "why?": "",
};
const ENDPOINT = {
  endpoint: "",
  probes: [{ what: "", services: [""] }],
  near_duplicates: [{ services: [[""]], why: "" }],
};
const MEMBER = { name: "", address: "" };
const ENDED = {
  ended_unix_ms: 0,
  "path?": "",
  "cause?": "",
  "failed_attempts?": [{}],
  "trace?": { "id?": "" },
  "decision?": [{ "servers?": [{}] }],
};
const SERIES = { kind: "", columns: {}, causes: [{ row: 0, count: 0 }] };

/** By path below /api/v1/.
 * @type {Record<string, Shape>} */
export const SHAPES = {
  status: {
    version: "",
    uptime_s: 0,
    connections: {},
    listeners: [LISTENER],
    maintenance: [{ kind: "", name: "" }],
    "fleet?": { "problems?": [{ kind: "" }], probes: {}, slots: {}, rates: {}, orders: {} },
    "acme?": { certificates: [{ names: [""], "failure?": { what: "", refused: [] } }] },
  },
  services: { services: [SERVICE] },
  traffic: {
    at_unix_ms: 0,
    cpu: [],
    listeners: [{ name: "", windows: [{ requests: 0 }] }],
    services: [SERVICE_TRAFFIC],
  },
  findings: { findings: [FINDING], could_not_check: [{ what: "" }] },
  changes: { changes: [{ at_unix_ms: 0, what: "", "finding?": { rule: "", subject: "" } }] },
  reloads: { reloads: [RELOAD] },
  causes: { causes: [{ name: "", summary: "", what: "", why: "", remedy: "", count: 0, services: {} }] },
  checks: { endpoints: [ENDPOINT] },
  fleet: {
    "own?": MEMBER,
    members: [MEMBER],
    "problems?": [{ kind: "" }],
    orders: { servers: [{ service: "", address: "" }] },
    datagrams: { refused: {} },
  },
  configuration: { configuration: {} },
  requests: { requests: [{}] },
  "requests/ended": { requests: [ENDED] },
  history: { step_ms: 0, ended_unix_ms: [0], covered_ms: [0], series: [SERIES] },
};

/** Where a value differs from its shape, such as "services[0].queue"; null if it fits.
 * @param {any} value @param {Shape} shape @param {string} [path] @returns {string | null} */
export function misfit(value, shape, path = "") {
  const kindOf = (/** @type {any} */ one) => (Array.isArray(one) ? "list" : one === null ? "null" : typeof one);
  if (kindOf(value) !== kindOf(shape)) return path || "the answer";
  if (typeof shape !== "object") return null;
  const parts = Array.isArray(shape)
    ? shape.length
      ? value.map((/** @type {any} */ one, /** @type {number} */ at) => [`${path}[${at}]`, one, shape[0]])
      : []
    : Object.entries(shape).flatMap(([key, one]) => {
        const name = key.replace("?", "");
        return name !== key && value[name] == null ? [] : [[path ? `${path}.${name}` : name, value[name], one]];
      });
  for (const [place, part, own] of parts) {
    const found = misfit(part, own, place);
    if (found != null) return found;
  }
  return null;
}
