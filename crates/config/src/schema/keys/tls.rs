//! Keys of TLS and HTTP/2, towards clients and towards servers.

use std::time::Duration;

use model::TlsVersion;

use super::{HOST, duration, form};
use crate::defaults;
use crate::schema::spec::{Absent, Kind, TableSpec, key};

const FILE: Kind = Kind::Text(form("file path"));
/// Every cipher suite that can be spoken, by its name at IANA: first those of TLS 1.3.
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
    doc: "TLS towards clients. Files are read with the configuration, relative paths from its folder; a change of one comes into force as a change of the configuration does (see `[reload]`), so a renewed certificate needs nobody. Files of more than 1 MiB are not read.",
    example: "[[listener]]\naddress = \"0.0.0.0:8443\"\n\n[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }, { chain = \"b.pem\", key = \"b.key\" }]\nversion_min = \"1.3\"\nhsts = \"365d\"\n",
    keys: &[
        key(
            "certificates",
            Kind::Tables(&CERTIFICATE),
            Absent::Required,
            "Which is shown is chosen by the server name that a client asks for: exact before wildcard, else the first. Of several for one name, the first whose kind of key (ECDSA, RSA) the client takes.",
        ),
        key(
            "version_min",
            Kind::Choice(TlsVersion::WORDS),
            Absent::Text(TlsVersion::Tls12.as_str()),
            "The oldest version of TLS that is spoken.",
        ),
        key(
            "ciphers",
            Kind::List(&Kind::Choice(CIPHERS)),
            Absent::Then("all, in the client's order of preference"),
            "The cipher suites that may be agreed on, by their names at IANA, in the order in which this listener prefers them: the first that the client offers is taken, whatever the client's own order.",
        ),
        key(
            "client_certificates",
            Kind::Table(&CLIENT_CERTIFICATES),
            Absent::Then("clients are not asked for one"),
            "Whose certificates clients show.",
        ),
        key(
            "hsts",
            duration(Duration::ZERO, HSTS_MAX),
            Absent::Then("not sent"),
            "For how long browsers are to use TLS alone for this host: Strict-Transport-Security (RFC 6797) on every response. `\"0s\"` takes it back.",
        ),
    ],
};

static CERTIFICATE: TableSpec = TableSpec {
    heading: "certificates in tls of [[listener]]",
    path: "listener.tls.certificates",
    doc: "A certificate with its key.",
    example: "[[listener]]\naddress = \"0.0.0.0:8443\"\ntls = { certificates = [{ chain = \"a.pem\", key = \"a.key\", ocsp = \"a.der\" }] }\n",
    keys: &[
        key(
            "chain",
            FILE,
            Absent::Required,
            "PEM: the certificate, then those that lead to its root.",
        ),
        key("key", FILE, Absent::Then("in the same file as the chain"), "PEM: its private key."),
        key("ocsp", FILE, Absent::Then("none"), "DER: an OCSP response to send along (stapling)."),
    ],
};

static CLIENT_CERTIFICATES: TableSpec = TableSpec {
    heading: "client_certificates in tls of [[listener]]",
    path: "listener.tls.client_certificates",
    doc: "Clients show certificates (mutual TLS). One that is shown must be valid, even where none is required.",
    example: "[[listener]]\naddress = \"0.0.0.0:8443\"\n\n[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\nclient_certificates = { ca = \"clients.pem\", required = false }\n",
    keys: &[
        key("ca", FILE, Absent::Required, "PEM: the authorities that issue them."),
        key(
            "required",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether a client without one is refused.",
        ),
    ],
};

pub(crate) static HTTP2: TableSpec = TableSpec {
    heading: "http2 of [[listener]]",
    path: "listener.http2",
    doc: "HTTP/2 (RFC 9113) towards clients: chosen by ALPN over TLS; over cleartext, by clients that begin with it.",
    example: "[[listener]]\naddress = \"0.0.0.0:8080\"\nhttp2 = { streams_max = 200 }\n",
    keys: &[key(
        "streams_max",
        Kind::Integer { min: 1, max: 10_000 },
        Absent::Integer(defaults::STREAMS_MAX),
        "Requests at once on one connection.",
    )],
};

pub(crate) static SERVICE_TLS: TableSpec = TableSpec {
    heading: "tls of [service.NAME]",
    path: "service.NAME.tls",
    doc: "TLS towards servers. `tls = {}` is enough where the servers' certificates are issued by an authority that this system knows.",
    example: "[service.accounts]\ntls = { name = \"accounts.internal\", ca = \"internal.pem\" }\nserver = [{ address = \"10.0.1.5:8443\" }]\n",
    keys: &[
        key(
            "name",
            HOST,
            Absent::Then("the server's host name, or its address"),
            "The name that servers are asked for (SNI) and that their certificates must hold.",
        ),
        key(
            "ca",
            FILE,
            Absent::Then("the system's authorities"),
            "PEM: the authorities that are believed, and no others.",
        ),
        key(
            "verify",
            Kind::Boolean,
            Absent::Boolean(true),
            "Whether servers' certificates are verified. Without that, nobody knows who is spoken to.",
        ),
        key(
            "certificate",
            Kind::Table(&SERVICE_CERTIFICATE),
            Absent::Then("none"),
            "What Weir shows to servers that ask for a certificate.",
        ),
    ],
};

static SERVICE_CERTIFICATE: TableSpec = TableSpec {
    heading: "certificate in tls of [service.NAME]",
    path: "service.NAME.tls.certificate",
    doc: "The certificate that Weir shows to servers.",
    example: "[service.accounts]\ntls = { certificate = { chain = \"a.pem\", key = \"a.key\" } }\nserver = [{ address = \"10.0.1.5:8443\" }]\n",
    keys: &[
        key(
            "chain",
            FILE,
            Absent::Required,
            "PEM: the certificate, then those that lead to its root.",
        ),
        key("key", FILE, Absent::Then("in the same file as the chain"), "PEM: its private key."),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cipher_suites_are_those_that_can_be_spoken() {
        assert_eq!(tls::cipher_suites(), CIPHERS);
    }
}
