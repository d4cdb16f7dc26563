// Where the views get their data: the interface that the live balancer and a recorded file share. Views read only from
// a Source, and only the live one uses the network.

export type Phase = "connecting" | "connected" | "lost" | "signed-out";

export type Connection = {
  phase: Phase;
  /** When something last arrived, while it is lost. */
  since: number | null;
  /** When it is tried again. */
  retryAt: number | null;
  /** What failed, for a person. */
  why: string;
  /** Whether the page has signed in. */
  session: boolean;
};

/** The last answer, and why there is no newer one. */
export type Reading = { value: any; error: string | null };
export type Listener = (reading: Reading) => void;

export type HistoryQuery = {
  kinds: ("listener" | "service" | "server" | "process")[];
  service?: string;
  /** Empty: all. "causes" is a column here, too. */
  columns: string[];
  /** How many series the answer will have, about: many make the rows longer. */
  series: number;
  /** In seconds. */
  span: number;
  /** The end in ms since 1970; null: now, and on as time passes. */
  until: number | null;
};
export type HistoryReading = { frame: Frame; error: string | null };
export type Outcome = { ok: boolean; message: string };

export type Source = {
  mode: "live" | "recorded";
  /** Of which host and span a recording is. */
  recording: { host: string | null; from: number; at: number } | null;
  /** The time of the data: the balancer's clock, or the end of the recording. */
  now: () => number;
  /** Reads a path below /api/v1/ now and repeatedly, until the function that it returns is called. */
  watch: (path: string, everyMs: number, listener: Listener) => () => void;
  history: (query: HistoryQuery, listener: (reading: HistoryReading) => void) => () => void;
  connection: (listener: (connection: Connection) => void) => () => void;
  /** Reads a path once. It throws an Error with a message for people. */
  read: (path: string) => Promise<any>;
  /** null: nothing can be changed. */
  act: ((path: string, body: object | null) => Promise<Outcome>) | null;
  /** What an act would answer, without doing it; null if the balancer did not say. */
  preview: ((path: string, body: object) => Promise<any>) | null;
  /** Returns why it failed, or null. */
  signIn: ((token: string) => Promise<string | null>) | null;
  signOut: (() => Promise<void>) | null;
};

export const HISTORY_SERIES_MAX: number;
export const EVERY: Record<
  | "traffic"
  | "status"
  | "services"
  | "findings"
  | "requests"
  | "requests/ended"
  | "causes"
  | "checks"
  | "fleet"
  | "reloads"
  | "changes"
  | "configuration",
  number
>;
export const PARAMETERS: Record<string, string>;
