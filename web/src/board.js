// What every view shares: the joined state of all services, the history of the chosen span, and what happened.
// The application reads it once and passes it down, so that all parts of a page show the same second.

import { useEffect, useMemo, useState } from "./html.js";
import { events } from "./logic/events.js";
import { serviceRows } from "./logic/services.js";
import { EVERY } from "./source/source.js";
import { emptyFrame } from "./logic/history.js";
import { untilOf } from "./use.js";

const SERIES_STEP = 40;
const PATHS = /** @type {const} */ (["traffic", "status", "services", "findings", "reloads", "changes"]);
export const COLUMNS = [
  "requests",
  "failed",
  "refused",
  "in_flight",
  "queue_length",
  "servers_ready",
  "total_p50_us",
  "total_p99_us",
];

/** @param {Source} source @param {Address} address @returns {Board} */
export function useBoard(source, address) {
  const [connection, setConnection] = useState(
    /** @type {Connection} */ ({ phase: "connecting", since: null, retryAt: null, why: "", session: false }),
  );
  const [answers, setAnswers] = useState(/** @type {Record<string, any>} */ ({}));
  const [errors, setErrors] = useState(/** @type {Record<string, string>} */ ({}));
  const [history, setHistory] = useState({ frame: emptyFrame(), error: /** @type {string | null} */ (null) });

  useEffect(() => source.connection(setConnection), [source]);
  useEffect(() => {
    setAnswers({});
    setErrors({});
    const stops = PATHS.map((path) =>
      source.watch(path, EVERY[path], ({ value, error }) => {
        setErrors((old) => withError(old, path, error));
        // A reading that only has an error repeats the last answer.
        if (value == null || error != null) return;
        setAnswers((old) => ({ ...old, [path]: value }));
      }),
    );
    return () => stops.forEach((stop) => stop());
  }, [source]);

  const now = source.now();
  const query = {
    kinds: /** @type {("listener" | "service")[]} */ (["listener", "service"]),
    columns: COLUMNS,
    // Rounded up, so that the history is not read again for each service that is added.
    series: Math.ceil((answers.services?.services.length ?? 0) / SERIES_STEP) * SERIES_STEP,
    span: address.span,
    until: untilOf(address, now),
  };
  const key = JSON.stringify(query);
  useEffect(() => source.history(query, setHistory), [source, key]);

  const { traffic, status, findings, reloads, changes } = answers;
  const services = useMemo(
    () => serviceRows(answers.services?.services ?? [], traffic, findings?.findings ?? [], status?.maintenance ?? []),
    [answers.services, traffic, findings, status?.maintenance],
  );
  const happened = useMemo(
    () =>
      events({
        reloads: reloads?.reloads ?? [],
        changes,
        findings: findings?.findings ?? [],
        frame: history.frame,
        live: query.until == null,
      }),
    [reloads, changes, findings, history.frame, query.until == null],
  );

  return {
    connection,
    loaded: ["traffic", "services", "status"].every((path) => answers[path] || errors[path] != null),
    errors: history.error == null ? errors : { ...errors, history: history.error },
    now,
    status,
    traffic,
    findings,
    services,
    frame: history.frame,
    events: happened.list,
    eventsLeftOut: happened.leftOut,
  };
}

/** @param {Record<string, string>} errors @param {string} path @param {string | null} error */
function withError(errors, path, error) {
  if ((errors[path] ?? null) === error) return errors;
  const { [path]: _old, ...others } = errors;
  return error == null ? others : { ...others, [path]: error };
}
