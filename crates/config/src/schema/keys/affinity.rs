//! Keys of `affinity`.

use std::time::Duration;

use model::RouteAffinity;

use super::{FIELD_NAME, duration, form};
use crate::schema::spec::{Absent, KeySpec, Kind, TableSpec, key};

/// Browsers keep no cookie for longer.
const AGE: Kind = duration(RouteAffinity::TIME_MIN, Duration::from_secs(400 * 24 * 3600));

const COOKIE: Kind = Kind::Text(form("cookie name"));

/// What a key file is.
macro_rules! key_file {
    ($what:literal) => {
        concat!(
            "A file with the secret key of ", $what, ": 32 hexadecimal digits (`openssl rand -hex 16`), in a regular file that only its owner and group may read or change. Instances with the same key accept each other's."
        )
    };
}

pub(super) const OF_TOP: KeySpec = key(
    "affinity_key_file",
    Kind::Text(form("file path")),
    Absent::Then("a key of this instance, kept in `state_directory`"),
    key_file!("the cookies and headers of every `affinity` without a `key_file`"),
);

const fn key_file(doc: &'static str) -> KeySpec {
    key(
        "key_file",
        Kind::Text(form("file path")),
        Absent::Then("that of the top level's `affinity_key_file`"),
        doc,
    )
}

pub(super) static OF_SERVICE: TableSpec = TableSpec {
    heading: "affinity of [service.NAME]",
    path: "service.NAME.affinity",
    doc: "A cookie that Weir sets and that binds a client to its server as long as that server is ready (sticky sessions).",
    example: "[service.shop]\naffinity = { cookie = \"shop-server\", max_age = \"1h\", key_file = \"affinity.key\" }\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key("cookie", COOKIE, Absent::Required, "The cookie's name."),
        key(
            "max_age",
            AGE,
            Absent::Then("until the browser is closed"),
            "How long the client keeps the cookie, in whole seconds.",
        ),
        key_file(key_file!("the cookies")),
    ],
};

pub(super) static OF_ROUTE: TableSpec = TableSpec {
    heading: "affinity of [[route]]",
    path: "route.affinity",
    doc: "A session by which the requests of a client stay with a service and a server, in a cookie or a header. It replaces the `affinity` of the services for the requests of this route. Routes whose cookies or headers have the same name accept each other's sessions. See docs/balancing.md.",
    example: "[[route]]\npath = \"/shop\"\nsplit = [{ service = \"shop\", weight = 95 }, { service = \"shop-next\", weight = 5 }]\naffinity = { cookie = \"shop-session\", lifetime_max = \"8h\", idle_max = \"30m\", permanent = true, key_file = \"affinity.key\" }\n\n[[route]]\npath = \"/api\"\nservice = \"shop\"\naffinity = { header = \"Shop-Session\", lifetime_max = \"1h\" }\n\n[service.shop]\nserver = [{ address = \"10.0.1.5:8080\" }]\n\n[service.shop-next]\nserver = [{ address = \"10.0.1.6:8080\" }]\n",
    keys: &[
        key(
            "cookie",
            COOKIE,
            Absent::Then("sessions are in `header`"),
            "The name of the cookie that Weir sets. Its path is that of the route's condition.",
        ),
        key(
            "header",
            Kind::Text(FIELD_NAME),
            Absent::Then("sessions are in `cookie`"),
            "The name of the header that Weir adds to the response, in place of a server's own. The client repeats it in its next requests.",
        ),
        key(
            "lifetime_max",
            AGE,
            Absent::Then("as long as the client keeps the cookie or header"),
            "How long a session lasts, in whole seconds. Then the client gets a new one.",
        ),
        key(
            "idle_max",
            AGE,
            Absent::Then("not limited"),
            "How long a session lasts without requests, in whole seconds. Weir then sets the cookie or header again while the session is used, at most 60 times in this time.",
        ),
        key(
            "permanent",
            Kind::Boolean,
            Absent::Boolean(false),
            "Whether browsers keep the cookie for `lifetime_max` (`Max-Age`), not only until they are closed.",
        ),
        key_file(key_file!("the cookies or headers")),
    ],
};
