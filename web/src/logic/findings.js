// Findings as the page reads them: which are serious, which server each is about, and whether it proposes a drain.
// The doctor judges, not the page. No DOM.

/** What a rule says, in a word for a table. */
const WORDS = /** @type {Record<string, string>} */ ({
  server_slow: "slow",
  server_failing: "failing",
  server_loss: "packet loss",
  server_syns: "slow connects",
  connections_stalled: "dead connections",
  service_failing: "failing",
  checks_blind: "failing",
  service_saturated: "saturated",
  queue_growing: "queue growing",
  retry_storm: "retry storm",
  client_spike: "client spike",
  balance_skewed: "uneven load",
  source_failing: "source failing",
  servers_held: "servers missing",
  kubernetes_not_followed: "cluster not followed",
  fleet_not_joined: "not in the fleet",
  fleet_members_missing: "members missing",
  fleet_results_contradict: "checks contradict",
  fleet_secrets_not_shared: "secrets not shared",
});

/** The level of each severity, for its shape and colour.
 * @type {Record<string, "bad" | "warn" | "change" | "idle">} */
const LEVELS = { critical: "bad", warning: "warn", advice: "change", note: "idle" };

/** @param {string} severity */
export function levelOf(severity) {
  return LEVELS[severity] ?? "idle";
}

/** A key that tells one finding from another, over time too.
 * @param {Pick<Finding, "rule" | "subject" | "namespace">} finding */
export function findingKey({ rule, subject, namespace }) {
  return [rule, subject, namespace ?? ""].join(" ");
}

/** @param {Finding} finding */
export function isSerious({ is_present: isPresent, severity }) {
  return isPresent && (severity === "critical" || severity === "warning");
}

/** Whether checks fail although requests succeed. The other direction of the rule: a check passes while requests fail.
 * @param {Pick<Finding, "rule" | "subject" | "service">} finding */
export function failsWrongly({ rule, subject, service }) {
  return rule === "checks_blind" && subject === `checks of ${service}`;
}

/** @param {Finding} finding */
function wordOf(finding) {
  if (failsWrongly(finding)) return "check fails";
  if (finding.rule === "server_loss" && finding.subject.startsWith("out of order")) return "reordering";
  return WORDS[finding.rule] ?? "see finding";
}

/** @param {Finding} finding @returns {Condition} */
export function conditionOf(finding) {
  return {
    level: finding.severity === "critical" ? "bad" : "warn",
    word: wordOf(finding),
    why: finding.what,
  };
}

/** The servers of a finding that the balancer has now.
 * @param {Finding} finding @param {ServiceRow[]} services @returns {{service: ServiceRow, rows: ServerRow[]} | null} */
export function about({ service: name, servers = [] }, services) {
  const service = name == null ? undefined : services.find((one) => one.service.name === name);
  return service ? { service, rows: service.servers.filter(({ server }) => servers.includes(server.address)) } : null;
}

/** The server that a finding proposes to drain, if it is one server, and another one receives requests. A finding about
 * a zone is not solved by draining one of its servers.
 * @param {Finding} finding @param {ServiceRow[]} services @returns {{service: ServiceRow, row: ServerRow} | null} */
export function toDrain(finding, services) {
  const found = about(finding, services);
  const proposed = (finding.remedy ?? []).some(({ commands = [] }) =>
    commands.some((command) => command.startsWith("weir drain ")),
  );
  if (!proposed || found?.rows.length !== 1 || finding.servers?.length !== 1) return null;
  const { service, rows } = found;
  const others = service.servers.some(({ server }) => server !== rows[0].server && server.eligible);
  return others && rows[0].server.state === "ready" ? { service, row: rows[0] } : null;
}
