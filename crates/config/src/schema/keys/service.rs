//! Keys of `[service.NAME]`.

use std::time::Duration;

use model::{BalanceWord, CheckWord, HttpVersion, LimitScope, ProxyVersion, WhenAllDown};

use super::affinity;
use super::discover::DISCOVER;
use super::error_page::{ERROR_PAGES, STATUSES};
use super::maintenance::MAINTENANCE;
use super::retries;
use super::scaling::SCALING;
use super::tls::SERVICE_TLS;
use super::{
    ADDRESS_OR_SOCKET, DAY, FIELD_NAME, HOST, MILLI, NAME, PATH, SECRET, TEXT, TIMEOUT, U32_MAX,
    duration, form, patterned,
};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(crate) static SERVICE: TableSpec = TableSpec {
    heading: "[service.NAME]",
    path: "service.NAME",
    doc: "A named group of equivalent servers (a backend, or upstream), and how requests are distributed over them.",
    example: "[service.listings]\nbalance = \"least-connections\"\nin_flight_max = 4\nqueue = { length_max = 200, wait_max = \"5s\" }\nwhen_full = 503\nwhen_all_down = \"try-all\"\nslow_start = \"30s\"\nidle_connections_max = 64\nversion_field = \"X-App-Version\"\ncheck = { path = \"/status\" }\nerror_page = [{ status = 503, body = \"Busy.\\n\" }]\nserver = [{ address = \"10.0.1.5:8080\" }, { address = \"10.0.2.5:8080\" }]\n\n[service.grpc]\nhttp = \"2\"\nserver = [{ address = \"10.0.1.6:8080\" }]\n\n[service.database]\nsend_proxy = \"v2\"\nserver = [{ address = \"10.0.1.9:5432\" }]\n",
    keys: &[
        key(
            "balance",
            Kind::Choice(BalanceWord::WORDS),
            Absent::Text(BalanceWord::RoundRobin.as_str()),
            "How a server is chosen. `round-robin`: each in turn, by weight. `least-connections`: the fewest requests in flight relative to weight. `peak-ewma`: of two drawn, the lower product of latency and requests in flight. `random`: of two drawn, the one with fewer requests in flight. `hash`: the same key to the same server.",
        ),
        key(
            "hash",
            Kind::Table(&HASH),
            Absent::Then("as if empty"),
            "The key of `balance = \"hash\"`.",
        ),
        key(
            "in_flight_max",
            Kind::Integer { min: 1, max: U32_MAX },
            Absent::Then("no limit"),
            "Concurrent requests per server without an `in_flight_max` of its own (behind a tcp listener: connections). The limit belongs to the server's address: services that name the same address share one count.",
        ),
        key(
            "in_flight_scope",
            Kind::Choice(LimitScope::WORDS),
            Absent::Text(LimitScope::Balancer.as_str()),
            "Whose requests the limits of its servers cover: those of this balancer (`balancer`), or those of all balancers of `[fleet]` together (`fleet`), which divide the slots of each server among them and lend each other free ones by demand, except for servers on loopback and link-local addresses and Unix sockets, where the limit covers those of this balancer.",
        ),
        key(
            "queue",
            Kind::Table(&QUEUE),
            Absent::Then("as if empty"),
            "Where requests wait when every server is at `in_flight_max`.",
        ),
        key(
            "when_full",
            Kind::OneOf(&[429, 503]),
            Absent::Integer(defaults::WHEN_FULL),
            "Status when the queue is full or the wait too long. The response carries a Retry-After computed from the queue's throughput.",
        ),
        key(
            "when_all_down",
            Kind::Choice(WhenAllDown::WORDS),
            Absent::Text(WhenAllDown::Refuse.as_str()),
            "When no server is ready: answer 503 at once, or use all of them as if they were ready.",
        ),
        key("check", Kind::Table(&CHECK), Absent::Then("no check"), "Active health checks."),
        key(
            "passive",
            Kind::Either(&[Kind::Table(&PASSIVE), Kind::Boolean]),
            Absent::Boolean(true),
            "Passive health checks on real requests: failing servers are ejected for a while. `false` turns them off.",
        ),
        key(
            "zones",
            Kind::Table(&ZONES),
            Absent::Then("as if empty"),
            "When servers of other zones are used.",
        ),
        key(
            "affinity",
            Kind::Table(&affinity::OF_SERVICE),
            Absent::Then("none"),
            "A cookie that binds a client to its server (sticky sessions).",
        ),
        key(
            "slow_start",
            duration(MILLI, DAY),
            Absent::Then("at once"),
            "The time in which a recovered server ramps up to its full share.",
        ),
        key(
            "timeouts",
            Kind::Table(&TIMEOUTS),
            Absent::Then("as if empty"),
            "Timeouts towards servers.",
        ),
        key(
            "retries",
            Kind::Table(&retries::OF_SERVICE),
            Absent::Then("as if empty"),
            "When a failed request is retried.",
        ),
        key(
            "scaling",
            Kind::Table(&SCALING),
            Absent::Then("no number is computed"),
            "How many servers it should have, for an autoscaler.",
        ),
        key(
            "idle_connections_max",
            Kind::Integer { min: 0, max: 65_536 },
            Absent::Integer(defaults::IDLE_CONNECTIONS_MAX),
            "Idle connections kept per server and worker.",
        ),
        key(
            "tls",
            Kind::Table(&SERVICE_TLS),
            Absent::Then("cleartext"),
            "TLS towards the servers, for requests and health checks.",
        ),
        key(
            "http",
            Kind::Choice(HttpVersion::WORDS),
            Absent::Text(HttpVersion::Http11.as_str()),
            "The version of HTTP towards the servers. `\"2\"`: by ALPN with `tls`, with prior knowledge without it.",
        ),
        key(
            "send_proxy",
            Kind::Choice(ProxyVersion::WORDS),
            Absent::Then("none is sent"),
            "Each connection to a server begins with a PROXY protocol header that names the client; the servers must expect it.",
        ),
        key(
            "version_field",
            Kind::Text(FIELD_NAME),
            Absent::Then("only `version` of the servers counts"),
            "The response field by which the servers state their version, such as `X-App-Version`: 1 to 64 visible ASCII characters. It counts before `version` of a server. The finding `deploy_regression` compares versions.",
        ),
        key(
            "maintenance",
            MAINTENANCE,
            Absent::Boolean(false),
            "Whether the service is in maintenance: Weir answers its requests with 503, and no server gets them.",
        ),
        key(
            "error_page",
            ERROR_PAGES,
            Absent::Then("none"),
            "Pages in place of the responses that Weir generates for errors of its requests.",
        ),
        key(
            "discover",
            Kind::Table(&DISCOVER),
            Absent::Then("only the servers in the file"),
            "Where further servers come from: Consul, files, an HTTP server.",
        ),
        key(
            "server",
            Kind::Tables(&SERVER),
            Absent::Then("required without `discover`"),
            "The servers.",
        ),
    ],
};

static HASH: TableSpec = TableSpec {
    heading: "hash of [service.NAME]",
    path: "service.NAME.hash",
    doc: "The key of `balance = \"hash\"`, and how uneven the load may become.",
    example: "[service.cache]\nbalance = \"hash\"\nhash = { on = \"header:X-User\", load_factor = 1.25 }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "on",
            Kind::Text(form("part of a request")),
            Absent::Text("client"),
            "`\"client\"`, the client's address; `\"header:X-User\"`, a field's value; `\"cookie:session\"`, a cookie's value; `\"path\"`, the path as the client sent it (no query; two ways to percent-encode a path are the same); `\"query:id\"`, the value of a query parameter, the first if it is repeated. A request without it goes to a random server.",
        ),
        key(
            "load_factor",
            Kind::Number { min: 1.0, max: 100.0 },
            Absent::Number(defaults::HASH_LOAD_FACTOR),
            "A server takes at most this multiple of the mean load; the rest goes to the next.",
        ),
    ],
};

static QUEUE: TableSpec = TableSpec {
    heading: "queue of [service.NAME]",
    path: "service.NAME.queue",
    doc: "One first-come, first-served queue per service, used when every server is at `in_flight_max`. Without that limit no request waits.",
    example: "[service.listings]\nin_flight_max = 4\nqueue = { length_max = 200, wait_max = \"5s\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "length_max",
            Kind::Integer { min: 0, max: 1_000_000 },
            Absent::Integer(defaults::QUEUE_LENGTH_MAX),
            "Maximum number of waiting requests; 0: no queue.",
        ),
        key(
            "wait_max",
            duration(MILLI, DAY),
            Absent::Duration(defaults::QUEUE_WAIT_MAX),
            "The maximum wait.",
        ),
    ],
};

static CHECK: TableSpec = TableSpec {
    heading: "check of [service.NAME]",
    path: "service.NAME.check",
    doc: "Active health checks. Services whose probes of an address are identical in everything that is sent and expected share one probe, at the shortest of their intervals; `rise`, `fall` and `timeout` stay separate for each service. Probes reach the servers in the same way as requests: over TLS with the name, authorities and certificate of `tls`, in the version of HTTP that `http` sets, after a PROXY protocol header if `send_proxy` is set; that header names no client (LOCAL in v2, UNKNOWN in v1). `weir check` prints the plan.",
    example: "[service.listings]\ncheck = { kind = \"http\", path = \"/status\", expect = 200, interval = \"2s\", timeout = \"1s\", rise = 2, fall = 3 }\nserver = [{ address = \"10.0.1.5:8080\" }]\n\n# The body of the answer decides; the check uses a port of its own, without TLS.\n[service.accounts]\ntls = { ca = \"internal.pem\" }\nserver = [{ address = \"10.0.1.5:8443\" }]\n\n[service.accounts.check]\nmethod = \"POST\"\npath = \"/health\"\nhost = \"accounts.internal\"\nheader = { X-Probe = \"weir\" }\nexpect_body = \"(?i)ready\"\nexpect_json = { status = \"UP\", \"db.up\" = \"true\" }\nport = 8081\ntls = false\nhttp = \"1.1\"\nreuse = false\n\n[service.grpc]\nhttp = \"2\"\ncheck = { kind = \"grpc\", grpc_service = \"listings.Listings\" }\nserver = [{ address = \"10.0.1.6:8080\" }]\n",
    keys: &[
        key(
            "kind",
            Kind::Choice(CheckWord::WORDS),
            Absent::Text(CheckWord::Http.as_str()),
            "`\"http\"`: a request whose status must be expected. `\"tcp\"`: a connection, closed at once; with `tls` the TLS handshake must succeed first. `\"grpc\"`: the gRPC health checking protocol (`grpc.health.v1.Health/Check`), which must answer SERVING; the service needs `http = \"2\"`.",
        ),
        key(
            "path",
            Kind::Text(PATH),
            Absent::Text(defaults::CHECK_PATH),
            "http: the path to request, optionally with a query.",
        ),
        key(
            "method",
            Kind::Text(form("method")),
            Absent::Text(defaults::CHECK_METHOD),
            "http: the method.",
        ),
        key(
            "host",
            HOST,
            Absent::Then("the server's address; `localhost` for a Unix socket"),
            "http and grpc: the Host field, optionally with a port.",
        ),
        key(
            "header",
            Kind::Map(FIELD_NAME, &SECRET),
            Absent::Then("none"),
            "http: further request fields.",
        ),
        key(
            "expect",
            STATUSES,
            Absent::Text(defaults::CHECK_EXPECT),
            "http: the statuses that count as success: `200`, `[200, 204]`, `\"2xx\"` or `\"200-399\"`.",
        ),
        key(
            "expect_body",
            Kind::Text(form("regular expression")),
            Absent::Then("any body"),
            "http: a regular expression that must match somewhere in the first 64 kB of the body, as in `\"ready\"` or `\"(?i)^ok$\"`.",
        ),
        key(
            "expect_json",
            Kind::Map(form("JSON member"), &TEXT),
            Absent::Then("any body"),
            "http: members that the JSON object in the body (at most 64 kB) must have, with their values as text: `{ status = \"UP\", \"components.db.up\" = \"true\" }`. Dots lead to members of members; in a list one element must be the value.",
        ),
        key(
            "grpc_service",
            Kind::Text(form("gRPC service")),
            Absent::Then("the server as a whole"),
            "grpc: the service to check, as in `\"listings.Listings\"`.",
        ),
        key(
            "port",
            Kind::Integer { min: 1, max: 65_535 },
            Absent::Then("the server's own"),
            "The port to probe.",
        ),
        key(
            "tls",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether probes use the `tls` of the service. `false` for a `port` without TLS.",
        ),
        key(
            "http",
            Kind::Choice(HttpVersion::WORDS),
            Absent::Then("the service's"),
            "http and grpc: the version of HTTP of probes.",
        ),
        key(
            "interval",
            duration(Duration::from_millis(10), DAY),
            Absent::Duration(defaults::CHECK_INTERVAL),
            "Time between the starts of two probes.",
        ),
        key(
            "timeout",
            TIMEOUT,
            Absent::Duration(defaults::CHECK_TIMEOUT),
            "A probe without a response within this time has failed.",
        ),
        key(
            "rise",
            Kind::Integer { min: 1, max: 1_000 },
            Absent::Integer(defaults::CHECK_RISE),
            "Consecutive successes that mark a server up.",
        ),
        key(
            "fall",
            Kind::Integer { min: 1, max: 1_000 },
            Absent::Integer(defaults::CHECK_FALL),
            "Consecutive failures that mark a server down.",
        ),
        key(
            "reuse",
            Kind::Boolean,
            Absent::Boolean(true),
            "http: whether probes share a kept connection. `false` for pre-fork servers, where a kept connection occupies a worker.",
        ),
    ],
};

static PASSIVE: TableSpec = TableSpec {
    heading: "passive of [service.NAME]",
    path: "service.NAME.passive",
    doc: "Passive health checks (outlier detection). Failures of real requests eject a server for a growing time, if no request can be the cause or if the server is clearly worse than its peers (docs/balancing.md). It is on unless `passive = false`. The last ready server is never ejected.",
    example: "[service.listings]\npassive = { failures = 3, count_5xx = false, eject = \"5s\", eject_max = \"1m\", share_max = 0.25 }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "failures",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Integer(defaults::PASSIVE_FAILURES),
            "Consecutive failures that eject a server that cannot be reached. Consecutive failures after the request was sent start the comparison with the other servers.",
        ),
        key(
            "count_5xx",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether responses with a status of 500 and above count as failures, except 501, 505 and 508.",
        ),
        key(
            "eject",
            TIMEOUT,
            Absent::Duration(defaults::PASSIVE_EJECT),
            "How long the first ejection lasts; the n-th consecutive one lasts n times as long.",
        ),
        key(
            "eject_max",
            TIMEOUT,
            Absent::Duration(defaults::PASSIVE_EJECT_MAX),
            "The longest ejection.",
        ),
        key(
            "share_max",
            Kind::Number { min: 0.0, max: 1.0 },
            Absent::Number(defaults::PASSIVE_SHARE_MAX),
            "The maximum share of the service's servers that is ejected at the same time.",
        ),
    ],
};

static ZONES: TableSpec = TableSpec {
    heading: "zones of [service.NAME]",
    path: "service.NAME.zones",
    doc: "Servers of the balancer's own zone are used first. When too few of them are ready, other zones and backups are used, too. The two thresholds differ, so that one flapping server does not move the traffic back and forth: half of a zone can carry its traffic if each zone is sized to survive the loss of another; three quarters is more than one server above that in any zone of three or more.",
    example: "[service.listings]\nzones = { ready_min = 0.5, ready_recovered = 0.75 }\nserver = [{ address = \"10.0.1.5:8080\", zone = \"eu-west-1a\" }, { address = \"10.0.2.5:8080\", zone = \"eu-west-1b\" }]\n",
    keys: &[
        key(
            "ready_min",
            Kind::Number { min: 0.0, max: 1.0 },
            Absent::Number(defaults::ZONES_READY_MIN),
            "Traffic fails over to other zones when the ready share, by weight, of the own zone's servers is below this.",
        ),
        key(
            "ready_recovered",
            Kind::Number { min: 0.0, max: 1.0 },
            Absent::Then("`0.75`, or `ready_min` if that is more"),
            "Traffic fails back when the share is at least this; not below `ready_min`.",
        ),
    ],
};

static TIMEOUTS: TableSpec = TableSpec {
    heading: "timeouts of [service.NAME]",
    path: "service.NAME.timeouts",
    doc: "Timeouts towards servers. Each has its own cause in the log when it ends a request.",
    example: "[service.listings]\ntimeouts = { connect = \"500ms\", response = \"10s\", idle = \"1m\", tunnel = \"1h\", keep_alive = \"4s\", total = \"30s\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key("connect", TIMEOUT, Absent::Duration(defaults::CONNECT), "To establish a connection."),
        key(
            "response",
            TIMEOUT,
            Absent::Duration(defaults::RESPONSE),
            "From the request's last byte sent, or the last progress, to the complete response head.",
        ),
        key("idle", TIMEOUT, Absent::Duration(defaults::IDLE), "Between two bytes of a body."),
        key(
            "tunnel",
            TIMEOUT,
            Absent::Then("that of `idle`"),
            "Between two bytes of a tunnel (a WebSocket, a connection in tcp mode), in either direction.",
        ),
        key(
            "keep_alive",
            TIMEOUT,
            Absent::Duration(defaults::KEEP_ALIVE),
            "The maximum idle time of a kept connection. If a server closes connections earlier, Weir learns this and closes them before the server does.",
        ),
        key(
            "total",
            TIMEOUT,
            Absent::Then("no limit"),
            "From the complete request head to the end of the response, even while data moves. It does not end tunnels: for a tcp listener's connection it covers only the time until the connection to a server is established.",
        ),
    ],
};

static SERVER: TableSpec = TableSpec {
    heading: "[[service.NAME.server]]",
    path: "service.NAME.server",
    doc: "A server.",
    example: "[[service.listings.server]]\naddress = \"10.0.1.5:8080\"\nzone = \"eu-west-1a\"\nweight = 2\nin_flight_max = 8\nversion = \"2.8.1\"\n\n[[service.listings.server]]\naddress = \"listings.internal:8080\"\nbackup = true\n\n[[service.listings.server]]\naddress = \"unix:/run/listings.sock\"\n",
    keys: &[
        key(
            "address",
            ADDRESS_OR_SOCKET,
            Absent::Required,
            "`\"10.0.1.5:8080\"`, `\"[::1]:8080\"`, `\"unix:/run/app.sock\"` for a Unix socket on this machine, or `\"host:port\"`: a name is resolved again when its TTL ends, and every resulting address is a server.",
        ),
        key("zone", NAME, Absent::Then("unknown"), "The server's zone."),
        key(
            "weight",
            Kind::Integer { min: 0, max: 1_000 },
            Absent::Integer(defaults::WEIGHT),
            "Share of the traffic relative to the service's other servers; 0 receives no new requests.",
        ),
        key(
            "backup",
            Kind::Boolean,
            Absent::Boolean(false),
            "Used only when too few of the other servers are ready.",
        ),
        key(
            "in_flight_max",
            Kind::Integer { min: 1, max: U32_MAX },
            Absent::Then("that of the service"),
            "Concurrent requests at this server. The limit belongs to the address: services that name it share one count, and must agree.",
        ),
        key(
            "version",
            Kind::Text(patterned("version", "^[!-~]{1,64}$")),
            Absent::Then("unknown"),
            "The version that it runs, such as `2.8.1`: 1 to 64 visible ASCII characters. It counts as long as the server states no other by the service's `version_field`.",
        ),
    ],
};
