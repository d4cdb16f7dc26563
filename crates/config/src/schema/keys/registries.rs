//! The keys of `[consul]`, `[nomad]` and `[etcd]`.

use std::time::Duration;

use model::RouteTagFormat;

use super::{FILE, HOST, NAME, SECRET, TEXT, duration, form, patterned, tls};
use crate::defaults;
use crate::schema::spec::{Absent, KeySpec, Kind, TableSpec, key};

/// `ca` and `certificate` are the same in all tables, and the keys of blocking queries in two.
const CA: KeySpec = key(
    "ca",
    FILE,
    Absent::Then("those that the system trusts"),
    "Certificates (PEM) of the authorities that may have issued the certificate of the other side.",
);
const fn certificate(spec: &'static TableSpec) -> KeySpec {
    key(
        "certificate",
        Kind::Table(spec),
        Absent::Then("none"),
        "The certificate that Weir presents if it is asked for one.",
    )
}
const fn address(default: &'static str) -> KeySpec {
    key("address", URL, Absent::Text(default), "The URL of an agent, without a path.")
}
const URL: Kind = Kind::Text(patterned("URL", "^https?://"));
const WAIT: KeySpec = key(
    "wait",
    duration(Duration::from_secs(1), Duration::from_mins(10)),
    Absent::Duration(defaults::QUERY_WAIT),
    "How long a query is held while nothing changes.",
);

pub(super) static CONSUL: TableSpec = TableSpec {
    heading: "[consul]",
    path: "consul",
    doc: "How Consul is reached, for services with `discover = { consul = … }` and listeners with `register`. Weir uses blocking queries, so a change arrives at once. Over `https` it uses HTTP/2 if the agent does, which needs few connections for any number of services.",
    example: "[consul]\naddress = \"https://consul.internal:8501\"\nca = \"internal.pem\"\ntoken = \"fe3b8d40-0ee0-8783-6cc2-ab1aa9bb16c1\"\ndatacenters = [\"dc1\", \"dc2\"]\nstale = true\nwait = \"1m\"\nconnections_max = 100\n",
    keys: &[
        address(defaults::CONSUL),
        CA,
        certificate(&CONSUL_CERTIFICATE),
        key(
            "token",
            SECRET,
            Absent::Then("no token"),
            "The ACL token, sent as `X-Consul-Token`; `\"${file:consul.token}\"` takes it from a file. It needs `service:read` and `node:read`; for `register` of a listener, `service:write` for that service.",
        ),
        key(
            "datacenters",
            Kind::List(&Kind::Text(form("datacenter"))),
            Absent::Then("the agent's own"),
            "The datacenters to ask. Instances of the first are primary servers, those of the others backups (`backup`).",
        ),
        key(
            "routes",
            Kind::Table(&CONSUL_ROUTES),
            Absent::Then("tags publish no routes"),
            "Lets services publish routes in their tags.",
        ),
        key(
            "stale",
            Kind::Boolean,
            Absent::Boolean(defaults::STALE),
            "Whether any server of Consul may answer, not only its leader: faster, possible without a leader, and usually some milliseconds older.",
        ),
        WAIT,
        key(
            "connections_max",
            Kind::Integer { min: 2, max: 10_000 },
            Absent::Integer(defaults::CONSUL_CONNECTIONS_MAX),
            "Connections to the agent at the same time. Consul allows 200 for each client address (`http_max_conns_per_client`). With more services than this over HTTP/1.1, they take turns.",
        ),
    ],
};

static CONSUL_ROUTES: TableSpec = TableSpec {
    heading: "routes in [consul]",
    path: "consul.routes",
    doc: "Lets services publish routes in their tags, such as `weir.route=shop.apps.example.com/cart`. The service of such a route takes its servers from Consul; if this file has a service with `discover = { consul = … }` of that name, that one is used. `[defaults.route]` and `[defaults.service]` apply. The file always wins: tags are refused whose host is one that a rule of the file names, or covers, or lies below. Rules without a host come after published routes: with a redirect to HTTPS or the like among them, write `listener`.",
    example: "[consul]\nroutes = { hosts = [\"*.apps.example.com\", \"shop.example.com\"], formats = [\"weir\", \"fabio\", \"traefik\"], listener = \"public\", hold_max = \"10m\" }\n\n[[listener]]\nname = \"public\"\naddress = \"0.0.0.0:8080\"\n",
    keys: &[
        key(
            "hosts",
            Kind::List(&HOST),
            Absent::Required,
            "The hosts that services may publish: exact, or `\"*.example.com\"` for every subdomain. Any client that may register a service can take over any of them.",
        ),
        key(
            "formats",
            Kind::List(&Kind::Choice(RouteTagFormat::WORDS)),
            Absent::Texts(&[RouteTagFormat::Weir.as_str()]),
            "The formats of tags to read: Weir's own, Fabio's `urlprefix-`, and Traefik's rules with `Host`, `Path` and `PathPrefix`. Tags that say more than these are refused.",
        ),
        key(
            "listener",
            Kind::OneOrMore(&NAME),
            Absent::Then("every http listener"),
            "The listeners that published routes are for, by name. Traefik's `entrypoints` choose among them.",
        ),
        key(
            "hold_max",
            duration(Duration::ZERO, Duration::from_hours(24)),
            Absent::Duration(defaults::HOLD_MAX),
            "How long the routes of a service stay that Consul no longer lists at all; no other service can have them in that time. A route whose tag is removed while its service is listed is removed at once.",
        ),
    ],
};

static CONSUL_CERTIFICATE: TableSpec = TableSpec {
    heading: "certificate in [consul]",
    path: "consul.certificate",
    doc: "The certificate that Weir presents to an agent that asks for one (`verify_incoming`).",
    example: "[consul]\naddress = \"https://consul.internal:8501\"\ncertificate = { chain = \"a.pem\", key = \"a.key\" }\n",
    keys: tls::CHAIN_AND_KEY,
};

pub(super) static NOMAD: TableSpec = TableSpec {
    heading: "[nomad]",
    path: "nomad",
    doc: "How Nomad is reached, for services with `discover = { nomad = … }`. Weir uses blocking queries, so a change arrives at once.",
    example: "[nomad]\naddress = \"https://nomad.internal:4646\"\nca = \"internal.pem\"\ntoken = \"fe3b8d40-0ee0-8783-6cc2-ab1aa9bb16c1\"\nnamespace = \"shop\"\nregion = \"eu\"\nstale = true\nwait = \"1m\"\nconnections_max = 50\n",
    keys: &[
        address(defaults::NOMAD),
        CA,
        certificate(&NOMAD_CERTIFICATE),
        key(
            "token",
            SECRET,
            Absent::Then("no token"),
            "The ACL token, sent as `X-Nomad-Token`; `\"${file:nomad.token}\"` takes it from a file. It needs `read-job` in the namespace.",
        ),
        key("namespace", TEXT, Absent::Text("default"), "The namespace of the services."),
        key("region", TEXT, Absent::Then("the agent's own"), "The region to ask."),
        key(
            "stale",
            Kind::Boolean,
            Absent::Boolean(defaults::STALE),
            "Whether any server of Nomad may answer, not only its leader.",
        ),
        WAIT,
        key(
            "connections_max",
            Kind::Integer { min: 2, max: 10_000 },
            Absent::Integer(defaults::NOMAD_CONNECTIONS_MAX),
            "Connections to the agent at the same time. Nomad allows 100 for each client address (`http_max_conns_per_client`). With more services than this, they take turns.",
        ),
    ],
};

static NOMAD_CERTIFICATE: TableSpec = TableSpec {
    heading: "certificate in [nomad]",
    path: "nomad.certificate",
    doc: "The certificate that Weir presents to an agent that asks for one (`verify_https_client`).",
    example: "[nomad]\naddress = \"https://nomad.internal:4646\"\ncertificate = { chain = \"a.pem\", key = \"a.key\" }\n",
    keys: tls::CHAIN_AND_KEY,
};

pub(super) static ETCD: TableSpec = TableSpec {
    heading: "[etcd]",
    path: "etcd",
    doc: "How etcd (version 3.4 or later) is reached, for services with `discover = { etcd = … }`. Weir watches each prefix, so a change arrives at once. It uses the JSON gateway, which etcd has unless it was started with `--enable-grpc-gateway=false`.",
    example: "[etcd]\nendpoints = [\"https://etcd-1.internal:2379\", \"https://etcd-2.internal:2379\"]\nca = \"internal.pem\"\nuser = \"weir\"\npassword = \"a-long-password\"\n",
    keys: &[
        key(
            "endpoints",
            Kind::List(&URL),
            Absent::Then("`http://127.0.0.1:2379`"),
            "The URLs of the cluster's members, without a path. If one fails, Weir asks the next.",
        ),
        CA,
        certificate(&ETCD_CERTIFICATE),
        key(
            "user",
            TEXT,
            Absent::Then("no authentication"),
            "The user's name in etcd. The user needs to read the prefixes.",
        ),
        key(
            "password",
            SECRET,
            Absent::Then("no authentication"),
            "The user's password; `\"${file:etcd.password}\"` takes it from a file.",
        ),
    ],
};

static ETCD_CERTIFICATE: TableSpec = TableSpec {
    heading: "certificate in [etcd]",
    path: "etcd.certificate",
    doc: "The certificate that Weir presents to members that ask for one (`--client-cert-auth`).",
    example: "[etcd]\nendpoints = [\"https://etcd-1.internal:2379\"]\ncertificate = { chain = \"a.pem\", key = \"a.key\" }\n",
    keys: tls::CHAIN_AND_KEY,
};
