//! The keys of `[fleet]`.

use super::discover::DISCOVER;
use super::tls::FLEET_TLS;
use super::{ADDRESS, SECRET, form, patterned};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

const MEMBER_TEXT: Kind = Kind::Text(patterned("name", "^[^ \\t\\r\\n]{1,64}$"));

pub(super) static FLEET: TableSpec = TableSpec {
    heading: "[fleet]",
    path: "fleet",
    doc: "Makes this balancer a member of a fleet: balancers that find each other and share the results of their health checks, the concurrency limits of services with `in_flight_scope = \"fleet\"`, and rate limits with `scope = \"fleet\"`. Its zone is the top-level `zone`; members without one form a zone of their own. `address`, `advertise`, `name`, `host` and whether there is a `[fleet]` take effect with the next start or upgrade, the other keys with a reload. See [docs/fleet.md](fleet.md).",
    example: "zone = \"eu-west-1a\"\n\n[fleet]\naddress = \"0.0.0.0:7946\"\nadvertise = \"10.0.0.5:7946\"\nname = \"edge-1\"\nhost = \"rack-7\"\nmembers = [\"10.0.0.6:7946\", \"balancers.internal:7946\"]\ndiscover = { dns_srv = \"_weir-fleet._udp.balancers.internal\" }\nkeys = [\"${file:fleet.key}\"]\nprobers = 2\n\n[[route]]\npath = \"/search\"\nservice = \"listings\"\nrate_limit = { requests = 100, per = \"1m\", scope = \"fleet\" }\n\n[service.listings]\nin_flight_max = 16\nin_flight_scope = \"fleet\"\nserver = [{ address = \"10.0.1.5:8080\" }]\n",
    keys: &[
        key(
            "address",
            ADDRESS,
            Absent::Required,
            "The UDP address to listen on: an IP address and a port. The port must be open between the members only.",
        ),
        key(
            "advertise",
            Kind::Text(form("address")),
            Absent::Then("`address`"),
            "The address that other members send to; an IP address without a port has the port of `address`. Required if `address` is every address of the machine (`0.0.0.0`, `[::]`).",
        ),
        key(
            "name",
            MEMBER_TEXT,
            Absent::Then("the machine's host name"),
            "The name of this balancer, which is unique in the fleet: 1 to 64 bytes without spaces.",
        ),
        key(
            "host",
            MEMBER_TEXT,
            Absent::Then("the machine's host name"),
            "The machine that it runs on: 1 to 64 bytes without spaces. Two members of one machine do not both count as probers if there is a member on another one.",
        ),
        key(
            "members",
            Kind::List(&ADDRESS),
            Absent::Then("none"),
            "Members to join, at most 64, each an address or a name with a port. A name stands for all of its addresses, such as that of a headless service in Kubernetes; it is looked up by `resolver`, and again when its TTL ends. For shared health checks any members suffice, since they know the others. For limits over the fleet (`in_flight_scope`, and `scope` of a rate limit), name all of them.",
        ),
        key(
            "discover",
            Kind::Table(&DISCOVER),
            Absent::Then("none"),
            "A source of members to join, in the form of `discover` of a service. Its `port` is the fleet's port, if the source lists another one.",
        ),
        key(
            "keys",
            Kind::List(&SECRET),
            Absent::Required,
            "One to four secrets that all members share, each of 32 to 4096 bytes; `\"${file:fleet.key}\"` takes one from a file, for instance from `openssl rand -base64 48 > fleet.key`. The first seals datagrams, all are accepted. To replace a key, add the new one last on all members, then move it to the front on all, then remove the old one.",
        ),
        key(
            "probers",
            Kind::Integer { min: 1, max: 8 },
            Absent::Integer(defaults::FLEET_PROBERS),
            "How many members of each zone run each health check.",
        ),
        key(
            "tls",
            Kind::Table(&FLEET_TLS),
            Absent::Then("not shared"),
            "TLS between members, to share session ticket keys and certificates obtained by ACME.",
        ),
    ],
};
