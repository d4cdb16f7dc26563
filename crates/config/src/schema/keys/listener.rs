//! Keys of `[[listener]]`.

use model::ProtocolWord;

use super::error_page::ERROR_PAGES;
use super::tls::{HTTP2, LISTENER_TLS};
use super::{ADDRESS_OR_SOCKET, HOST, NAME, TEXT, TIMEOUT, U32_MAX, form, patterned};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

const NETWORK: Kind = Kind::Text(form("network"));

pub(crate) static LISTENER: TableSpec = TableSpec {
    heading: "[[listener]]",
    path: "listener",
    doc: "An address on which Weir accepts clients.",
    example: "[[listener]]\nname = \"public\"\naddress = \"0.0.0.0:8080\"\nbacklog = 4096\nconnections_max = 10_000\nhead_max = \"16KiB\"\nbody_max = \"10MB\"\ntrusted = [\"10.0.0.0/8\"]\nforward_fields = [\"x-forwarded\", \"x-request-id\"]\nproxy_status = false\ntimeouts = { head = \"5s\" }\nhosts = [\"api.example.com\", \"*.example.com\"]\nupgrade_protocols = [\"websocket\"]\n\n[[listener]]\nname = \"database\"\naddress = \"127.0.0.1:5432\"\nprotocol = \"tcp\"\nservice = \"database\"\n\n# Behind a balancer that sends PROXY headers. TLS is passed through, by server name.\n[[listener]]\nname = \"passthrough\"\naddress = \"0.0.0.0:8443\"\nprotocol = \"tcp\"\nproxy_protocol = [\"10.0.0.0/8\"]\nserver_names = { \"www.example.com\" = \"listings\", \"*.example.com\" = \"accounts\" }\n",
    keys: &[
        key("name", NAME, Absent::Then("its address"), "The name in logs, metrics and routes."),
        key(
            "address",
            ADDRESS_OR_SOCKET,
            Absent::Required,
            "IP address and port, as `\"0.0.0.0:8080\"` or `\"[::]:8080\"`, or `\"unix:PATH\"` for a Unix socket. Port 0 takes a free one. The address of clients of a Unix socket is 127.0.0.1: they are processes of this machine. If they are proxies, `trusted = [\"127.0.0.1\"]` lets them name theirs.",
        ),
        key(
            "socket",
            Kind::Table(&SOCKET),
            Absent::Then("as if empty"),
            "Who may connect to a Unix socket.",
        ),
        key(
            "protocol",
            Kind::Choice(ProtocolWord::WORDS),
            Absent::Text(ProtocolWord::Http.as_str()),
            "`\"http\"` is routed by request; `\"tcp\"` forwards bytes to one `service`, or to one of several by `server_names`.",
        ),
        key(
            "service",
            NAME,
            Absent::Then("required with `protocol = \"tcp\"`, unless there are `server_names`"),
            "The service of a tcp listener; together with `server_names`, the service for all other names.",
        ),
        key(
            "server_names",
            Kind::Map(form("server name"), &NAME),
            Absent::Then("none"),
            "Services by the server name that a TLS client sends (SNI), `{ \"a.example.com\" = \"app\", \"*.b.example.com\" = \"other\" }`. Only with `protocol = \"tcp\"`. Without `tls`, Weir does not decrypt the connections; with it, it forwards what is inside. Exact names come before wildcards, which stand for one label or more; longer wildcards come before shorter ones. A connection with another name goes to `service`, or is closed.",
        ),
        key(
            "tls",
            Kind::Table(&LISTENER_TLS),
            Absent::Then("plain text"),
            "TLS towards clients. With `protocol = \"tcp\"`, the decrypted data is forwarded.",
        ),
        key(
            "http2",
            Kind::Either(&[Kind::Table(&HTTP2), Kind::Boolean]),
            Absent::Boolean(true),
            "HTTP/2 towards clients. `false`: only HTTP/1.1.",
        ),
        key(
            "hosts",
            Kind::OneOrMore(&HOST),
            Absent::Then("any host"),
            "The hosts that the listener serves, as in `host` of a route; `\"*\"` for any other. Requests for others are answered with 404, whatever the routes. Over TLS, a connection may be used only for the hosts of one entry: that of the client's server name (SNI), or `\"*\"` without one. A request for a host of another entry is answered with 421 (RFC 9110 section 15.5.20); browsers then open another connection.",
        ),
        key(
            "upgrade_protocols",
            Kind::List(&Kind::Text(form("protocol"))),
            Absent::Texts(defaults::UPGRADE_PROTOCOLS),
            "Protocols that a client may upgrade its connection to (RFC 9110 section 7.8, and `:protocol` of an extended CONNECT): the data after it is forwarded unread. A request for another protocol is forwarded as an ordinary request without Upgrade; an extended CONNECT for another one is answered with 501. `h2c` is never allowed.",
        ),
        key(
            "proxy_protocol",
            Kind::List(&NETWORK),
            Absent::Then("`[]`: none"),
            "Networks of peers whose connections begin with a PROXY protocol header, version 1 or 2: balancers in front of this one. The client's address is taken from the header. A connection from one of these networks without a header is closed. A version 2 header has at most 4,096 bytes, including its TLVs; a longer one closes the connection. From other peers the header is not recognised: an http listener answers it with 400.",
        ),
        key(
            "backlog",
            Kind::Integer { min: 1, max: U32_MAX },
            Absent::Then("net.core.somaxconn"),
            "The length of the accept queue. Linux limits it to net.core.somaxconn; if that is less, Weir warns at startup.",
        ),
        key(
            "connections_max",
            Kind::Integer { min: 1, max: 10_000_000 },
            Absent::Then("the top level's `connections_max`"),
            "Concurrent connections on this listener.",
        ),
        key(
            "trusted",
            Kind::List(&NETWORK),
            Absent::Then("`[]`: none"),
            "Networks of peers whose forwarding fields (X-Forwarded-*, Forwarded, X-Request-Id, traceparent) are kept and extended. Those of all other peers are replaced. For their requests, \"client\" everywhere means the address found by `client_address`.",
        ),
        key(
            "client_address",
            Kind::Table(&CLIENT_ADDRESS),
            Absent::Then("as if empty"),
            "Where the client's address is read in requests of `trusted` peers.",
        ),
        key(
            "forward_fields",
            Kind::List(&Kind::Choice(defaults::FORWARD_FIELDS_KNOWN)),
            Absent::Texts(defaults::FORWARD_FIELDS),
            "Which of these fields are sent to servers: X-Forwarded-For, -Proto and -Host; Forwarded (RFC 7239); X-Request-Id; traceparent (W3C Trace Context); with `x-real-ip`, X-Real-IP, the address of the client as `trusted` and `client_address` determine it (if they find none, a trusted peer's own X-Real-IP); with `via`, Via (RFC 9110), with which nginx does not compress unless its `gzip_proxied` allows it. CDN-Loop (RFC 8586) is always sent, to detect routing loops.",
        ),
        key(
            "timeouts",
            Kind::Table(&TIMEOUTS),
            Absent::Then("as if empty"),
            "Timeouts towards clients.",
        ),
        key(
            "head_max",
            Kind::Size { min: 1_000, max: 64_000 },
            Absent::Size(defaults::HEAD_MAX_BYTES),
            "The largest request head; a larger one is answered with 431.",
        ),
        key(
            "body_max",
            Kind::Size { min: 0, max: u64::MAX },
            Absent::Then("no limit"),
            "The largest request body; a larger one is answered with 413.",
        ),
        key(
            "proxy_status",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether responses that Weir generates itself name their cause in `Proxy-Status` (RFC 9209). They never name an address or a service.",
        ),
        key(
            "error_page",
            ERROR_PAGES,
            Absent::Then("none"),
            "Pages in place of the responses that Weir generates for errors, including those without a route.",
        ),
        key(
            "register",
            Kind::Table(&REGISTER),
            Absent::Then("not registered"),
            "The service in Consul that this listener is an instance of.",
        ),
    ],
};

static SOCKET: TableSpec = TableSpec {
    heading: "socket of [[listener]]",
    path: "listener.socket",
    doc: "Who may connect to a listener on a Unix socket: those that may write to its file. The file belongs to Weir's user. It has these permissions before it has its name, and replaces a file that an earlier process has left. A stop removes it, if Weir's user may write to the directory.",
    example: "[[listener]]\naddress = \"unix:/run/weir/http.sock\"\nsocket = { mode = \"660\", group = \"www-data\" }\n",
    keys: &[
        key(
            "mode",
            Kind::Text(patterned("permissions", "^0?[0-7]{3}$")),
            Absent::Text(defaults::SOCKET_MODE),
            "Its permissions, in octal as for chmod: `\"666\"` for every user of this machine.",
        ),
        key(
            "group",
            Kind::Text(form("group")),
            Absent::Then("that of Weir's user"),
            "Its group. Weir must start as root, or its user must be a member.",
        ),
    ],
};

static REGISTER: TableSpec = TableSpec {
    heading: "register of [[listener]]",
    path: "listener.register",
    doc: "While Weir serves, Consul lists this listener as an instance of a service, with a check that passes as long as Weir is ready. Weir registers at the agent of `[consul]`, which must be one agent, at best that of this machine. See [docs/discovery.md](discovery.md#weir-in-consul).",
    example: "[consul]\naddress = \"http://127.0.0.1:8500\"\n\n[[listener]]\naddress = \"0.0.0.0:443\"\nregister = { consul = \"edge\", id = \"edge-1\", tags = [\"public\"], address = \"10.0.0.5\", port = 8443 }\n",
    keys: &[
        key(
            "consul",
            Kind::Text(patterned("name", "^[A-Za-z0-9._-]{1,63}$")),
            Absent::Required,
            "The name of the service in Consul.",
        ),
        key(
            "id",
            Kind::Text(patterned("name", "^[A-Za-z0-9._-]{1,63}$")),
            Absent::Then("`weir-NAME-PORT`"),
            "The ID of the entry, which is unique at an agent, upper and lower case being the same. Two processes that register at one agent with the same name and port need different IDs.",
        ),
        key("tags", Kind::List(&TEXT), Absent::Then("`[]`: none"), "Tags of the entry."),
        key(
            "address",
            HOST,
            Absent::Then("the listener's address; for one on every address, that of Consul's node"),
            "The IP address or host name that clients connect to, without a port.",
        ),
        key(
            "port",
            Kind::Integer { min: 1, max: 65_535 },
            Absent::Then("the listener's port"),
            "The port that clients connect to.",
        ),
    ],
};

static CLIENT_ADDRESS: TableSpec = TableSpec {
    heading: "client_address of [[listener]]",
    path: "listener.client_address",
    doc: "Where the client's address is read in requests of `trusted` peers. Access log, rate limits, hashing, conditions and metrics use this address. One field is read; no other one counts, because proxies pass on those that they do not write themselves. The list in it is read from the right: addresses in `trusted` networks are proxies, and the first other address is the client. See docs/operations.md.",
    example: "[[listener]]\naddress = \"0.0.0.0:8080\"\ntrusted = [\"130.211.0.0/22\", \"35.191.0.0/16\"]\n# Google's balancer appends the client's address and its own.\nclient_address = { field = \"X-Forwarded-For\", hops = 2 }\n",
    keys: &[
        key(
            "field",
            Kind::Text(form("field name")),
            Absent::Text("X-Forwarded-For"),
            "The field: `\"X-Forwarded-For\"`, `\"Forwarded\"` (RFC 7239), or one that holds the client's address alone, as `\"CF-Connecting-IP\"`; it must occur once.",
        ),
        key(
            "hops",
            Kind::Integer { min: 1, max: 100 },
            Absent::Then("the first address from the right that is not `trusted`"),
            "The position of the client's address in the list, from the right: 1 is the last address.",
        ),
    ],
};

static TIMEOUTS: TableSpec = TableSpec {
    heading: "timeouts of [[listener]]",
    path: "listener.timeouts",
    doc: "Timeouts towards clients of an http listener. For tunnels, the service's `timeouts.tunnel` applies.",
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
            "Between two bytes of a body, in either direction.",
        ),
    ],
};
