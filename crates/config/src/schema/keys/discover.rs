//! The keys of `discover` of `[service.NAME]`.

use std::time::Duration;

use model::ListedLimits;

use super::{DAY, FILE, SHARE, TEXT, duration, patterned};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

pub(super) static DISCOVER: TableSpec = TableSpec {
    heading: "discover of [service.NAME]",
    path: "service.NAME.discover",
    doc: "Takes the service's servers from a source that knows which ones exist: Consul, Nomad, etcd, Kubernetes, SRV records, files with rows in TOML, or anything that writes the format of Prometheus's file-based or HTTP-based service discovery. `docs/discovery.md` says what each source tells about a server, and what happens when one fails. Servers in the file (`server`) are used, too; if the source lists the same address, the file's values apply.",
    example: "[service.web]\ndiscover = { consul = \"web\", tag = \"v2\", in_flight = \"added\", hold_share = 0.5, hold_max = \"10m\", saved = true, kept_max = \"1d\" }\n\n[service.batch]\ndiscover = { file_sd = \"targets/batch-*.yml\", port = 8080 }\n\n[service.jobs]\ndiscover = { nomad = \"jobs\", tag = \"v2\" }\n\n[service.accounts]\ndiscover = { etcd = \"/services/accounts/\" }\n\n[service.shop]\ndiscover = { kubernetes = \"shop/web:http\" }\n\n[kubernetes]\naddresses = [\"192.0.2.10\", \"192.0.2.11\"]\n\n[service.static]\ndiscover = { files = \"servers/static-*.toml\" }\n\n[service.api]\ndiscover = { dns_srv = \"_http._tcp.api.example\" }\n\n[service.search]\ndiscover = { http_sd = \"https://inventory.internal/search\", ca = \"internal.pem\", interval = \"10s\" }\n",
    keys: &[
        key(
            "consul",
            TEXT,
            Absent::Then("another source is required"),
            "The name of a service in Consul. Its instances are the servers; their health there decides whether they receive requests. See [consul].",
        ),
        key(
            "tag",
            TEXT,
            Absent::Then("all instances"),
            "Only instances of `consul`, or registrations of `nomad`, with this tag.",
        ),
        key(
            "nomad",
            TEXT,
            Absent::Then("another source is required"),
            "The name of a service in Nomad, with `provider = \"nomad\"`. Its registrations are the servers. See [nomad].",
        ),
        key(
            "etcd",
            Kind::Text(patterned("prefix of keys", "/$")),
            Absent::Then("another source is required"),
            "A prefix of keys in etcd, with a slash at its end. Each key is a server, its value a row. See [etcd].",
        ),
        key(
            "kubernetes",
            TEXT,
            Absent::Then("another source is required"),
            "A Service in Kubernetes: `\"NAMESPACE/SERVICE\"`, or `\"NAMESPACE/SERVICE:PORT\"` with the name of its port. Its Pods are the servers; Pods that end receive no new requests. `hold_max` is `\"0s\"` and `saved` false here, unless they are stated. See [kubernetes].",
        ),
        key(
            "dns_srv",
            Kind::Text(patterned("name of SRV records", "^_")),
            Absent::Then("another source is required"),
            "The name of SRV records, looked up again when their TTL ends. Targets of the lowest priority are primary servers, the others backups; weights above 1000 are scaled down. `resolver` applies.",
        ),
        key(
            "files",
            FILE,
            Absent::Then("another source is required"),
            "Files with rows in TOML, `[[server]]`, read again when they change. In the last part of the path, `*` stands for any text.",
        ),
        key(
            "file_sd",
            FILE,
            Absent::Then("another source is required"),
            "Files with lists of targets, JSON (`.json`) or YAML (`.yml`, `.yaml`), read again when they change. In the last part of the path, `*` stands for any text.",
        ),
        key(
            "http_sd",
            Kind::Text(patterned("URL", "^https?://")),
            Absent::Then("another source is required"),
            "The URL of a list of targets, JSON.",
        ),
        key(
            "ca",
            FILE,
            Absent::Then("those that the system trusts"),
            "Certificates (PEM) of the authorities that may have issued the certificate of `http_sd`.",
        ),
        key(
            "interval",
            duration(Duration::from_secs(1), DAY),
            Absent::Duration(defaults::HTTP_SD_INTERVAL),
            "The time between two requests to `http_sd`.",
        ),
        key(
            "port",
            Kind::Integer { min: 1, max: 65_535 },
            Absent::Then("as the source says"),
            "The servers' port, in place of the source's: targets for Prometheus often name the port of their metrics.",
        ),
        key(
            "in_flight",
            Kind::Choice(ListedLimits::WORDS),
            Absent::Text(ListedLimits::Each.as_str()),
            "What `in_flight_max` a server gets if `consul`, `nomad` or `etcd` lists its address more than once. `each`: that of one entry. `added`: the sum over the entries that are ready, 1 for an entry that states none, for workers that register one by one.",
        ),
        key(
            "hold_share",
            SHARE,
            Absent::Number(defaults::HOLD_SHARE),
            "When one answer lists fewer than this share of the servers that were listed before, or none, the missing ones are kept as servers of last resort: they need a passing health check, if the service has one, and are used like backups. 0: only when none is listed. Servers that are removed one after the other are not kept, except for the last one.",
        ),
        key(
            "hold_max",
            duration(Duration::ZERO, DAY),
            Absent::Duration(defaults::HOLD_MAX),
            "For how long they are kept. `0s`: an answer always applies at once.",
        ),
        key(
            "saved",
            Kind::Boolean,
            Absent::Boolean(defaults::SAVED_SERVERS),
            "Whether a start uses the servers of the last run until the source answers; they are kept in `state_directory`. `false`: the service has no servers until then.",
        ),
        key(
            "kept_max",
            duration(Duration::from_secs(1), Duration::from_hours(24 * 365)),
            Absent::Then("without end"),
            "How long the last good answer is used while the source fails.",
        ),
    ],
};
