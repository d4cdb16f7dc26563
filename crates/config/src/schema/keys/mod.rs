//! Every key of the configuration: top level here, the larger tables in separate files.
//!
//! Bounds catch obvious mistakes; they are wide.

mod acme;
mod affinity;
mod authentication;
mod autoscaler;
mod defaults;
mod discover;
mod error_page;
mod fleet;
mod kubernetes;
mod listener;
mod log;
mod maintenance;
mod otlp;
mod registries;
mod retries;
mod route;
mod scaling;
mod service;
mod tls;

use std::time::Duration;

pub(crate) use acme::ACME;
pub(crate) use authentication::AUTHENTICATION;
pub(crate) use listener::LISTENER;
pub(crate) use route::ROUTE;
pub(crate) use service::SERVICE;
pub(crate) use tls::CIPHERS;

use super::spec::{Absent, Form, KeySpec, Kind, TableSpec, key};
use autoscaler::KEDA;
use defaults::DEFAULTS;
use fleet::FLEET;
use kubernetes::KUBERNETES;
use log::LOG;
use otlp::OTLP;
use registries::{CONSUL, ETCD, NOMAD};
use tls::LISTENER_TLS;

use crate::defaults as usual;

/// Maximum of any duration in the file.
const DAY: Duration = Duration::from_secs(24 * 3600);
const MILLI: Duration = Duration::from_millis(1);
const U32_MAX: u64 = u32::MAX as u64;

const fn duration(min: Duration, max: Duration) -> Kind {
    Kind::Duration { min, max }
}

/// A timeout: at least a millisecond, since zero would end everything.
const TIMEOUT: Kind = duration(MILLI, DAY);

const fn form(name: &'static str) -> Form {
    Form { name, pattern: None, may_be_secret: false }
}

const fn patterned(name: &'static str, pattern: &'static str) -> Form {
    Form { name, pattern: Some(pattern), may_be_secret: false }
}

/// A name of something in the file; it becomes a metric label and appears in logs.
const NAME: Kind = Kind::Text(patterned("name", NAME_PATTERN));
const NAME_PATTERN: &str = "^[A-Za-z0-9_.:*/-]{1,128}$";
const ADDRESS: Kind = Kind::Text(patterned("address", ":[0-9]{1,5}$"));

/// An address, or `unix:` and an absolute path.
const ADDRESS_OR_SOCKET: Kind = Kind::Text(patterned("address", "^unix:/|:[0-9]{1,5}$"));
const PATH: Form = patterned("path", "^/");
const FIELD_NAME: Form = patterned("field name", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$");
const FILE: Kind = Kind::Text(form("file path"));
/// A share of all requests.
const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };
const TEXT: Kind = Kind::Text(form("text"));
/// A text that may be a secret, since nothing shows it: readers keep it as a [`model::Text`], or as a body.
const SECRET: Kind = Kind::Text(Form { may_be_secret: true, ..form("text") });
const HOST: Kind = Kind::Text(form("host"));

/// The whole file.
pub(crate) static TOP: TableSpec = TableSpec {
    heading: "the top level",
    path: "",
    doc: "Settings for the whole balancer. These keys are before the first `[table]`.",
    example: "zone = \"eu-west-1a\"\nworkers = 2\nconnections_max = 20_000\nrequest_buffers_max = \"64MB\"\ncompression_memory_max = \"64MB\"\nmirror_memory_max = \"64MB\"\nhistory_memory_max = \"64MB\"\ndrain_delay = \"10s\"\ndrain_max = \"30s\"\nstate_directory = \"/var/lib/weir\"\naffinity_key_file = \"affinity.key\"\nresolver = \"10.0.0.53\"\nuser = \"weir\"\ngroup = \"weir\"\ninclude = [\"conf.d/*.toml\"]\n",
    keys: &[
        key(
            "include",
            Kind::List(&FILE),
            Absent::Then("nothing"),
            "Further files with `[[listener]]`, `[[route]]`, `[service.NAME]` and `[authentication.NAME]`. In the last part of a path, `*` stands for any text: `\"conf.d/*.toml\"`. See [Several files](#several-files).",
        ),
        key(
            "zone",
            NAME,
            Absent::Then("none: all zones are equal"),
            "The zone this balancer runs in. Servers of the same zone are used first; see `zones` of a service.",
        ),
        key(
            "workers",
            Kind::Integer { min: 1, max: 1024 },
            Absent::Then("one per core"),
            "Worker threads.",
        ),
        key(
            "connections_max",
            Kind::Integer { min: 1, max: 10_000_000 },
            Absent::Integer(usual::CONNECTIONS_MAX),
            "Concurrent client connections of all listeners together; further ones wait in the listen backlog. Weir raises the limit on open files accordingly.",
        ),
        key(
            "request_buffers_max",
            Kind::Size { min: 0, max: 1 << 40 },
            Absent::Size(usual::REQUEST_BUFFERS_MAX_BYTES),
            "Memory for request bodies that are read before a server is chosen, over all requests. In services with `in_flight_max`, a body of known length up to `retries.body_kept_max` is read first, so that a slow client holds no slot. Beyond this bound the rest of it is read while the request holds its slot; with 0, all of it.",
        ),
        key(
            "compression_memory_max",
            Kind::Size { min: 0, max: 1 << 40 },
            Absent::Size(usual::COMPRESSION_MEMORY_MAX_BYTES),
            "Memory for compressing responses, over all responses; see `compress` of a route. One response takes about 0.5 MB with gzip, 1.5 MB with zstd and 5 MB with br. Responses beyond this bound are not compressed.",
        ),
        key(
            "mirror_memory_max",
            Kind::Size { min: 0, max: 1 << 40 },
            Absent::Size(usual::MIRROR_MEMORY_MAX_BYTES),
            "Memory for the bodies of requests that are copied, over all copies; see `mirror` of a route. Beyond this bound requests are not copied.",
        ),
        key(
            "history_memory_max",
            Kind::Size { min: 0, max: 1 << 40 },
            Absent::Size(usual::HISTORY_MEMORY_MAX_BYTES),
            "Memory for the history of traffic: 15 minutes by the second, two hours by ten seconds, a day by the minute. A busy server of a service takes up to 60 kB in a day, a service up to 400 kB. When there is no room for all, the oldest part of each goes first. `0B`: no history is kept.",
        ),
        key(
            "drain_delay",
            duration(Duration::ZERO, DAY),
            Absent::Duration(usual::DRAIN_DELAY),
            "How long Weir still accepts connections after SIGTERM, while `respond = \"ready\"` of a route already answers 503. It should be as long as the health checks in front of Weir take to notice.",
        ),
        key(
            "drain_max",
            duration(Duration::ZERO, DAY),
            Absent::Duration(usual::DRAIN_MAX),
            "How long requests in flight may continue after SIGTERM (and `drain_delay`) before they are aborted.",
        ),
        key(
            "state_directory",
            Kind::Text(form("directory path")),
            Absent::Then("`$STATE_DIRECTORY`, which systemd sets, else `/var/lib/weir`"),
            "Directory for data that must survive a restart: the key of affinity cookies and sessions (`affinity.key`), and what `[acme]` obtains (`acme`). An absolute path of a directory that exists.",
        ),
        affinity::OF_TOP,
        key(
            "resolver",
            Kind::OneOrMore(&Kind::Text(form("IP address"))),
            Absent::Then("the servers in /etc/resolv.conf"),
            "The DNS server, or up to three of them, for servers' names and SRV records, with a port if it is not 53: `\"10.0.0.53\"`, `[\"10.0.0.53\", \"127.0.0.1:5353\"]`. If one does not answer, another one is asked.",
        ),
        key(
            "consul",
            Kind::Table(&CONSUL),
            Absent::Then("the agent on this machine"),
            "How Consul is reached.",
        ),
        key(
            "nomad",
            Kind::Table(&NOMAD),
            Absent::Then("the agent on this machine"),
            "How Nomad is reached.",
        ),
        key(
            "etcd",
            Kind::Table(&ETCD),
            Absent::Then("the member on this machine"),
            "How etcd is reached.",
        ),
        key(
            "kubernetes",
            Kind::Table(&KUBERNETES),
            Absent::Then("not connected"),
            "How Weir is connected to Kubernetes.",
        ),
        key(
            "keda",
            Kind::Table(&KEDA),
            Absent::Then("no listener for KEDA"),
            "A listener from which KEDA reads how many servers services should have.",
        ),
        key(
            "user",
            Kind::Text(form("user name")),
            Absent::Then("no change"),
            "The user of `/etc/passwd` to switch to after binding, when started as root.",
        ),
        key(
            "group",
            Kind::Text(form("group name")),
            Absent::Then("the user's own group"),
            "The group to switch to, together with `user`.",
        ),
        key("admin", Kind::Table(&ADMIN), Absent::Then("as if empty"), "The admin API."),
        key(
            "metrics",
            Kind::Table(&METRICS),
            Absent::Then("as if empty"),
            "Where metrics are fetched or pushed.",
        ),
        key(
            "otlp",
            Kind::Table(&OTLP),
            Absent::Then("nothing is sent"),
            "The OpenTelemetry collector for traces, metrics and logs.",
        ),
        key(
            "acme",
            Kind::Table(&ACME),
            Absent::Then("certificates come from files"),
            "How certificates are obtained and renewed.",
        ),
        key("log", Kind::Table(&LOG), Absent::Then("as if empty"), "The access log."),
        key(
            "reload",
            Kind::Table(&RELOAD),
            Absent::Then("as if empty"),
            "When Weir reloads the configuration.",
        ),
        key("doctor", Kind::Table(&DOCTOR), Absent::Then("as if empty"), "The built-in doctor."),
        key(
            "defaults",
            Kind::Table(&DEFAULTS),
            Absent::Then("none"),
            "Keys for all listeners, services and routes that do not have them.",
        ),
        LISTENERS,
        ROUTES,
        SERVICES,
        AUTHENTICATIONS,
        // After the services, whose `discover` it shares.
        key(
            "fleet",
            Kind::Table(&FLEET),
            Absent::Then("this balancer is alone"),
            "The balancers that share health checks and concurrency limits with this one.",
        ),
    ],
};

/// An included file. No table of the schema: its keys are those of the top level.
pub(crate) static INCLUDED: TableSpec = TableSpec {
    heading: "an included file",
    path: "",
    doc: "",
    example: "",
    keys: &[LISTENERS, ROUTES, SERVICES, AUTHENTICATIONS],
};

const LISTENERS: KeySpec = key(
    "listener",
    Kind::Tables(&LISTENER),
    Absent::Then("at least one is required without `[kubernetes]`"),
    "Addresses on which Weir accepts clients.",
);
const ROUTES: KeySpec = key(
    "route",
    Kind::Tables(&ROUTE),
    Absent::Then("every HTTP request is answered with 404"),
    "Which request goes where. Order in the file, and in which file, does not matter.",
);
const SERVICES: KeySpec = key(
    "service",
    Kind::NamedTables(&SERVICE),
    Absent::Then("no request can be forwarded"),
    "Named groups of servers.",
);
const AUTHENTICATIONS: KeySpec = key(
    "authentication",
    Kind::NamedTables(&AUTHENTICATION),
    Absent::Then("no route can require one"),
    "Ways for requests to prove who sends them.",
);

static ADMIN: TableSpec = TableSpec {
    heading: "[admin]",
    path: "admin",
    doc: "The admin API: metrics at `/metrics`, everything else under `/api/v1/`; see `docs/admin-api.md`. It is reachable only from this machine: remote access would need TLS, which it does not support yet.",
    example: "[admin]\naddress = \"unix:/run/weir/admin.sock\"\ntoken_file = \"/etc/weir/admin.token\"\n",
    keys: &[
        key(
            "address",
            Kind::Either(&[ADDRESS, UNIX_SOCKET, Kind::Choice(&["off"])]),
            Absent::Text("127.0.0.1:9900"),
            "Where it listens: a loopback address, `\"unix:PATH\"` for a Unix socket that only Weir's own user (and root) may use, or `\"off\"`.",
        ),
        key(
            "token_file",
            Kind::Text(form("file path")),
            Absent::Then("no token is required"),
            "A file with the token that every request must carry as `Authorization: Bearer`: 16 to 512 letters, digits and `-._~+/=`, for instance from `openssl rand -hex 32`. Weir rejects the file if other users may read it.",
        ),
    ],
};

/// The path is absolute.
const UNIX_SOCKET: Kind = Kind::Text(patterned("Unix socket", "^unix:/"));

static METRICS: TableSpec = TableSpec {
    heading: "[metrics]",
    path: "metrics",
    doc: "Where metrics are fetched from other machines, and where they are pushed; `docs/metrics.md` lists them. A Prometheus on this machine can fetch them from the admin API and needs no settings here.",
    example: "[metrics]\naddress = \"0.0.0.0:9100\"\ntoken_file = \"/etc/weir/metrics.token\"\ntls = { certificates = [{ chain = \"a.pem\", key = \"a.key\" }] }\nserver_histograms = true\nstatsd = \"127.0.0.1:8125\"\ngraphite = \"graphite.internal:2003\"\ninterval = \"10s\"\nprefix = \"europe.weir-1\"\n",
    keys: &[
        key(
            "address",
            ADDRESS,
            Absent::Then("only from the admin API"),
            "An address for other machines. It answers GET requests for `/metrics`, for `/livez` (200 while the process runs) and for `/readyz` (200 while it takes new work, 503 from SIGTERM on), and nothing else. A change takes effect with the next start or upgrade.",
        ),
        key(
            "token_file",
            Kind::Text(form("file path")),
            Absent::Then("no token is required"),
            "A file with the token that requests for `/metrics` must carry as `Authorization: Bearer`; see `token_file` of [admin]. Health checks need none.",
        ),
        key(
            "tls",
            Kind::Table(&LISTENER_TLS),
            Absent::Then("clear text"),
            "TLS at `address`, with certificates from files, not by ACME. New certificates take effect with a reload.",
        ),
        key(
            "server_histograms",
            Kind::Boolean,
            Absent::Boolean(usual::SERVER_HISTOGRAMS),
            "Whether the text formats of `/metrics` include histograms of each server's durations: about 80 series for each server of a service. Prometheus with native histograms gets them in any case, in 4 series.",
        ),
        key("statsd", ADDRESS, Absent::Then("not pushed"), "A StatsD server, over UDP."),
        key(
            "graphite",
            ADDRESS,
            Absent::Then("not pushed"),
            "A Graphite (carbon) server, over TCP in its plaintext protocol. While it is unreachable, Weir keeps up to 1 MiB.",
        ),
        key(
            "interval",
            duration(Duration::from_secs(1), Duration::from_hours(1)),
            Absent::Duration(usual::METRICS_INTERVAL),
            "Time between two pushes. Counts and quantiles cover this interval.",
        ),
        key(
            "prefix",
            Kind::Text(patterned("prefix", "^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$")),
            Absent::Text(usual::METRICS_PREFIX),
            "Prefix of every pushed name.",
        ),
    ],
};

static RELOAD: TableSpec = TableSpec {
    heading: "[reload]",
    path: "reload",
    doc: "When Weir reloads the configuration: on SIGHUP, on `weir reload`, and when one of its files changes. Weir checks them first and applies them as a whole; if there is a mistake, the old configuration stays in force. See `docs/operations.md`.",
    example: "[reload]\nwatch = false\n",
    keys: &[key(
        "watch",
        Kind::Boolean,
        Absent::Boolean(usual::WATCH),
        "Whether a change takes effect automatically, within about a second: of this file, of a file that it includes or that one of these names, and of which files the patterns of `include` match. `false`: only on SIGHUP and `weir reload`.",
    )],
};

static DOCTOR: TableSpec = TableSpec {
    heading: "[doctor]",
    path: "doctor",
    doc: "While it runs, the balancer examines its host as `weir doctor` does, together with its own counters. Findings go to its log, to `/api/v1/findings` and to `weir status`. Each run takes a few milliseconds of CPU time on a separate thread. See `docs/doctor.md`.",
    example: "[doctor]\nenabled = true\ninterval = \"30s\"\n",
    keys: &[
        key("enabled", Kind::Boolean, Absent::Boolean(usual::DOCTOR), "Whether the doctor runs."),
        key(
            "interval",
            duration(Duration::from_secs(1), Duration::from_hours(1)),
            Absent::Duration(usual::DOCTOR_INTERVAL),
            "Time between two runs. Rates cover the last few runs.",
        ),
    ],
};
