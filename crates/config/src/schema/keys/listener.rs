//! Keys of `[[listener]]`.

use model::ProtocolWord;

use super::tls::{HTTP2, LISTENER_TLS};
use super::{ADDRESS, NAME, TIMEOUT, U32_MAX, form};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

const NETWORK: Kind = Kind::Text(form("network"));

pub(crate) static LISTENER: TableSpec = TableSpec {
    heading: "[[listener]]",
    path: "listener",
    doc: "An address on which clients are accepted.",
    example: "[[listener]]\nname = \"public\"\naddress = \"0.0.0.0:8080\"\ntrusted = [\"10.0.0.0/8\"]\ntimeouts = { head = \"5s\" }\n\n[[listener]]\nname = \"database\"\naddress = \"127.0.0.1:5432\"\nprotocol = \"tcp\"\nservice = \"database\"\n",
    keys: &[
        key(
            "name",
            NAME,
            Absent::Then("its address"),
            "In logs and metrics, and for routes to name.",
        ),
        key(
            "address",
            ADDRESS,
            Absent::Required,
            "IP address and port, as `\"0.0.0.0:8080\"` or `\"[::]:8080\"`. Port 0 takes a free one.",
        ),
        key(
            "protocol",
            Kind::Choice(ProtocolWord::WORDS),
            Absent::Text(ProtocolWord::Http.as_str()),
            "`\"http\"` is routed by request; `\"tcp\"` passes bytes to one `service`, or to one of several by `server_names`.",
        ),
        key(
            "service",
            NAME,
            Absent::Then("required with `protocol = \"tcp\"`, unless there are `server_names`"),
            "The service of a tcp listener; beside `server_names`, that of all other names.",
        ),
        key(
            "server_names",
            Kind::Map(form("server name"), &NAME),
            Absent::Then("none"),
            "TLS passed through undecrypted: services by the name that a client asks for (SNI), `{ \"a.example.com\" = \"app\", \"*.b.example.com\" = \"other\" }`. Only with `protocol = \"tcp\"`. Exact names come before wildcards, which stand for one label or more, longer ones before shorter. A connection that asks for no such name goes to `service`, or is closed.",
        ),
        key(
            "tls",
            Kind::Table(&LISTENER_TLS),
            Absent::Then("cleartext"),
            "TLS towards clients. With `protocol = \"tcp\"`, what was decrypted is passed on.",
        ),
        key(
            "http2",
            Kind::Either(&[Kind::Table(&HTTP2), Kind::Boolean]),
            Absent::Boolean(true),
            "HTTP/2 towards clients. `false`: HTTP/1.1 alone.",
        ),
        key(
            "upgrade_protocols",
            Kind::List(&Kind::Text(form("protocol"))),
            Absent::Texts(defaults::UPGRADE_PROTOCOLS),
            "Protocols that a client may upgrade its connection to (RFC 9110 section 7.8, and `:protocol` of an extended CONNECT): what follows is passed on without being read. A request for any other is forwarded as an ordinary request, without its Upgrade; an extended CONNECT for any other is answered 501. `h2c` is never allowed.",
        ),
        key(
            "proxy_protocol",
            Kind::List(&NETWORK),
            Absent::Then("`[]`: nobody"),
            "Peers, as networks, whose connections begin with a header of the PROXY protocol, version 1 or 2, before anything else: balancers that stand before this one. The client's address is taken from it. A peer in one of these networks that sends none is closed. A header of version 2 has at most 4,096 bytes, its fields (TLVs) included; a longer one closes the connection. From any other such a header is no header: on an http listener it is answered 400.",
        ),
        key(
            "backlog",
            Kind::Integer { min: 1, max: U32_MAX },
            Absent::Then("net.core.somaxconn"),
            "Connections that may wait to be accepted. Linux grants at most net.core.somaxconn; if that is less, Weir says so at start-up.",
        ),
        key(
            "connections_max",
            Kind::Integer { min: 1, max: 10_000_000 },
            Absent::Then("the top level's `connections_max`"),
            "Connections at once on this listener.",
        ),
        key(
            "trusted",
            Kind::List(&NETWORK),
            Absent::Then("`[]`: nobody"),
            "Peers, as networks, whose forwarding fields (X-Forwarded-*, Forwarded, X-Request-Id, traceparent) are believed and extended. Those of all others are replaced.",
        ),
        key(
            "forward_fields",
            Kind::List(&Kind::Choice(defaults::FORWARD_FIELDS_KNOWN)),
            Absent::Texts(defaults::FORWARD_FIELDS),
            "Which of these fields are sent to servers: X-Forwarded-For, -Proto and -Host; Forwarded (RFC 7239); X-Request-Id; traceparent (W3C Trace Context); with `via`, Via (RFC 9110), which makes nginx stop compressing unless its `gzip_proxied` says otherwise. CDN-Loop (RFC 8586) is always sent: it is how routing loops are found.",
        ),
        key(
            "timeouts",
            Kind::Table(&TIMEOUTS),
            Absent::Then("as if empty"),
            "Time limits towards clients.",
        ),
        key(
            "head_max",
            Kind::Size { min: 1_000, max: 64_000 },
            Absent::Size(defaults::HEAD_MAX_BYTES),
            "The largest request head; a larger one is answered 431.",
        ),
        key(
            "body_max",
            Kind::Size { min: 0, max: u64::MAX },
            Absent::Then("no limit"),
            "The largest request body; a larger one is answered 413.",
        ),
        key(
            "proxy_status",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether an answer that Weir makes in a server's place names its cause in `Proxy-Status` (RFC 9209). Never an address or a service.",
        ),
    ],
};

static TIMEOUTS: TableSpec = TableSpec {
    heading: "timeouts of [[listener]]",
    path: "listener.timeouts",
    doc: "Time limits towards clients of an http listener. A tunnel's limit is its service's `timeouts.tunnel`.",
    example: "[[listener]]\naddress = \"0.0.0.0:8080\"\ntimeouts = { head = \"10s\", idle = \"60s\", body = \"30s\" }\n",
    keys: &[
        key(
            "head",
            TIMEOUT,
            Absent::Duration(defaults::CLIENT_HEAD),
            "From the first byte of a request head to its last.",
        ),
        key(
            "idle",
            TIMEOUT,
            Absent::Duration(defaults::CLIENT_IDLE),
            "Before the first request of a connection, and between two. It may take a second longer.",
        ),
        key(
            "body",
            TIMEOUT,
            Absent::Duration(defaults::CLIENT_BODY),
            "Between two bytes of a body, either way.",
        ),
    ],
};
