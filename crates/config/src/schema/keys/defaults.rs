//! Keys of `[defaults]`.

use super::{LISTENER, ROUTE, SERVICE};
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(super) static DEFAULTS: TableSpec = TableSpec {
    heading: "[defaults]",
    path: "defaults",
    doc: "Keys that apply to every `[[listener]]`, `[service.NAME]` or `[[route]]` that does not have them itself, in included files too. A key of the table replaces the whole value of the default; they are not merged: with `timeouts = { connect = \"1s\" }` in a service, none of the timeouts of `[defaults.service.timeouts]` applies to it. A default has no effect where a key would have none, such as `compress` on a route that redirects. To exclude a table from a default, give it the key with another value; not every key has one that means none.",
    example: "[defaults.service]\nin_flight_max = 100\ncheck = { path = \"/status\" }\n\n[defaults.service.timeouts]\nconnect = \"1s\"\nresponse = \"30s\"\n\n[defaults.route]\ncompress = true\n\n[defaults.listener]\ntimeouts = { idle = \"2m\" }\n",
    keys: &[
        key(
            "listener",
            Kind::Defaults {
                heading: "[defaults.listener]",
                of: &LISTENER,
                without: OF_A_LISTENER,
            },
            Absent::Then("none"),
            "The keys of `[[listener]]`, except `name`, `address`, `service` and `server_names`.",
        ),
        key(
            "service",
            Kind::Defaults { heading: "[defaults.service]", of: &SERVICE, without: OF_A_SERVICE },
            Absent::Then("none"),
            "The keys of `[service.NAME]`, except `server`.",
        ),
        key(
            "route",
            Kind::Defaults { heading: "[defaults.route]", of: &ROUTE, without: OF_A_ROUTE },
            Absent::Then("none"),
            "The keys of `[[route]]`, except its name, priority, conditions and action: `request_header`, `response_header`, `mirror`, `compress`, `authenticate`, `rate_limit`, `cors`, `maintenance` and `error_page`.",
        ),
    ],
};

/// What makes a listener the one it is.
const OF_A_LISTENER: &[&str] = &["name", "address", "service", "server_names"];
const OF_A_SERVICE: &[&str] = &["server"];
/// Conditions, the priority among routes, and the action; `rewrite` continues a condition, the path.
const OF_A_ROUTE: &[&str] = &[
    "name",
    "priority",
    "listener",
    "host",
    "path",
    "path_exact",
    "path_regex",
    "method",
    "header",
    "query",
    "cookie",
    "client",
    "client_not",
    "client_file",
    "client_not_file",
    "client_certificate",
    "service",
    "split",
    "redirect",
    "deny",
    "respond",
    "rewrite",
];
