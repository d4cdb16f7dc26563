//! Every key of the configuration: top level here, the larger tables in files of their own.
//!
//! Bounds keep a slip from becoming a puzzle; they are wide.

mod listener;
mod route;
mod service;

use std::time::Duration;

pub(crate) use listener::LISTENER;
pub(crate) use route::ROUTE;
pub(crate) use service::SERVICE;

use super::spec::{Absent, Form, Kind, TableSpec, key};
use crate::defaults;

/// Longest of any duration in the file.
const DAY: Duration = Duration::from_secs(24 * 3600);
const MILLI: Duration = Duration::from_millis(1);
const U32_MAX: u64 = u32::MAX as u64;

const fn duration(min: Duration, max: Duration) -> Kind {
    Kind::Duration { min, max }
}

/// A time limit: at least a millisecond, since one of none would end everything.
const TIMEOUT: Kind = duration(MILLI, DAY);

const fn form(name: &'static str) -> Form {
    Form { name, pattern: None }
}

const fn patterned(name: &'static str, pattern: &'static str) -> Form {
    Form { name, pattern: Some(pattern) }
}

/// A name of something in the file; it becomes a label in metrics and a word in logs.
const NAME: Kind = Kind::Text(patterned("name", NAME_PATTERN));
const NAME_PATTERN: &str = "^[A-Za-z0-9_.:*/-]{1,128}$";
const ADDRESS: Kind = Kind::Text(patterned("address", ":[0-9]{1,5}$"));
const PATH: Form = patterned("path", "^/");
const FIELD_NAME: Form = patterned("field name", "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$");
const TEXT: Kind = Kind::Text(form("text"));
const HOST: Kind = Kind::Text(form("host"));

/// The whole file.
pub(crate) static TOP: TableSpec = TableSpec {
    heading: "the top level",
    path: "",
    doc: "What holds for the whole balancer. These keys stand before the first `[table]`.",
    example: "zone = \"eu-west-1a\"\nworkers = 2\ndrain_max = \"30s\"\n",
    keys: &[
        key(
            "zone",
            NAME,
            Absent::Then("none: servers of all zones are equal"),
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
            Absent::Integer(defaults::CONNECTIONS_MAX),
            "Client connections at once in all listeners together; more are left waiting in the listen backlog. The limit on open files is raised to what this needs.",
        ),
        key(
            "drain_max",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::DRAIN_MAX),
            "How long running requests may take after SIGTERM before they are cut.",
        ),
        key(
            "resolver",
            Kind::Text(form("IP address")),
            Absent::Then("the servers in /etc/resolv.conf"),
            "The DNS server asked for servers' names, with a port if it is not 53: `\"10.0.0.53\"`, `\"127.0.0.1:5353\"`.",
        ),
        key(
            "user",
            Kind::Text(form("user name")),
            Absent::Then("stays who it is"),
            "The user to become after binding, when started as root.",
        ),
        key(
            "group",
            Kind::Text(form("group name")),
            Absent::Then("the user's own group"),
            "The group to become with `user`.",
        ),
        key("admin", Kind::Table(&ADMIN), Absent::Then("as if empty"), "The admin API."),
        key("log", Kind::Table(&LOG), Absent::Then("as if empty"), "The access log."),
        key("listener", Kind::Tables(&LISTENER), Absent::Required, "Where clients are accepted."),
        key(
            "route",
            Kind::Tables(&ROUTE),
            Absent::Then("every HTTP request is answered 404"),
            "Which request goes where. Order in the file does not matter.",
        ),
        key(
            "service",
            Kind::NamedTables(&SERVICE),
            Absent::Then("nothing can be passed on"),
            "Named groups of servers.",
        ),
    ],
};

static ADMIN: TableSpec = TableSpec {
    heading: "[admin]",
    path: "admin",
    doc: "The admin API: metrics at `/metrics`, everything else under `/api/v1/`. It asks for no password.",
    example: "[admin]\naddress = \"127.0.0.1:9900\"\n",
    keys: &[key(
        "address",
        Kind::Either(&[ADDRESS, Kind::Choice(&["off"])]),
        Absent::Text("127.0.0.1:9900"),
        "Where it listens, or `\"off\"`.",
    )],
};

static LOG: TableSpec = TableSpec {
    heading: "[log]",
    path: "log",
    doc: "The access log: a line per request.",
    example: "[log]\naccess = \"/var/log/weir/access.log\"\nformat = \"text\"\n",
    keys: &[
        key(
            "access",
            Kind::Either(&[Kind::Choice(&["stdout", "off"]), Kind::Text(form("file path"))]),
            Absent::Text("stdout"),
            "`\"stdout\"`, `\"off\"`, or the path of a file that is appended to. A path contains a slash.",
        ),
        key(
            "format",
            Kind::Choice(&["json", "text"]),
            Absent::Text("json"),
            "One JSON object a line, or text for people.",
        ),
    ],
};
