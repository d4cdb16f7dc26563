//! Keys of `[[route]]`.

use std::time::Duration;

use model::{ContentCoding, LimitScope};

use super::error_page::ERROR_PAGES;
use super::maintenance::MAINTENANCE;
use super::{DAY, FIELD_NAME, HOST, NAME, PATH, SECRET, U32_MAX, duration, form};
use super::{affinity, retries};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

/// Far more than there are routes. Each priority that is used makes the search for a route a little longer.
const PRIORITY_MAX: u64 = 1_000_000_000;
const ONE_TEXT: Kind = SECRET;
const MEDIA_RANGE: Kind = Kind::Text(form("media type"));
const FIELD_VALUES: Kind = Kind::OneOrMore(&ONE_TEXT);
const FIELD_NAMES: Kind = Kind::Text(FIELD_NAME);
const NETWORK: Kind = Kind::Text(form("network"));
const TEXT_OR_TEST: Kind = Kind::Either(&[SECRET, Kind::Table(&TEST)]);

pub(crate) static ROUTE: TableSpec = TableSpec {
    heading: "[[route]]",
    path: "route",
    doc: "A rule: which requests it matches, and the action for them. All conditions must hold. Of the rules that match, the one with the highest `priority` wins, then the most specific one, as in the Kubernetes Gateway API, independent of the order in the file: exact host before longer wildcard before any; exact path before longer prefix; with a method; more exact header conditions; more exact query conditions; more of all other conditions; listeners named before all listeners. Two rules with the same conditions are a mistake.\n\nExactly one of `service`, `split`, `redirect`, `deny` and `respond` is the action.",
    example: "[[route]]\nname = \"listings\"\nlistener = \"public\"\nhost = \"api.example.com\"\npath = \"/listings\"\nmethod = \"GET\"\nservice = \"listings\"\n\n[[route]]\npath_regex = \"^/u/[0-9]+$\"\nclient_certificate = { subject = \"CN=billing,O=Example\" }\nservice = \"accounts\"\n\n# From these networks only; everybody else gets 404.\n[[route]]\npath = \"/admin\"\nclient = [\"10.0.0.0/8\", \"2001:db8::/32\"]\nclient_file = \"office.txt\"\nclient_not = [\"10.6.6.0/24\"]\nclient_not_file = \"none.txt\"\nservice = \"accounts\"\n\n[[route]]\npath = \"/admin\"\ndeny = 404\n\n[[route]]\npath = \"/old-shop\"\nmaintenance = true\nservice = \"listings\"\n\n# For all hosts, whatever routes they have.\n[[route]]\npath = \"/robots.txt\"\npriority = 1\nrespond = { body = \"User-agent: *\\n\" }\n\n[[route]]\nhost = \"example.com\"\nredirect = { host = \"www.example.com\" }\n\n[[listener]]\nname = \"public\"\naddress = \"0.0.0.0:8080\"\n",
    keys: &[
        key("name", NAME, Absent::Then("derived from its conditions"), "In logs and metrics."),
        key(
            "priority",
            Kind::Integer { min: 0, max: PRIORITY_MAX },
            Absent::Integer(0),
            "Of the routes that match a request, one with a higher priority wins over all that are lower, however specific they are. Rarely needed: for instance, to answer a path the same way for all hosts, although some hosts have routes of their own.",
        ),
        key(
            "listener",
            Kind::OneOrMore(&NAME),
            Absent::Then("every http listener"),
            "Listeners, by name.",
        ),
        key(
            "host",
            Kind::OneOrMore(&HOST),
            Absent::Then("any host"),
            "The requested host, without port: exact, or `\"*.example.com\"` for every subdomain (not the domain itself). A list is short for one rule per host.",
        ),
        key(
            "path",
            Kind::Text(PATH),
            Absent::Text("/"),
            "A prefix on segment boundaries: `\"/a\"` matches `/a` and `/a/b`, not `/ab`.",
        ),
        key(
            "path_exact",
            Kind::Text(PATH),
            Absent::Then("see `path`"),
            "The whole path, instead of `path`.",
        ),
        key(
            "path_regex",
            Kind::Text(form("regular expression")),
            Absent::Then("any"),
            "A regular expression that must match somewhere in the path, in addition to `path`. The path is in the normalised form; `^` and `$` are its start and end. The syntax is that of Rust's regex crate.",
        ),
        key("method", Kind::Text(form("method")), Absent::Then("any"), "The method, in capitals."),
        key(
            "header",
            Kind::Map(FIELD_NAME, &TEXT_OR_TEST),
            Absent::Then("any"),
            "Request fields that must have exactly this value, or pass a test: `{ X-Team = \"search\", User-Agent = { regex = \"(?i)bot\" } }`.",
        ),
        key(
            "query",
            Kind::Map(form("parameter name"), &TEXT_OR_TEST),
            Absent::Then("any"),
            "Query parameters that must have exactly this value, or pass a test.",
        ),
        key(
            "cookie",
            Kind::Map(form("cookie name"), &TEXT_OR_TEST),
            Absent::Then("any"),
            "Cookies that must have exactly this value, or pass a test.",
        ),
        key(
            "client",
            Kind::OneOrMore(&NETWORK),
            Absent::Then("any"),
            "Networks, one of which must contain the client's address (see `client_address` of a listener).",
        ),
        key(
            "client_not",
            Kind::OneOrMore(&NETWORK),
            Absent::Then("none"),
            "Networks that must not contain it.",
        ),
        key(
            "client_file",
            Kind::Text(form("file path")),
            Absent::Then("none"),
            "A file with further networks for `client`: one per line, `#` begins a comment. A changed file takes effect like a change of this one. At most 1 MiB. If it lists no network and `client` has none either, no client matches.",
        ),
        key(
            "client_not_file",
            Kind::Text(form("file path")),
            Absent::Then("none"),
            "The same for `client_not`. Without a network it matches every client.",
        ),
        key(
            "client_certificate",
            Kind::Map(form("part of a certificate"), &TEXT_OR_TEST),
            Absent::Then("any"),
            "Names in the client's certificate, which the listener has verified: `subject` and `issuer` (RFC 4514, as `\"CN=billing,O=Example\"`), `dns`, `uri` and `email` (alternative names; one of them must pass), `fingerprint` (SHA-256, hexadecimal). DNS names and fingerprints are compared in lower case.",
        ),
        key("service", NAME, Absent::Then("see above"), "Forward it to this service."),
        key(
            "split",
            Kind::Tables(&SPLIT),
            Absent::Then("see above"),
            "Forward it to one of several services, by weight.",
        ),
        key(
            "redirect",
            Kind::Table(&REDIRECT),
            Absent::Then("see above"),
            "Answer with a redirect.",
        ),
        key(
            "deny",
            Kind::Integer { min: 400, max: 599 },
            Absent::Then("see above"),
            "Answer with this status at once.",
        ),
        key(
            "respond",
            Kind::Either(&[Kind::Table(&RESPOND), Kind::Choice(&["ready"])]),
            Absent::Then("see above"),
            "Answer with a configured response. `\"ready\"` is for the health checks of a balancer or an orchestrator in front of Weir: 200 while Weir takes new work, 503 after SIGTERM; see `drain_delay`.",
        ),
        key(
            "rewrite",
            Kind::Table(&REWRITE),
            Absent::Then("unchanged"),
            "Changes to the target before it is forwarded.",
        ),
        key(
            "request_header",
            Kind::Table(&REQUEST_HEADER),
            Absent::Then("unchanged"),
            "Changes to the request's fields.",
        ),
        key(
            "response_header",
            Kind::Table(&RESPONSE_HEADER),
            Absent::Then("unchanged"),
            "Changes to the response's fields.",
        ),
        key(
            "timeouts",
            Kind::Table(&TIMEOUTS),
            Absent::Then("the service's"),
            "Time limits of its requests.",
        ),
        key(
            "retries",
            Kind::Table(&retries::OF_ROUTE),
            Absent::Then("the service's"),
            "When its requests are retried.",
        ),
        key(
            "affinity",
            Kind::Table(&affinity::OF_ROUTE),
            Absent::Then("the service's"),
            "A session by which a client stays with its service and server (sticky sessions).",
        ),
        key(
            "mirror",
            Kind::OneOrMore(&Kind::Table(&MIRROR)),
            Absent::Then("none"),
            "Services that receive copies of the requests in addition. Up to 8.",
        ),
        key(
            "compress",
            Kind::Either(&[Kind::Table(&COMPRESS), Kind::Boolean]),
            Absent::Boolean(false),
            "Compress responses for clients that accept it; `true` for the defaults. Off by default: compressing a page that contains both a secret and text chosen by an attacker lets the attacker guess the secret from the length (BREACH).",
        ),
        key(
            "authenticate",
            NAME,
            Absent::Then("none: anyone"),
            "The [authentication.NAME] by which requests must prove who sends them. It comes after `rate_limit`.",
        ),
        key(
            "rate_limit",
            Kind::OneOrMore(&Kind::Table(&RATE_LIMIT)),
            Absent::Then("none"),
            "How many requests a client may send; excess requests are answered with 429. Up to 8 limits, of which each request must keep all.",
        ),
        key(
            "cors",
            Kind::Table(&CORS),
            Absent::Then("off"),
            "Which pages of other origins may use the route from a browser. Preflights are answered after `rate_limit` and before `authenticate`.",
        ),
        key(
            "maintenance",
            MAINTENANCE,
            Absent::Boolean(false),
            "Whether the route is in maintenance: Weir answers its requests with 503, and no server gets them.",
        ),
        key(
            "error_page",
            ERROR_PAGES,
            Absent::Then("none"),
            "Pages in place of the responses that Weir generates for errors of its requests, among them those of `deny` and `rate_limit`.",
        ),
    ],
};

static TEST: TableSpec = TableSpec {
    heading: "tests in [[route]]",
    path: "route.test",
    doc: "A test in `header`, `query`, `cookie` or `client_certificate` of a route, in place of an exact value. Exactly one of `exact`, `regex` and `present` is required. If a field, parameter or cookie is repeated, the test passes if one of the values does; a plain text in place of the test is compared with the first field or parameter only.",
    example: "[[route]]\nservice = \"listings\"\nheader = { User-Agent = { regex = \"^curl/\", not = true }, X-Debug = { present = false } }\ncookie = { beta = { exact = \"1\" }, group = \"a\" }\nquery = { page = { regex = \"^[0-9]+$\" } }\n",
    keys: &[
        key("exact", SECRET, Absent::Then("see above"), "The value must be exactly this."),
        key(
            "regex",
            Kind::Text(form("regular expression")),
            Absent::Then("see above"),
            "This regular expression must match somewhere in the value. It matches bytes; `.` matches any.",
        ),
        key("present", Kind::Boolean, Absent::Then("see above"), "Whether there must be a value."),
        key(
            "not",
            Kind::Boolean,
            Absent::Boolean(false),
            "Whether the test is reversed: no value may pass it. It holds if there is no value.",
        ),
    ],
};

static MIRROR: TableSpec = TableSpec {
    heading: "mirror of [[route]]",
    path: "route.mirror",
    doc: "A service that receives copies of a share of the route's requests (shadow traffic), for instance to try a new version under real load. A copy is sent once the request itself has a response from a server, with the same changes; the response to it is discarded, and only its status is compared. A copy that fails has no effect on the request. Upgraded connections are not copied.",
    example: "[[route]]\nservice = \"listings\"\nmirror = { service = \"listings-next\", share = 0.05, body_max = \"1MB\" }\n",
    keys: &[
        key("service", NAME, Absent::Required, "The service."),
        key(
            "share",
            Kind::Number { min: 0.0, max: 1.0 },
            Absent::Number(defaults::MIRROR_SHARE),
            "The share of the requests that are copied, drawn at random.",
        ),
        key(
            "body_max",
            Kind::Size { min: 0, max: 16 << 20 },
            Absent::Size(defaults::MIRROR_BODY_MAX_BYTES),
            "Requests with a longer body are not copied. The bodies of all copies together take at most `mirror_memory_max`.",
        ),
    ],
};

static RESPOND: TableSpec = TableSpec {
    heading: "respond of [[route]]",
    path: "route.respond",
    doc: "A response that Weir gives itself. The same for all requests: `status`, `headers`, and at most one of `body` and `file`. Or, for health checks, `ready`.",
    example: "[[route]]\npath_exact = \"/robots.txt\"\nrespond = { body = \"User-agent: *\\nDisallow: /\\n\", headers = { Cache-Control = \"max-age=3600\" } }\n\n[[route]]\npath_exact = \"/favicon.ico\"\nrespond = { status = 200, file = \"icon.svg\", content_type = \"image/svg+xml\" }\n\n[[route]]\npath_exact = \"/healthz\"\nrespond = { ready = [\"listings\"] }\n\n[[route]]\nservice = \"listings\"\n",
    keys: &[
        key(
            "status",
            Kind::Integer { min: 200, max: 599 },
            Absent::Integer(defaults::RESPOND_STATUS),
            "The status. Not 304, which answers conditional requests.",
        ),
        key("body", SECRET, Absent::Then("none"), "The content."),
        key(
            "file",
            Kind::Text(form("file path")),
            Absent::Then("none"),
            "A file with the content, at most 1 MiB. A changed file takes effect like a change of this one.",
        ),
        key(
            "content_type",
            Kind::Text(form("media type")),
            Absent::Then(
                "for `body`, `\"text/plain; charset=utf-8\"`; for `file`, by the ending of its name",
            ),
            "The value of Content-Type.",
        ),
        key("headers", Kind::Map(FIELD_NAME, &SECRET), Absent::Then("none"), "Further fields."),
        key(
            "ready",
            Kind::OneOrMore(&NAME),
            Absent::Then("see above"),
            "Instead of the other keys: 200 while Weir takes new work and each of these services has a ready server, else 503.",
        ),
    ],
};

static SPLIT: TableSpec = TableSpec {
    heading: "split of [[route]]",
    path: "route.split",
    doc: "A weighted split between services, for instance for a canary release. Each branch has a `service`, or refuses its share with `deny`.",
    example: "[[route]]\nsplit = [{ service = \"listings\", weight = 95 }, { service = \"listings-next\", weight = 4, request_header = { set = { X-Canary = \"1\" } }, response_header = { remove = [\"X-Debug\"] } }, { deny = 503, weight = 1 }]\n",
    keys: &[
        key("service", NAME, Absent::Then("see `deny`"), "The service."),
        key(
            "deny",
            Kind::Integer { min: 400, max: 599 },
            Absent::Then("forwarded"),
            "Instead of `service`: the status with which the branch's requests are refused at once, for instance to shed load or to try out how clients behave.",
        ),
        key(
            "weight",
            Kind::Integer { min: 0, max: 1_000_000 },
            Absent::Integer(defaults::WEIGHT),
            "Its share relative to the others.",
        ),
        key(
            "request_header",
            Kind::Table(&REQUEST_HEADER),
            Absent::Then("no changes"),
            "Changes to the fields of the branch's requests, after the route's `request_header`.",
        ),
        key(
            "response_header",
            Kind::Table(&RESPONSE_HEADER),
            Absent::Then("no changes"),
            "Changes to the fields of the branch's responses, after the route's `response_header`.",
        ),
    ],
};

static REDIRECT: TableSpec = TableSpec {
    heading: "redirect of [[route]]",
    path: "route.redirect",
    doc: "Parts that are not given stay as in the request; the query always stays. At least one of `scheme`, `host`, `port`, `path` and `full_path` is required.",
    example: "[[route]]\nhost = \"old.example.com\"\nredirect = { status = 301, host = \"www.example.com\" }\n\n[[route]]\npath = \"/shop\"\nredirect = { status = 308, scheme = \"https\", host = \"shop.example.com\", port = 8443, path = \"/\" }\n\n[[route]]\npath = \"/gone\"\nredirect = { full_path = \"/\" }\n",
    keys: &[
        key(
            "status",
            Kind::OneOf(&[301, 302, 303, 307, 308]),
            Absent::Integer(defaults::REDIRECT_STATUS),
            "The status. 301 and 308 may be cached permanently by clients; 307 and 308 keep the method.",
        ),
        key("scheme", Kind::Choice(&["http", "https"]), Absent::Then("unchanged"), "Scheme."),
        key("host", HOST, Absent::Then("unchanged"), "Host, without port."),
        key(
            "port",
            Kind::Integer { min: 1, max: 65_535 },
            Absent::Then("unchanged; with a `scheme`, that scheme's own"),
            "Port.",
        ),
        key(
            "path",
            Kind::Text(PATH),
            Absent::Then("unchanged"),
            "Replaces the matched prefix; with `path_exact`, the whole path.",
        ),
        key(
            "full_path",
            Kind::Text(PATH),
            Absent::Then("unchanged"),
            "Replaces the whole path, whatever the route matches.",
        ),
    ],
};

static REWRITE: TableSpec = TableSpec {
    heading: "rewrite of [[route]]",
    path: "route.rewrite",
    doc: "Changes to the target before the request is forwarded.",
    example: "[[route]]\npath = \"/api/v1\"\nservice = \"listings\"\nrewrite = { prefix = \"/\", host = \"listings.internal\" }\n\n[[route]]\npath = \"/app\"\nservice = \"listings\"\nrewrite = { full_path = \"/index.html\" }\n",
    keys: &[
        key(
            "prefix",
            Kind::Text(PATH),
            Absent::Then("unchanged"),
            "Replaces the matched prefix; with `path_exact`, the whole path.",
        ),
        key(
            "full_path",
            Kind::Text(PATH),
            Absent::Then("unchanged"),
            "Replaces the whole path, whatever the route matches.",
        ),
        key(
            "host",
            HOST,
            Absent::Then("as the client sent it"),
            "The Host field to send, optionally with a port.",
        ),
    ],
};

static TIMEOUTS: TableSpec = TableSpec {
    heading: "timeouts of [[route]]",
    path: "route.timeouts",
    doc: "Time limits of the route's requests. The other timeouts are those of the service.",
    example: "[[route]]\npath = \"/reports\"\nservice = \"listings\"\ntimeouts = { total = \"2m\", attempt = \"30s\" }\n",
    keys: &[
        key(
            "total",
            duration(Duration::ZERO, DAY),
            Absent::Then("`timeouts.total` of the service"),
            "From the complete request head to the end of the response, over all attempts, but not of a tunnel; `\"0s\"`: no limit.",
        ),
        key(
            "attempt",
            duration(Duration::ZERO, DAY),
            Absent::Then("`timeouts.response` of the service, without a further attempt"),
            "In place of `timeouts.response` of the service: from the request's last byte sent to the complete response head. When it passes, an idempotent request is sent to another server, or to the same one if there is no other, within the service's `retries`. `\"0s\"`: no limit.",
        ),
    ],
};

macro_rules! field_changes {
    ($name:ident, $key:literal, $of:literal) => {
        static $name: TableSpec = TableSpec {
            heading: concat!($key, " of [[route]]"),
            path: concat!("route.", $key),
            doc: concat!(
                "Changes to the fields of ", $of, ": removed first, then set, then added. Framing and hop-by-hop fields (Content-Length, Transfer-Encoding, Connection, …) and Host cannot be changed here."
            ),
            example: concat!("[[route]]\nservice = \"listings\"\n", $key, " = { remove = [\"X-Debug\"], set = { X-Team = \"search\" }, add = { X-Hop = \"weir\" } }\n"),
            keys: &[
                key("remove", Kind::List(&FIELD_NAMES), Absent::Then("`[]`"), "Fields to remove."),
                key("set", Kind::Map(FIELD_NAME, &SECRET), Absent::Then("none"), "Fields to set, replacing all fields of that name."),
                key("add", Kind::Map(FIELD_NAME, &FIELD_VALUES), Absent::Then("none"), "Fields to add to the existing ones."),
            ],
        };
    };
}

field_changes!(REQUEST_HEADER, "request_header", "the request");
field_changes!(RESPONSE_HEADER, "response_header", "the response");

static COMPRESS: TableSpec = TableSpec {
    heading: "compress of [[route]]",
    path: "route.compress",
    doc: "Which responses are compressed and how. A response is left as it is if it already has a `Content-Encoding`, a digest of its content or `Cache-Control: no-transform`, if it is partial (206), or if the memory for compression (`compression_memory_max`) is in use. Data from the server is flushed as it arrives, so that server-sent events are not delayed. An `ETag` becomes weak, and `Vary: Accept-Encoding` is added to every variant. Clients of HTTP/1.0 get the plain variant.",
    example: "[[route]]\npath = \"/\"\nservice = \"listings\"\ncompress = { codings = [\"zstd\", \"gzip\"], types = [\"text/*\", \"application/json\"], length_min = \"1kB\" }\n",
    keys: &[
        key(
            "codings",
            Kind::List(&Kind::Choice(ContentCoding::WORDS)),
            Absent::Texts(defaults::COMPRESS_CODINGS),
            "In order of preference, for clients that accept several equally. `br` costs two to four times the CPU of the others.",
        ),
        key(
            "types",
            Kind::List(&MEDIA_RANGE),
            Absent::Texts(defaults::COMPRESS_TYPES),
            "Media types: `type/subtype`, `type/*`, or `*/*+suffix`.",
        ),
        key(
            "length_min",
            Kind::Size { min: 0, max: 1 << 40 },
            Absent::Size(defaults::COMPRESS_LENGTH_MIN),
            "A body known to be shorter is not compressed.",
        ),
    ],
};

const METHOD: Kind = Kind::Text(form("method"));

static CORS: TableSpec = TableSpec {
    heading: "cors of [[route]]",
    path: "route.cors",
    doc: "Cross-origin resource sharing. Weir answers preflights itself, with 204, and adds the fields to all other responses of the route, also to errors. Every other `Access-Control-*` field of a response is removed.",
    example: "[[route]]\npath = \"/api\"\nservice = \"listings\"\ncors = { origins = [\"https://app.example.com\", \"https://*.example.org\"], methods = [\"GET\", \"PUT\"], headers = [\"Content-Type\"], expose = [\"X-Total\"], credentials = true, max_age = \"10m\" }\n",
    keys: &[
        key(
            "origins",
            Kind::List(&Kind::Text(form("origin"))),
            Absent::Required,
            "The origins of the pages: `\"https://app.example.com\"`, with a port if it is not the scheme's default; `\"https://*.example.com\"` for every subdomain (not the domain itself); `\"null\"` for local files and sandboxed frames; `\"*\"` for every origin.",
        ),
        key(
            "methods",
            Kind::List(&METHOD),
            Absent::Then("`[]`"),
            "Methods that pages may use, besides GET, HEAD and POST, which browsers always allow; or `\"*\"`.",
        ),
        key(
            "headers",
            Kind::List(&FIELD_NAMES),
            Absent::Then("`[]`"),
            "Request fields that pages may set, besides those that browsers always allow; or `\"*\"`, which does not include `Authorization`.",
        ),
        key(
            "expose",
            Kind::List(&FIELD_NAMES),
            Absent::Then("`[]`"),
            "Response fields that pages may read, besides those that browsers always allow; or `\"*\"`.",
        ),
        key(
            "credentials",
            Kind::Boolean,
            Absent::Boolean(false),
            "Whether pages may send cookies and credentials. Not together with `\"*\"` in one of the lists.",
        ),
        key(
            "max_age",
            duration(Duration::ZERO, DAY),
            Absent::Then("the browser's own, 5 s"),
            "How long a browser may remember the answer to a preflight, in whole seconds.",
        ),
    ],
};

static RATE_LIMIT: TableSpec = TableSpec {
    heading: "rate_limit of [[route]]",
    path: "route.rate_limit",
    doc: "A token bucket per client: `burst` requests may come at once, then `requests` per `per`.",
    example: "[[route]]\npath = \"/login\"\nservice = \"accounts\"\nrate_limit = { requests = 5, per = \"1m\", by = \"client\" }\n\n# 10 requests a second with bursts of 30; those beyond wait for up to 200 ms. And 5000 a day.\n[[route]]\npath = \"/search\"\nservice = \"accounts\"\nrate_limit = [{ requests = 10, per = \"1s\", burst = 30, wait_max = \"200ms\" }, { name = \"daily\", requests = 5000, per = \"1d\", headers = true }]\n",
    keys: &[
        key(
            "name",
            Kind::Text(form("name")),
            Absent::Then("`by` without its name, and `per`, as in `client-1m`"),
            "The name in the access log (the `detail` of a refused request) and in the response fields. No two limits of a route have the same one.",
        ),
        key(
            "requests",
            Kind::Integer { min: 1, max: 1_000_000 },
            Absent::Required,
            "Requests allowed…",
        ),
        key(
            "per",
            duration(Duration::from_millis(1), DAY),
            Absent::Duration(defaults::RATE_PER),
            "…in this time.",
        ),
        key(
            "burst",
            Kind::Integer { min: 1, max: U32_MAX },
            Absent::Then("as many as `requests`"),
            "Requests that may come at once before the rate applies.",
        ),
        key(
            "wait_max",
            duration(Duration::ZERO, Duration::from_mins(10)),
            Absent::Duration(defaults::RATE_WAIT_MAX),
            "How long a request beyond the burst waits for its turn, so that the rate is kept without refusing; one that would have to wait longer is answered 429.",
        ),
        key(
            "by",
            Kind::Text(form("part of a request")),
            Absent::Text("client"),
            "Which requests share a bucket: those with the same client address (`\"client\"`; of IPv6 its /64), value of a field (`\"header:X-Key\"`) or of a cookie (`\"cookie:session\"`), and with `authenticate` those of the same user (`\"user\"`) or claim of a token (`\"claim:tenant\"`).",
        ),
        key(
            "scope",
            Kind::Choice(LimitScope::WORDS),
            Absent::Text(LimitScope::Balancer.as_str()),
            "Whose requests count: those of this balancer (`balancer`), or those of all balancers of `[fleet]` together (`fleet`), which exchange their counts.",
        ),
        key(
            "headers",
            Kind::Boolean,
            Absent::Boolean(false),
            "Whether responses tell the client what is left, in the fields `RateLimit` and `RateLimit-Policy`.",
        ),
    ],
};
