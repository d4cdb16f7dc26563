// Which servers a finding is about: those that its commands drain, or its subject "10.0.2.15:80 of catalog".
// Both are text for people, so a name counts only if the caller finds a server with that name. No DOM.

/** @typedef {import("../api.js").Finding} Finding */
/** @typedef {{service: string, server: string}} Named */
/** @typedef {import("./services.js").ServiceRow} ServiceRow */
/** @typedef {{service: ServiceRow, row: import("./services.js").ServerRow}} Existing */

/** @param {Pick<Finding, "subject" | "remedy">} finding @returns {Named[]} */
export function namedServers(finding) {
  /** @type {Named[]} */
  const named = [];
  for (const { commands } of finding.remedy ?? []) {
    for (const command of commands ?? []) {
      const words = command.trim().split(/\s+/);
      if (words.length === 4 && words[0] === "weir" && words[1] === "drain") {
        named.push({ service: words[2], server: words[3] });
      }
    }
  }
  if (named.length === 0) {
    const at = finding.subject.indexOf(" of ");
    if (at > 0) named.push({ service: finding.subject.slice(at + 4), server: finding.subject.slice(0, at) });
  }
  return named;
}

/** Those servers of a finding that exist.
 * @param {Finding} finding @param {ServiceRow[]} services @returns {Existing[]} */
export function existing(finding, services) {
  return namedServers(finding).flatMap(({ service: name, server }) => {
    const service = services.find((one) => one.service.name === name);
    const row = service?.servers.find((one) => one.server.address === server || one.server.name === server);
    return service && row ? [{ service, row }] : [];
  });
}
