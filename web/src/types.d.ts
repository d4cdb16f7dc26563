// Objects that several files share, for the type checker: no browser gets this file.

import type { Kind } from "./logic/events.js";
import type { Level } from "./logic/condition.js";
import type { Series } from "./parts/chart.js";
import type { Cause, Finding, Maintenance, Request, Server, ServerWindow, Service, ServiceTraffic } from "./api.js";

export type Route = {
  key: string;
  name: string;
  listeners: string;
  /** Host, path, method and other conditions. */
  match: string;
  /** What happens to a request; empty: it is forwarded. */
  action: string;
  /** Known: the balancer has a service of this name. */
  services: { name: string; share: string; known: boolean }[];
  /** Limits, authentication, and what else applies to a request. */
  more: string[];
  /** That of its worst service; null: it forwards nothing. */
  condition: Condition | null;
  /** Requests per second in the last ten seconds; null: not counted by route. */
  rate: number | null;
  /** In the last ten seconds. */
  failed: number | null;
  requests: number | null;
  /** Why there is no rate. */
  uncounted: string;
};

export type Item = {
  kind: string;
  label: string;
  detail: string;
  /** Where it leads. */
  page: string;
  name: string | null;
  /** In lower case: what is searched, the most important first. */
  words: string[];
};

/** What there is to find. Members may not be here yet. */
export type Given = {
  services: ServiceRow[];
  findings: Finding[];
  configuration: any;
  causes: Cause[];
  requests: Request[];
  ended: EndedRequest[];
  pages: readonly string[];
};

/** An ended request, with the members of its line in the access log that the page shows. In a recording any may be missing. */
export type EndedRequest = import("./api.js").EndedRequest & {
  request_id?: string | null;
  client?: string;
  peer?: string | null;
  user?: string | null;
  listener?: string;
  method?: string | null;
  host?: string | null;
  path?: string | null;
  protocol?: string;
  status?: number | null;
  grpc_status?: number | null;
  cause?: string;
  fault?: string;
  detail?: string | null;
  service?: string | null;
  server?: string | null;
  attempts?: number;
  /** The earlier ones. */
  failed_attempts?: { server?: string; cause?: string; status?: number }[] | null;
  not_retried?: string | null;
  reused?: boolean;
  auth_ms?: number;
  queue_ms?: number;
  connect_ms?: number;
  first_byte_ms?: number;
  total_ms?: number;
  request_bytes?: number;
  response_bytes?: number;
  tcp?: { client_rtt_ms?: number | null; server_rtt_ms?: number | null } | null;
  /** Only if the balancer sends traces. */
  trace?: { id?: string; span?: string; parent?: string | null; sampled?: boolean } | null;
  decision?: Decision[] | null;
};

/** One choice of a server. */
export type Decision = {
  service?: string;
  tier?: string;
  reason?: string;
  queue_length?: number;
  chosen?: string | null;
  by?: string | null;
  servers?: Considered[];
  /** How many further servers there are, by why they were passed over. */
  more?: Record<string, number>;
};

export type Considered = {
  server?: string;
  address?: string;
  zone?: string | null;
  why?: string;
  weight?: number;
  in_flight?: number;
  in_flight_max?: number | null;
  latency_ms?: number | null;
};

/** One series of a frame. */
export type Line = {
  kind: string;
  listener: string | null;
  service: string | null;
  server: string | null;
  columns: Record<string, Column>;
  /** By cause, a count for each row; "" stands for all rarer causes. */
  causes: Map<string, number[]>;
};

export type Frame = {
  enabled: boolean;
  stepMs: number;
  /** When each row ended, the oldest first. */
  ended: number[];
  /** How long each row is, in ms. */
  covered: number[];
  lines: Map<string, Line>;
  leftOut: number;
};

export type Headline = {
  level: "bad" | "warn" | "fine" | "idle";
  /** Tells one trouble from another, while its figures change. */
  key: string;
  title: string;
  detail: string;
  consequences: string[];
  evidence: { page: string; name: string | null } | null;
  /** The server that the finding proposes to drain. */
  drain: { service: ServiceRow; row: ServerRow } | null;
  /** Further troubles, and the page that lists them. */
  more: { page: string; count: number } | null;
};

/** A server with all that the page shows of it. */
export type ServerRow = {
  server: Server;
  /** The last ten seconds. */
  window: ServerWindow | undefined;
  condition: Condition;
  finding: Finding | undefined;
};

export type ServiceRow = {
  service: Service;
  traffic: ServiceTraffic | undefined;
  /** The usual first byte of its servers, in ms. */
  usual: number | null;
  condition: Condition;
  /** In order of the configuration. */
  servers: ServerRow[];
  troubled: ServerRow[];
  /** Set while it is in maintenance. */
  maintenance: Maintenance | undefined;
};

export type Tile = {
  label: string;
  value: string;
  unit: string;
  note: string;
  line: Column;
};

/** What the history does not know of this moment. */
export type Now = {
  services: import("./api.js").ServiceTraffic[];
  levels: { inFlight: number; limit: number | null; waiting: number; shared: boolean };
};

export type Event = {
  /** Stays the same while the text changes. */
  key: string;
  at: number;
  kind: Kind;
  title: string;
  detail: string;
  to: { page: string; name: string | null };
};

export type Node = {
  key: string;
  label: string;
  rate: number;
  level: Level;
  /** Trouble in a word, or "". */
  word: string;
  /** The service to open. */
  service: string | null;
  /** How many things this node stands for. */
  stands: number;
};

export type Condition = {
  level: Level;
  /** One or two words for a table. */
  word: string;
  /** A sentence. */
  why: string;
};

export type Board = {
  connection: Connection;
  /** Whether the first answers are here, or were refused. */
  loaded: boolean;
  /** Why there is no newer answer, by path. */
  errors: Record<string, string>;
  now: number;
  status: import("./api.js").Status | undefined;
  traffic: import("./api.js").Traffic | undefined;
  findings: import("./api.js").Findings | undefined;
  services: ServiceRow[];
  /** Listeners and services, over the chosen span. */
  frame: Frame;
  events: import("./logic/events.js").Event[];
  /** How many older events are not among them. */
  eventsLeftOut: number;
};

export type Page = {
  source: Source;
  address: Address;
  board: Board;
  theme: string;
  /** Opens a recording; returns why it failed, or "". */
  open: (file: File) => Promise<string>;
  /** Goes back from a recording to the live balancer. */
  close: () => void;
};

export type Recording = {
  host: string | null;
  /** In ms since 1970. */
  from: number;
  /** Its end. */
  at: number;
  /** By path below /api/v1/. */
  answers: Record<string, any>;
  history: import("./api.js").History[];
  /** Why an answer is missing, by path. */
  failed: Record<string, string>;
};

export type Address = {
  /** One of PAGES, or "service". */
  page: string;
  /** The service of the page "service", the cause or finding of the others. */
  name: string | null;
  /** A moment in ms since 1970; null: now. */
  at: number | null;
  /** The end of a span that was chosen by dragging, in ms since 1970. */
  to: number | null;
  /** In seconds. */
  span: number;
};

export type Props = {
  title: string;
  unit: string;
  frame: Frame;
  series: Series[];
  format: (value: number | null) => string;
  /** Areas on top of each other: values are sums, the lowest first. */
  stack?: boolean;
  /** Only whole numbers on the scale: what is counted has no halves. */
  whole?: boolean;
  /** A logarithmic scale, for times whose quantiles lie far apart. */
  log?: boolean;
  height?: number;
};

export type Listener = {
  /** Called when anything arrives, also the head of the answer. */
  heard: () => void;
  event: (event: import("./source/sse.js").ServerEvent) => void;
};

export type TableColumn<T> = {
  title: any;
  cell: (row: T) => any;
  /** Right-aligned. */
  number?: boolean;
  /** A class: "opt" is left out on narrow screens. */
  kind?: string;
  /** Part of the title. */
  unit?: string;
  /** In px, at least; what is left over goes to columns without one. Tables of one kind on a page have the same widths, so
   * that their columns stand below each other. */
  width?: number;
  /** Makes the column sortable. */
  order?: (row: T) => string | number;
};
