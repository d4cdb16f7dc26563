//! Keys of TLS and HTTP/2, towards clients and towards servers.

use std::time::Duration;

use model::TlsVersion;

use super::{FILE, HOST, duration, form};
use crate::defaults;
use crate::schema::spec::{Absent, KeySpec, Kind, TableSpec, key};

/// Every supported cipher suite, by its IANA name: first those of TLS 1.3.
pub(crate) const CIPHERS: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

/// Ten years.
const HSTS_MAX: Duration = Duration::from_secs(3650 * 24 * 3600);

pub(crate) static LISTENER_TLS: TableSpec = TableSpec {
    heading: "tls of [[listener]]",
    path: "listener.tls",
    doc: "TLS towards clients. Weir reads the files together with the configuration; relative paths start at the directory of the file that they are in. A changed file takes effect like a change of the configuration (see `[reload]`), so renewed certificates need no manual action. Weir does not read files of more than 1 MiB.",
    example: "[[listener]]\naddress = \"0.0.0.0:8443\"\n\n[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }, { chain = \"b.pem\", key = \"b.key\" }]\nversion_min = \"1.3\"\nciphers = [\"TLS_AES_256_GCM_SHA384\", \"TLS_CHACHA20_POLY1305_SHA256\"]\nhsts = \"365d\"\n\n# Certificates from a directory, as certbot or Kubernetes write it; a handshake for any other name is refused.\n[[listener]]\naddress = \"0.0.0.0:9443\"\ntls = { certificate_directory = \"certs\", unknown_names = \"refuse\" }\n",
    keys: &[
        key(
            "certificates",
            Kind::Tables(&CERTIFICATE),
            Absent::Then("those of `certificate_directory`, which is required then"),
            "Weir selects the certificate by the server name (SNI) that a client sends: exact before wildcard, else as `unknown_names` says. Of several for one name, it takes the first whose key type (ECDSA, RSA) the client supports.",
        ),
        key(
            "certificate_directory",
            FILE,
            Absent::Then("none"),
            "A directory with further certificates: files `*.pem` and `*.crt`, each with its key in the same file or in one beside it (`NAME.key`, `NAME-key.pem`, `NAME.pem.key`), and folders with `fullchain.pem` and `privkey.pem` (as certbot makes them) or `tls.crt` and `tls.key`. What is added, replaced or removed takes effect like a change of a file. Of several for one name and key type, the one that is valid longest is used. One that has expired is reported, and used if there is no other.",
        ),
        key(
            "unknown_names",
            Kind::Text(form("`refuse` or host")),
            Absent::Then(
                "the first of `certificates`; required if there is only `certificate_directory`",
            ),
            "What clients get that send no server name, or one that no certificate has: the certificate for this name, or with `\"refuse\"` none, so that the handshake fails (also of clients that send no name, such as many health checks).",
        ),
        key(
            "version_min",
            Kind::Choice(TlsVersion::WORDS),
            Absent::Text(TlsVersion::Tls12.as_str()),
            "The minimum version of TLS.",
        ),
        key(
            "ciphers",
            Kind::List(&Kind::Choice(CIPHERS)),
            Absent::Then("all, in the client's order of preference"),
            "The allowed cipher suites, by their IANA names, in the listener's order of preference: the first one that the client offers is used, whatever the client's order.",
        ),
        key(
            "client_certificates",
            Kind::Table(&CLIENT_CERTIFICATES),
            Absent::Then("none requested"),
            "Client certificates (mutual TLS).",
        ),
        key(
            "hsts",
            duration(Duration::ZERO, HSTS_MAX),
            Absent::Then("not sent"),
            "How long browsers must use only TLS for this host: Strict-Transport-Security (RFC 6797) on every response. `\"0s\"` revokes it.",
        ),
    ],
};

static CERTIFICATE: TableSpec = TableSpec {
    heading: "certificates in tls of [[listener]]",
    path: "listener.tls.certificates",
    doc: "A certificate with its key, from files or by ACME.",
    example: "[[listener]]\naddress = \"0.0.0.0:8443\"\ntls = { certificates = [{ chain = \"a.pem\", key = \"a.key\", ocsp = \"a.der\" }] }\n",
    keys: &[
        key(
            "chain",
            FILE,
            Absent::Then("required without `acme`"),
            "PEM: the certificate, then its intermediate certificates.",
        ),
        key("key", FILE, Absent::Then("in the same file as the chain"), "PEM: its private key."),
        key("ocsp", FILE, Absent::Then("none"), "DER: an OCSP response to send along (stapling)."),
        key(
            "acme",
            Kind::OneOrMore(&HOST),
            Absent::Then("the certificate comes from files"),
            "Instead of files: the names (up to 100) for which Weir obtains and renews one certificate, as `[acme]` describes. Until it has been issued, clients get a self-signed one.",
        ),
    ],
};

static CLIENT_CERTIFICATES: TableSpec = TableSpec {
    heading: "client_certificates in tls of [[listener]]",
    path: "listener.tls.client_certificates",
    doc: "Client certificates (mutual TLS). A certificate that a client sends must be valid, even if none is required.",
    example: "[[listener]]\naddress = \"0.0.0.0:8443\"\n\n[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\nclient_certificates = { ca = \"clients.pem\", required = false }\n",
    keys: &[
        key("ca", FILE, Absent::Required, "PEM: the certificate authorities that issue them."),
        key(
            "required",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether clients without a certificate are rejected.",
        ),
    ],
};

pub(crate) static HTTP2: TableSpec = TableSpec {
    heading: "http2 of [[listener]]",
    path: "listener.http2",
    doc: "HTTP/2 (RFC 9113) towards clients: negotiated by ALPN over TLS; over plain text, with prior knowledge.",
    example: "[[listener]]\naddress = \"0.0.0.0:8080\"\nhttp2 = { streams_max = 200 }\n",
    keys: &[key(
        "streams_max",
        Kind::Integer { min: 1, max: 10_000 },
        Absent::Integer(defaults::STREAMS_MAX),
        "Concurrent requests on one connection.",
    )],
};

pub(crate) static SERVICE_TLS: TableSpec = TableSpec {
    heading: "tls of [service.NAME]",
    path: "service.NAME.tls",
    doc: "TLS towards servers. `tls = {}` is enough if the servers' certificates are issued by an authority that this system trusts.",
    example: "[service.accounts]\ntls = { name = \"accounts.internal\", names = [\"accounts.internal\", \"spiffe://example.org/accounts\"], ca = \"internal.pem\" }\nserver = [{ address = \"10.0.1.5:8443\" }]\n\n[service.test]\ntls = { verify = false }\nserver = [{ address = \"10.0.9.5:8443\" }]\n",
    keys: &[
        key(
            "name",
            HOST,
            Absent::Then("the server's host name, or its address; `localhost` for a Unix socket"),
            "The server name to send (SNI), which the servers' certificates must contain.",
        ),
        key(
            "names",
            Kind::OneOrMore(&Kind::Text(form("name in a certificate"))),
            Absent::Then("`name`"),
            "Names of which the servers' certificates must contain one, in place of `name`: hosts, or URIs such as `\"spiffe://example.org/ns/shop/sa/accounts\"`.",
        ),
        key(
            "ca",
            FILE,
            Absent::Then("the system's authorities"),
            "PEM: the only certificate authorities to trust.",
        ),
        key(
            "verify",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether servers' certificates are verified. Without verification, the identity of servers is unknown.",
        ),
        key(
            "certificate",
            Kind::Table(&SERVICE_CERTIFICATE),
            Absent::Then("none"),
            "The certificate for servers that request one.",
        ),
    ],
};

static SERVICE_CERTIFICATE: TableSpec = TableSpec {
    heading: "certificate in tls of [service.NAME]",
    path: "service.NAME.tls.certificate",
    doc: "The certificate that Weir presents to servers.",
    example: "[service.accounts]\ntls = { certificate = { chain = \"a.pem\", key = \"a.key\" } }\nserver = [{ address = \"10.0.1.5:8443\" }]\n",
    keys: CHAIN_AND_KEY,
};

pub(super) static FLEET_TLS: TableSpec = TableSpec {
    heading: "tls of [fleet]",
    path: "fleet.tls",
    doc: "TLS between the members of a fleet. They use it to share session ticket keys (a client resumes its session at any member) and certificates obtained by ACME (one member orders, all answer the authority's challenges). Without it, each member has its own ticket keys and orders its own certificates. Weir listens on TCP at the `address` of `[fleet]`, and other members connect to `advertise`. Both sides present a certificate. A change takes effect with a reload, for the next connection.",
    example: "[fleet]\naddress = \"10.0.0.5:7946\"\nmembers = [\"10.0.0.6:7946\"]\nkeys = [\"${file:fleet.key}\"]\ntls = { certificate = { chain = \"member.pem\", key = \"member.key\" }, ca = \"fleet-ca.pem\", name = \"fleet.internal\" }\n",
    keys: &[
        key(
            "certificate",
            Kind::Table(&FLEET_CERTIFICATE),
            Absent::Required,
            "The certificate of this member.",
        ),
        key(
            "ca",
            FILE,
            Absent::Required,
            "PEM: the authorities that sign the certificates of members. A process with a certificate that they signed, and that is valid for `name` if that is set, gets the keys.",
        ),
        key(
            "name",
            HOST,
            Absent::Then("any name is accepted"),
            "The DNS name for which the certificates of all members are valid. Set it if `ca` also signs other certificates: without it, their holders get the keys.",
        ),
    ],
};

static FLEET_CERTIFICATE: TableSpec = TableSpec {
    heading: "certificate in tls of [fleet]",
    path: "fleet.tls.certificate",
    doc: "The certificate of this member, for server and client authentication: members connect in both directions.",
    example: "[fleet]\naddress = \"10.0.0.5:7946\"\nmembers = [\"10.0.0.6:7946\"]\nkeys = [\"${file:fleet.key}\"]\ntls = { certificate = { chain = \"member.pem\", key = \"member.key\" }, ca = \"fleet-ca.pem\", name = \"fleet.internal\" }\n",
    keys: CHAIN_AND_KEY,
};

/// The keys of a certificate that Weir presents.
pub(super) const CHAIN_AND_KEY: &[KeySpec] = &[
    key(
        "chain",
        FILE,
        Absent::Required,
        "PEM: the certificate, then its intermediate certificates.",
    ),
    key("key", FILE, Absent::Then("in the same file as the chain"), "PEM: its private key."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_suites_are_those_that_can_be_spoken() {
        assert_eq!(tls::cipher_suites(), CIPHERS);
    }
}
