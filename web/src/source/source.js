// Bounds of reading. The interface of sources is in source.d.ts.

export const HISTORY_SERIES_MAX = 1000;

/** How often each path is read while it is on the page and not pushed, in ms. */
export const EVERY = {
  traffic: 1000,
  status: 1000,
  services: 1000,
  findings: 1000,
  requests: 1000,
  "requests/ended": 5000,
  causes: 5000,
  checks: 5000,
  fleet: 5000,
  reloads: 5000,
  changes: 1000,
  configuration: 30_000,
};

/** Parameters of a path that is read repeatedly: for more than the answer has by default. @type {Record<string, string>} */
export const PARAMETERS = { "requests/ended": "?limit=300" };
