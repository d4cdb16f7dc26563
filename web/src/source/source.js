// Where the views get their data: the interface that the live balancer and a recorded file share. Views read only
// from a Source, and only the live one uses the network.

/** @typedef {"connecting" | "connected" | "lost" | "signed-out"} Phase */
/**
 * @typedef {object} Connection
 * @property {Phase} phase
 * @property {number | null} since When something last arrived, while it is lost.
 * @property {number | null} retryAt When it is tried again.
 * @property {string} why What failed, for a person.
 * @property {boolean} session Whether the page has signed in.
 */
/** @typedef {{value: any, error: string | null}} Reading The last answer, and why there is no newer one. */
/** @typedef {(reading: Reading) => void} Listener */
/**
 * @typedef {object} HistoryQuery
 * @property {("listener" | "service" | "server" | "process")[]} kinds
 * @property {string} [service]
 * @property {string[]} columns Empty: all. "causes" is a column here, too.
 * @property {number} series How many series the answer will have, about: many make the rows longer.
 * @property {number} span In seconds.
 * @property {number | null} until The end in ms since 1970; null: now, and on as time passes.
 */
/** @typedef {{frame: import("../logic/history.js").Frame, error: string | null}} HistoryReading */
/** @typedef {{ok: boolean, message: string}} Outcome */

/**
 * @typedef {object} Source
 * @property {"live" | "recorded"} mode
 * @property {{host: string | null, from: number, at: number} | null} recording Of which host and span a recording is.
 * @property {() => number} now The time of the data: the balancer's clock, or the end of the recording.
 * @property {(path: string, everyMs: number, listener: Listener) => () => void} watch
 *   Reads a path below /api/v1/ now and repeatedly, until the function that it returns is called.
 * @property {(query: HistoryQuery, listener: (reading: HistoryReading) => void) => () => void} history
 * @property {(listener: (connection: Connection) => void) => () => void} connection
 * @property {((path: string) => Promise<any>) | null} read Reads a path once. It throws an Error with a message for people.
 * @property {((path: string, body: object | null) => Promise<Outcome>) | null} act null: nothing can be changed.
 * @property {((token: string) => Promise<string | null>) | null} signIn Returns why it failed, or null.
 * @property {(() => Promise<void>) | null} signOut
 */

export const HISTORY_SERIES_MAX = 1000;

/** How often each path is read while it is on the page and not pushed, in ms. */
export const EVERY = {
  traffic: 1000,
  status: 1000,
  services: 1000,
  findings: 1000,
  requests: 1000,
  causes: 5000,
  checks: 5000,
  reloads: 5000,
  changes: 1000,
  configuration: 30_000,
};
