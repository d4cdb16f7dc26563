// What the page needs of each answer of the admin API. The live balancer answers by its own types; a recorded file may
// be of another version, cut, or written by hand, so its answers are compared before a view reads them.

/** A sample: "" a string, 0 a number, true a boolean, [] a list, {} an object; a list's element and an object's members
 * are samples themselves. A member whose name ends in ? may be missing or null. @typedef {any} Shape */

const REQUESTS = { requests: 0, failed: 0 };
const CONNECTIONS = { open: 0, open_max: 0 };
const NAMES = { added: [""], removed: [""], changed: [{ name: "", what: [""] }] };

/** By path below /api/v1/.
 * @type {Record<string, Shape>} */
export const SHAPES = {
  status: {
    ready: true,
    version: "",
    pid: 0,
    uptime_s: 0,
    generation: 0,
    workers: 0,
    connections: CONNECTIONS,
    listeners: [{ name: "", address: "", protocol: "", connections: CONNECTIONS }],
    maintenance: [{ kind: "", name: "", on: true }],
    "acme?": { directory: "", running: true, certificates: [{ names: [""], "failure?": { what: "", refused: [] } }] },
  },
  services: {
    services: [
      {
        name: "",
        eligible: 0,
        why: "",
        queue: { length: 0, length_max: 0, drain_rate_per_s: 0 },
        servers: [
          {
            name: "",
            address: "",
            "zone?": "",
            eligible: true,
            health: "",
            state: "",
            weight: 0,
            weight_configured: 0,
            slow_start_share: 0,
            in_flight: 0,
          },
        ],
        unresolved: [{ name: "" }],
      },
    ],
  },
  traffic: {
    at_unix_ms: 0,
    cpu: [],
    listeners: [{ name: "", windows: [REQUESTS] }],
    services: [
      {
        name: "",
        windows: [{ ...REQUESTS, total: {}, first_byte: {} }],
        servers: [{ address: "", windows: [{ ...REQUESTS, first_byte: {} }] }],
      },
    ],
  },
  findings: {
    enabled: true,
    findings: [
      {
        rule: "",
        subject: "",
        "namespace?": "",
        "service?": "",
        "servers?": [""],
        severity: "",
        certainty: "",
        what: "",
        evidence: [{ name: "" }],
        "consequences?": [{ what: "" }],
        why: "",
        "remedy?": [{ action: "", "commands?": [""], risk: "" }],
        verify: "",
        source: [""],
        is_present: true,
        first_seen_unix_ms: 0,
        last_seen_unix_ms: 0,
      },
    ],
    could_not_check: [{ what: "", reason: "" }],
  },
  changes: {
    changes: [
      {
        at_unix_ms: 0,
        kind: "",
        effect: "",
        "service?": "",
        "server?": "",
        "finding?": { rule: "", subject: "" },
        what: "",
      },
    ],
    left_out: 0,
  },
  reloads: {
    reloads: [
      {
        result: "",
        trigger: "",
        at: "",
        generation: 0,
        "changes?": { settings: [""], listeners: NAMES, routes: NAMES, services: NAMES, servers: NAMES },
        "carried?": {},
        "waiting_for_upgrade?": [""],
        "why?": "",
        "warnings?": "",
      },
    ],
  },
  causes: {
    requests: 0,
    causes: [{ name: "", fault: "", summary: "", what: "", why: "", remedy: "", count: 0, services: {} }],
  },
  checks: {
    probes: 0,
    probes_per_s: 0,
    unshared_per_s: 0,
    endpoints: [
      {
        endpoint: "",
        probes_per_s: 0,
        unshared_per_s: 0,
        probes: [{ what: "", interval_ms: 0, services: [""] }],
        near_duplicates: [{ services: [[""]], why: "" }],
      },
    ],
  },
  configuration: { generation: 0, configuration: {} },
  requests: {
    in_flight: 0,
    workers_silent: 0,
    requests: [
      {
        "stage?": "",
        "request_id?": "",
        "client?": "",
        "listener?": "",
        "method?": "",
        "host?": "",
        "path?": "",
        "service?": "",
        "server?": "",
      },
    ],
  },
  history: {
    enabled: true,
    step_ms: 0,
    ended_unix_ms: [0],
    covered_ms: [0],
    series: [{ kind: "", "listener?": "", "service?": "", "server?": "", columns: {}, causes: [{ row: 0, count: 0 }] }],
    left_out: 0,
  },
};

/** Where a value differs from its shape, such as "services[0].queue"; null if it fits.
 * @param {any} value @param {Shape} shape @param {string} [path] @returns {string | null} */
export function misfit(value, shape, path = "") {
  if (Array.isArray(shape)) {
    if (!Array.isArray(value)) return path || "the answer";
    if (shape.length === 0) return null;
    return first(value.entries(), ([at, one]) => misfit(one, shape[0], `${path}[${at}]`));
  }
  if (typeof value !== typeof shape || value === null || Array.isArray(value)) return path || "the answer";
  if (typeof shape !== "object") return null;
  return first(Object.entries(shape), ([key, one]) => {
    const name = key.replace(/\?$/, "");
    if (name !== key && value[name] == null) return null;
    return misfit(value[name], one, path ? `${path}.${name}` : name);
  });
}

/** @template T @param {Iterable<T>} all @param {(one: T) => string | null} find */
function first(all, find) {
  for (const one of all) {
    const found = find(one);
    if (found != null) return found;
  }
  return null;
}
