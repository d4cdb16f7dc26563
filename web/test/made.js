// Answers of the API for tests, with every member that the page does not ask about filled in.

/** @typedef {import("../src/api.js").Series} Series */

/** @param {number[]} ended @param {Series[]} series @returns {import("../src/api.js").History} */
export function answer(ended, series) {
  return { enabled: true, step_ms: 1000, ended_unix_ms: ended, covered_ms: ended.map(() => 1000), series, left_out: 0 };
}

/** @param {string} name @param {Series["columns"]} columns @param {Series["causes"]} [causes] @returns {Series} */
export function service(name, columns, causes = []) {
  return { kind: "service", listener: null, service: name, server: null, columns, causes };
}

/** @param {string} name @param {string} address @param {Series["columns"]} columns @returns {Series} */
export function serverSeries(name, address, columns) {
  return { kind: "server", listener: null, service: name, server: address, columns, causes: [] };
}

/** @param {string} address @param {Partial<import("../src/api.js").Server>} [change] @returns {import("../src/api.js").Server} */
export function server(address, change = {}) {
  return {
    name: address,
    address,
    version: null,
    zone: null,
    eligible: true,
    health: "up",
    state: "ready",
    leaving: false,
    ejected_for_ms: null,
    weight: 1,
    weight_configured: 1,
    slow_start_share: 1,
    backup: false,
    in_flight: 0,
    in_flight_max: null,
    requests: 0,
    failures: 0,
    latency_ms: null,
    listing: null,
    ...change,
  };
}

/** @param {string} name @param {import("../src/api.js").Server[]} servers @param {Partial<import("../src/api.js").Service>} [change]
 * @returns {import("../src/api.js").Service} */
export function serviceState(name, servers, change = {}) {
  return {
    name,
    eligible: servers.filter((one) => one.eligible).length,
    tier: "own_zone",
    reason: "own_zone_ready",
    why: "enough is ready",
    queue: { length: 0, length_max: 200, drain_rate_per_s: 0 },
    servers,
    unresolved: [],
    source: null,
    wanted: null,
    ...change,
  };
}

/** @param {number} requests @param {Partial<import("../src/api.js").ServiceWindow>} [change] */
function window(requests, change = {}) {
  const none = { p50_ms: null, p90_ms: null, p99_ms: null };
  return {
    span_s: 10,
    seconds: 10,
    requests,
    failed: 0,
    refused: 0,
    client_faults: 0,
    retries: 0,
    queued: 0,
    queue_mean_ms: null,
    request_bytes: 0,
    response_bytes: 0,
    total: none,
    first_byte: none,
    connect_mean_ms: null,
    client_round_trip_ms: null,
    ...change,
  };
}

/** @template {{span_s: number}} T @param {T} window @param {number[]} spans */
function windows(window, spans) {
  return spans.map((span) => ({ ...window, span_s: span }));
}

/** Traffic of one service in three equal windows.
 * @param {string} name @param {Record<string, {requests: number, failed?: number, p50?: number}>} servers
 * @returns {import("../src/api.js").Traffic} */
export function traffic(name, servers) {
  const all = Object.entries(servers);
  const requests = all.reduce((sum, [, one]) => sum + one.requests, 0);
  const whole = window(requests, { failed: all.reduce((sum, [, one]) => sum + (one.failed ?? 0), 0) });
  return {
    at_unix_ms: 100_000,
    spans_s: [10, 60, 3600],
    cpu: [null, null, null],
    listeners: [{ name: "public", windows: windows(whole, [10, 60, 3600]) }],
    services: [
      {
        name,
        windows: windows(whole, [10, 60, 3600]),
        servers: all.map(([address, { requests: own, failed = 0, p50 = 20 }]) => {
          const one = {
            span_s: 10,
            seconds: 10,
            requests: own,
            failed,
            connect_mean_ms: null,
            round_trip_ms: null,
            first_byte: { p50_ms: own ? p50 : null, p90_ms: null, p99_ms: null },
          };
          return { address, windows: windows(one, [10, 60]) };
        }),
      },
    ],
  };
}

/** @param {Partial<import("../src/api.js").Finding>} change @returns {import("../src/api.js").Finding} */
export function finding(change) {
  return {
    rule: "server_slow",
    subject: "10.0.2.15:80 of catalog",
    service: "catalog",
    servers: ["10.0.2.15:80"],
    severity: "warning",
    certainty: "certain",
    what: "10.0.2.15:80 of catalog is slow.",
    evidence: [],
    why: "It uses its limit.",
    verify: "",
    source: [],
    remedy: [{ action: "Drain it", commands: ["weir drain catalog 10.0.2.15:80"], risk: "" }],
    is_present: true,
    first_seen_unix_ms: 50_000,
    last_seen_unix_ms: 100_000,
    ...change,
  };
}
