// Who is at fault when a request does not end well, in words. No DOM.

const FAULTS = /** @type {Record<string, string>} */ (
  Object.assign(Object.create(null), {
    none: "–",
    client: "the client",
    server: "a server",
    network: "the network",
    balancer: "Weir",
    configuration: "the configuration",
  })
);

/** @param {string} fault */
export function faultText(fault) {
  return FAULTS[fault] ?? fault;
}
