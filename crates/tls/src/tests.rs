//! Tests of handshakes in memory, with generated certificates.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{
    AlternativeName, Certificate, ClientCertificateMode, ClientCertificates, FleetTls, ListenerTls,
    Material, ServiceTls, TlsVersion, UnknownNames,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    date_time_ymd,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::*;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn material(name: &str, bytes: &[u8]) -> Material {
    Material { path: PathBuf::from(name), bytes: bytes.into() }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Example, Inc.");
    params.distinguished_name.push(DnType::CommonName, "leaf");
    params
}

fn signed(by: &Issuer, params: &CertificateParams, key: &KeyPair) -> Certificate {
    let leaf = params.signed_by(key, by).unwrap();
    Certificate {
        chain: material("leaf.pem", leaf.pem().as_bytes()),
        key: material("leaf.key", key.serialize_pem().as_bytes()),
        ocsp: None,
        acme: None,
    }
}

fn leaf(by: &Issuer, names: &[&str]) -> Certificate {
    signed(by, &params(names), &KeyPair::generate().unwrap())
}

fn listener(certificates: Vec<Certificate>) -> ListenerTls {
    ListenerTls {
        certificates,
        unknown_names: UnknownNames::First,
        version_min: TlsVersion::Tls12,
        client_certificates: None,
        ciphers: Vec::new(),
        hsts: None,
    }
}

fn service(ca: &Issuer) -> ServiceTls {
    let ca = material("ca.pem", ca.pem().as_bytes());
    ServiceTls { name: None, names: Vec::new(), verify: true, ca, certificate: None }
}

/// Returns both ends of a connection after the handshake, or the error.
fn shake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    // Tickets follow the handshake, so both sides are read to the end.
    for _ in 0..8 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok((client, server))
}

/// Returns the certificate for a client that sends `name`.
fn shown(config: &Arc<ServerConfig>, name: &str) -> Vec<u8> {
    let any = ServiceTls {
        name: None,
        names: Vec::new(),
        verify: false,
        ca: material("", b""),
        certificate: None,
    };
    let (seen, _) = shake(&client(&any, &[]).unwrap(), config, name).unwrap();
    seen.peer_certificates().unwrap()[0].to_vec()
}

fn der(certificate: &Certificate) -> Vec<u8> {
    pem::chain(&certificate.chain).unwrap()[0].to_vec()
}

#[test]
fn the_server_name_chooses_exact_before_wildcard_before_the_first() {
    let ca = authority("ca");
    let certificates = vec![
        leaf(&ca, &["first.example.org"]),
        leaf(&ca, &["*.example.com", "example.com"]),
        leaf(&ca, &["a.example.com"]),
        leaf(&ca, &["a.example.com", "second.example.org"]),
    ];
    let ders: Vec<_> = certificates.iter().map(der).collect();
    let config = server(&listener(certificates), &[]).unwrap();
    for (name, expected) in [
        ("first.example.org", 0),
        ("example.com", 1),
        ("b.example.com", 1),
        ("B.Example.COM", 1),
        ("a.example.com", 2),
        ("a.b.example.com", 0),
        ("second.example.org", 3),
        ("unknown.test", 0),
        ("192.0.2.1", 0),
    ] {
        assert!(shown(&config, name) == ders[expected], "{name} is not shown {expected}");
    }
}

#[test]
fn of_one_name_the_key_that_the_client_takes_is_shown() {
    let ca = authority("ca");
    let ed25519 = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificates = [signed(&ca, &params(&["a.test"]), &ed25519), leaf(&ca, &["a.test"])];
    let ders: Vec<_> = certificates.iter().map(der).collect();
    let by_name = resolve::ByName::new(
        certificates.iter().map(|one| facts::certified(one).unwrap()).collect(),
        &UnknownNames::First,
    );
    let find = |schemes: &[rustls::SignatureScheme]| {
        let takes = |one: &rustls::sign::CertifiedKey| one.key.choose_scheme(schemes).is_some();
        by_name.find(Some("a.test"), takes).unwrap().cert[0].to_vec()
    };
    use rustls::SignatureScheme::{ECDSA_NISTP256_SHA256, ED25519, RSA_PSS_SHA256};
    assert!(find(&[ECDSA_NISTP256_SHA256, ED25519]) == ders[0]);
    assert!(find(&[ECDSA_NISTP256_SHA256]) == ders[1]);
    // None fits: the handshake fails, but not for lack of a certificate.
    assert!(find(&[RSA_PSS_SHA256]) == ders[0]);
}

#[test]
fn unknown_names_get_what_the_listener_says() {
    let ca = authority("ca");
    let certificates = vec![leaf(&ca, &["a.test"]), leaf(&ca, &["*.b.test"])];
    let ders: Vec<_> = certificates.iter().map(der).collect();
    let verified = client(&ServiceTls { verify: false, ..service(&ca) }, &[]).unwrap();
    let named = |name: &str| UnknownNames::As(name.to_owned());
    for (unknown_names, asked, expected) in [
        (UnknownNames::First, "other.test", Some(0)),
        (named("x.b.test"), "other.test", Some(1)),
        (named("a.test"), "other.test", Some(0)),
        (named("x.b.test"), "a.test", Some(0)),
        (UnknownNames::Refuse, "other.test", None),
        (UnknownNames::Refuse, "127.0.0.1", None),
        (UnknownNames::Refuse, "y.b.test", Some(1)),
        (UnknownNames::Refuse, "A.test", Some(0)),
    ] {
        let tls =
            ListenerTls { unknown_names: unknown_names.clone(), ..listener(certificates.clone()) };
        let shaken = shake(&verified, &server(&tls, &[]).unwrap(), asked);
        let shown = shaken.ok().map(|(seen, _)| seen.peer_certificates().unwrap()[0].to_vec());
        assert_eq!(shown, expected.map(|at: usize| ders[at].clone()), "{unknown_names:?} {asked}");
    }
}

#[test]
fn protocols_versions_and_stapled_responses_are_as_configured() {
    let ca = authority("ca");
    let mut certificate = leaf(&ca, &["a.test"]);
    let response = [0x30, 3, 0x0a, 1, 0];
    certificate.ocsp = Some(material("a.der", &response));
    let mut tls = listener(vec![certificate]);
    tls.version_min = TlsVersion::Tls13;
    let config = server(&tls, &[b"h2", b"http/1.1"]).unwrap();
    let http11 = client(&service(&ca), &[b"http/1.1"]).unwrap();
    let (seen, _) = shake(&http11, &config, "a.test").unwrap();
    assert_eq!(seen.alpn_protocol(), Some(&b"http/1.1"[..]));
    let both = client(&service(&ca), &[b"http/1.1", b"h2"]).unwrap();
    assert_eq!(shake(&both, &config, "a.test").unwrap().0.alpn_protocol(), Some(&b"h2"[..]));
    assert!(shake(&client(&service(&ca), &[b"x"]).unwrap(), &config, "a.test").is_err());

    let old = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(pem::roots(&service(&ca).ca).unwrap())
        .with_no_client_auth();
    let old = Arc::new(old);
    assert!(shake(&old, &config, "a.test").is_err(), "1.2 is refused");
    tls.version_min = TlsVersion::Tls12;
    let config = server(&tls, &[]).unwrap();
    let (seen, _) = shake(&old, &config, "a.test").unwrap();
    assert_eq!(seen.protocol_version(), Some(rustls::ProtocolVersion::TLSv1_2));
}

#[test]
fn servers_are_verified_by_name_and_authority_by_default() {
    let (ca, other) = (authority("ca"), authority("other"));
    let config = server(&listener(vec![leaf(&ca, &["a.test"])]), &[]).unwrap();
    let verified = client(&service(&ca), &[]).unwrap();
    assert!(shake(&verified, &config, "a.test").is_ok());
    assert!(shake(&verified, &config, "b.test").is_err(), "another name");
    let strangers = client(&service(&other), &[]).unwrap();
    assert!(shake(&strangers, &config, "a.test").is_err(), "another authority");
    let unverified = ServiceTls { verify: false, ..service(&other) };
    assert!(shake(&client(&unverified, &[]).unwrap(), &config, "b.test").is_ok());
}

#[test]
fn servers_may_have_one_of_several_names() {
    let (ca, other) = (authority("ca"), authority("other"));
    let mut of_server = params(&["b.test", "*.c.test"]);
    let uri = "spiffe://example.org/accounts";
    of_server.subject_alt_names.push(rcgen::SanType::URI(uri.try_into().unwrap()));
    let certificate = signed(&ca, &of_server, &KeyPair::generate().unwrap());
    let config = server(&listener(vec![certificate]), &[]).unwrap();
    let dns = |name: &str| AlternativeName::Dns(name.to_owned());
    let of_uri = |uri: &str| AlternativeName::Uri(uri.to_owned());
    for (names, expected) in [
        (vec![dns("b.test")], true),
        (vec![dns("a.test"), dns("x.c.test")], true),
        (vec![of_uri(uri)], true),
        (vec![of_uri("spiffe://example.org/accounts/"), dns("a.test")], false),
        (vec![dns("a.test")], false),
        (vec![dns("c.test")], false),
        // A name of one kind is none of the other.
        (vec![of_uri("b.test")], false),
        (vec![dns(uri)], false),
    ] {
        // The name that is sent does not count.
        let with = |authority| ServiceTls { names: names.clone(), ..service(authority) };
        let shaken = shake(&client(&with(&ca), &[]).unwrap(), &config, "a.test");
        assert_eq!(shaken.is_ok(), expected, "{names:?}");
        assert!(shake(&client(&with(&other), &[]).unwrap(), &config, "a.test").is_err());
    }
}

#[test]
fn clients_are_known_by_their_certificates() {
    let (ca, stranger) = (authority("ca"), authority("other"));
    let mut tls = listener(vec![leaf(&ca, &["a.test"])]);
    let of_clients =
        |mode| ClientCertificates { ca: material("clients.pem", ca.pem().as_bytes()), mode };
    let with = |certificate| client(&ServiceTls { certificate, ..service(&ca) }, &[]).unwrap();
    let mut who = params(&["client.test"]);
    who.distinguished_name.push(DnType::OrganizationalUnitName, "né");
    let own = Some(signed(&ca, &who, &KeyPair::generate().unwrap()));

    tls.client_certificates = Some(of_clients(ClientCertificateMode::Required));
    let required = server(&tls, &[]).unwrap();
    let (_, seen) = shake(&with(own.clone()), &required, "a.test").unwrap();
    let identity = identity(&seen.peer_certificates().unwrap()[0]).unwrap();
    assert_eq!(identity, "OU=n\\C3\\A9,CN=leaf,O=Example\\, Inc.");
    assert!(shake(&with(None), &required, "a.test").is_err(), "none is shown");
    let foreign = Some(leaf(&stranger, &["client.test"]));
    assert!(shake(&with(foreign.clone()), &required, "a.test").is_err(), "a stranger's");

    tls.client_certificates = Some(of_clients(ClientCertificateMode::Optional));
    let optional = server(&tls, &[]).unwrap();
    let (_, seen) = shake(&with(None), &optional, "a.test").unwrap();
    assert!(seen.peer_certificates().is_none());
    assert!(shake(&with(own), &optional, "a.test").unwrap().1.peer_certificates().is_some());
    assert!(shake(&with(foreign.clone()), &optional, "a.test").is_err(), "optional, but not any");

    tls.client_certificates = Some(of_clients(ClientCertificateMode::Unverified));
    let unverified = server(&tls, &[]).unwrap();
    assert!(shake(&with(None), &unverified, "a.test").is_ok());
    assert!(shake(&with(foreign), &unverified, "a.test").is_ok(), "any");
}

#[test]
fn a_client_that_was_asked_for_any_certificate_is_checked_afterwards() {
    use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let (ca, stranger) = (authority("ca"), authority("stranger"));
    let config =
        server_asking_any_client(&listener(vec![leaf(&ca, &["a.test"])]), &[b"http/1.1"]).unwrap();
    let proxies = ClientAuthority::new(&ca.pem()).unwrap();
    let presents = |by: &Issuer, usage| {
        let mut params = params(&["client.test"]);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2120, 1, 1);
        params.extended_key_usages = vec![usage];
        Some(signed(by, &params, &KeyPair::generate().unwrap()))
    };
    let seen = |certificate| {
        let client = client(&ServiceTls { certificate, ..service(&ca) }, &[b"http/1.1"]).unwrap();
        let (_, seen) = shake(&client, &config, "a.test").unwrap();
        seen.peer_certificates().map(<[_]>::to_vec)
    };
    let in_years = |years: u64| Duration::from_secs(years * 365 * 24 * 3600);
    assert_eq!(seen(None), None);
    for (certificate, years, is_right) in [
        (presents(&ca, ClientAuth), 56, true),
        (presents(&ca, ClientAuth), 40, false),
        (presents(&ca, ServerAuth), 56, false),
        (presents(&stranger, ClientAuth), 56, false),
    ] {
        let chain = seen(certificate).unwrap();
        let verified = proxies.verify(&chain, in_years(years));
        assert_eq!(verified.is_ok(), is_right, "{verified:?}");
    }
    assert!(proxies.verify(&[], in_years(56)).is_err());
    assert!(ClientAuthority::new("").is_err());
}

#[test]
fn names_that_cannot_all_be_read_are_unknown() {
    use model::CertificatePart::{Dns, Email, Fingerprint, Subject, Uri};
    let mut params = params(&[]);
    // A DNS name that is not ASCII beside one that is (RFC 5280 section 4.2.1.6).
    let names = [0x30, 8, 0x82, 2, b'a', b'b', 0x82, 2, 0xff, 0xfe];
    params
        .custom_extensions
        .push(rcgen::CustomExtension::from_oid_content(&[2, 5, 29, 17], names.to_vec()));
    let spoilt = der(&signed(&authority("ca"), &params, &KeyPair::generate().unwrap()));
    let names = certificate_names(&spoilt);
    assert!([Dns, Uri, Email].into_iter().all(|part| names.of(part).is_none()), "{names:?}");
    assert_eq!(names.of(Subject), Some(&["CN=leaf,O=Example\\, Inc.".to_owned()][..]));
    assert_eq!(names.of(Fingerprint).map(<[String]>::len), Some(1));

    let usual = der(&leaf(&authority("ca"), &["A.example.com"]));
    let names = certificate_names(&usual);
    assert_eq!(names.of(Dns), Some(&["a.example.com".to_owned()][..]));
    assert_eq!(names.of(Uri), Some(&[][..]));
}

#[test]
fn sessions_are_resumed_at_the_config_that_issued_them_and_at_no_other() {
    use rustls::HandshakeKind::{Full, Resumed};
    let ca = authority("ca");
    let tls = listener(vec![leaf(&ca, &["a.test"])]);
    let (config, other) = (server(&tls, &[]).unwrap(), server(&tls, &[]).unwrap());
    let client = client(&service(&ca), &[]).unwrap();
    let kind = |config| shake(&client, config, "a.test").unwrap().1.handshake_kind();
    assert_eq!(kind(&config), Some(Full));
    assert_eq!(kind(&config), Some(Resumed));
    assert_eq!(kind(&other), Some(Full));
}

#[test]
fn a_certificates_facts_are_read() {
    let ca = authority("ca");
    let mut params = params(&["A.Test", "*.b.test", "192.0.2.1", "2001:db8::1"]);
    params.not_before = date_time_ymd(2024, 1, 1);
    params.not_after = date_time_ymd(2024, 3, 1);
    let certificate = signed(&ca, &params, &KeyPair::generate().unwrap());
    let found = super::certificate(&certificate).unwrap();
    assert_eq!(found, facts(&certificate.chain).unwrap());
    assert_eq!(found.names, ["a.test", "*.b.test", "192.0.2.1", "2001:db8::1"]);
    assert_eq!((found.not_before, found.not_after), (1_704_067_200, 1_709_251_200));
    assert_eq!((found.issuer.as_str(), found.key), ("CN=ca", KeyKind::Ecdsa));
    assert_eq!(found.validity(1_704_067_199), Validity::NotYet);
    assert_eq!(found.validity(1_704_067_200), Validity::Valid { left_s: 5_184_000 });
    assert_eq!(found.validity(1_709_251_201), Validity::Expired);
    assert_eq!(found.followed_by_stranger, None);

    let chained = |next: &Issuer| {
        let text = format!("{}{}", String::from_utf8_lossy(&certificate.chain.bytes), next.pem());
        facts(&material("chain.pem", text.as_bytes())).unwrap().followed_by_stranger
    };
    assert_eq!(chained(&ca), None);
    assert_eq!(chained(&authority("stranger")).as_deref(), Some("CN=stranger"));
}

#[test]
fn unusable_files_are_reported_with_a_remedy() {
    let ca = authority("ca");
    let good = leaf(&ca, &["a.test"]);
    let other = leaf(&ca, &["b.test"]);
    let found = |certificate: &Certificate| {
        let mistake = super::certificate(certificate).unwrap_err();
        (mistake.about, mistake.to_string())
    };
    let cut = good.chain.bytes.len() / 2;
    let cases: Vec<(Certificate, Part, &str)> = vec![
        (Certificate { key: other.key.clone(), ..good.clone() }, Part::Key, "of a.test"),
        (Certificate { key: good.chain.clone(), ..good.clone() }, Part::Key, "exchanged?"),
        (Certificate { chain: good.key.clone(), ..good.clone() }, Part::Chain, "exchanged?"),
        (Certificate { chain: material("", b""), ..good.clone() }, Part::Chain, "must be PEM"),
        (
            Certificate { chain: material("", &good.chain.bytes[..cut]), ..good.clone() },
            Part::Chain,
            "cut off",
        ),
        (
            Certificate { chain: material("", &der(&good)), ..good.clone() },
            Part::Chain,
            "looks like DER",
        ),
        (
            Certificate {
                key: material("", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n"),
                ..good.clone()
            },
            Part::Key,
            "encrypted",
        ),
        (
            Certificate { ocsp: Some(material("", &[0x30, 3, 0x0a, 1, 6])), ..good.clone() },
            Part::Ocsp,
            "status 6",
        ),
        (
            Certificate { ocsp: Some(material("", b"-----BEGIN")), ..good.clone() },
            Part::Ocsp,
            "must be DER",
        ),
    ];
    for (certificate, part, words) in cases {
        let (about, text) = found(&certificate);
        assert!(about == part && text.contains(words), "{about:?}: {text}");
    }
    assert!(authorities(&material("", ca.pem().as_bytes())).is_ok_and(|count| count == 1));
    assert!(authorities(&good.key).is_err());
    let mistake = server(&listener(vec![good, other.clone()]), &[]).map(|_| ());
    assert_eq!(mistake, Ok(()));
    let broken = Certificate { key: material("", b""), ..other };
    let mistake = server(&listener(vec![broken]), &[]).unwrap_err();
    assert!(mistake.message.starts_with("leaf.pem: no private key"), "{mistake}");
}

/// Files come from outside: no corruption of them causes a panic.
#[test]
fn no_damage_to_a_certificate_panics() {
    let ca = authority("ca");
    let good = leaf(&ca, &["a.test"]);
    let whole = der(&good);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        drop(identity(&damaged));
        drop(identity(&whole[..at]));
        let mut text = good.chain.bytes.to_vec();
        let place = at % text.len();
        text[place] ^= 0x41;
        drop(facts(&material("", &text)));
    }
    assert_eq!(identity(&whole).as_deref(), Some("CN=leaf,O=Example\\, Inc."));
}

/// Members of this authority, each with a certificate for these names; `name` is what they ask for.
fn of_fleet(ca: &Issuer, names: &[&str], name: Option<&str>) -> FleetTls {
    let ca_pem = material("ca.pem", ca.pem().as_bytes());
    FleetTls { certificate: leaf(ca, names), ca: ca_pem, name: name.map(Into::into) }
}

#[test]
fn members_accept_each_other_and_no_stranger() {
    let (ca, other_ca) = (authority("members"), authority("others"));
    let one = member(&of_fleet(&ca, &["one.test"], None)).unwrap();
    let other = member(&of_fleet(&ca, &["other.test"], None)).unwrap();
    let stranger = member(&of_fleet(&other_ca, &["one.test"], None)).unwrap();
    let (client, server) = shake(&one.client, &other.server, "10.0.0.1").unwrap();
    assert!(
        one.has_member_name(client.peer_certificates())
            && other.has_member_name(server.peer_certificates())
    );
    assert!(shake(&one.client, &stranger.server, "10.0.0.1").is_err());
    assert!(shake(&stranger.client, &one.server, "10.0.0.1").is_err());
    // Each connection verifies.
    let (again, _) = shake(&one.client, &other.server, "10.0.0.1").unwrap();
    assert_eq!(again.handshake_kind(), Some(rustls::HandshakeKind::Full));

    let named = member(&of_fleet(&ca, &["fleet.test"], Some("fleet.test"))).unwrap();
    let (client, server) = shake(&other.client, &named.server, "10.0.0.1").unwrap();
    assert!(!named.has_member_name(server.peer_certificates()), "it is not for the name");
    assert!(other.has_member_name(client.peer_certificates()));
    assert!(!named.has_member_name(None));
}

#[test]
fn a_certificate_that_members_would_refuse_is_a_mistake() {
    let (ca, other_ca) = (authority("members"), authority("others"));
    let mistake = |tls: &FleetTls| member(tls).unwrap_err();
    let mut of_others = of_fleet(&ca, &["one.test"], None);
    of_others.ca = material("ca.pem", other_ca.pem().as_bytes());
    let shown = mistake(&of_others);
    assert_eq!(shown.about, Part::Chain);
    assert!(shown.message.contains("cannot be verified for server"), "{shown}");
    let named = mistake(&of_fleet(&ca, &["one.test"], Some("fleet.test")));
    assert!(named.message.contains("not valid for fleet.test"), "{named}");

    // One for servers alone.
    let mut params = params(&["one.test"]);
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = signed(&ca, &params, &KeyPair::generate().unwrap());
    let shown = mistake(&FleetTls { certificate, ..of_fleet(&ca, &["one.test"], None) });
    assert!(shown.message.contains("for client authentication"), "{shown}");
}

#[test]
fn a_session_is_resumed_in_another_process_with_the_same_keys() {
    let ca = authority("public");
    let certificate = leaf(&ca, &["a.test"]);
    let asking = ListenerTls {
        client_certificates: Some(ClientCertificates {
            ca: material("clients.pem", ca.pem().as_bytes()),
            mode: ClientCertificateMode::Optional,
        }),
        ..listener(vec![certificate.clone()])
    };
    let plain = listener(vec![certificate]);
    let (one, other) = (Arc::<SharedTickets>::default(), Arc::<SharedTickets>::default());
    let key = || TicketKey::new(&[2; 32]);
    one.set(Some(key()), vec![key()]);
    other.set(None, vec![key()]);
    let at = |shared, tls| server_with_tickets(tls, &[], shared).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = client_of(&ca, version);
        let kind = |server: &Arc<ServerConfig>| {
            let (client, server) = shake(&client, server, "a.test").unwrap();
            assert_eq!(client.handshake_kind(), server.handshake_kind());
            server.handshake_kind()
        };
        assert_eq!(kind(&at(&one, &plain)), Some(rustls::HandshakeKind::Full));
        assert_eq!(kind(&at(&other, &plain)), Some(rustls::HandshakeKind::Resumed), "{version:?}");
        // The last ticket is of the other's own key.
        assert_eq!(kind(&at(&one, &plain)), Some(rustls::HandshakeKind::Full));
        // Those of a listener that asks for certificates of clients are its own.
        let asks = at(&one, &asking);
        assert_eq!(kind(&asks), Some(rustls::HandshakeKind::Full), "{version:?}");
        assert_eq!(kind(&asks), Some(rustls::HandshakeKind::Resumed), "{version:?}");
        assert_eq!(kind(&at(&one, &asking)), Some(rustls::HandshakeKind::Full), "{version:?}");
    }
}

#[test]
fn listeners_that_differ_do_not_open_each_others_tickets() {
    let ca = authority("public");
    let (first, second) = (leaf(&ca, &["a.test"]), leaf(&ca, &["b.test"]));
    let keys = Arc::<SharedTickets>::default();
    let key = || TicketKey::new(&[2; 32]);
    keys.set(Some(key()), vec![key()]);
    let ticketer =
        |tls: &ListenerTls| server_with_tickets(tls, &[], &keys).unwrap().ticketer.clone();
    let plain = listener(vec![first.clone(), second.clone()]);
    let ticket = ticketer(&plain).encrypt(b"session").unwrap();
    assert_eq!(ticketer(&plain).decrypt(&ticket).unwrap(), b"session");
    let commented = [&first.key.bytes[..], b"# another file\n"].concat();
    let other_key = Certificate { key: material("key.pem", &commented), ..first.clone() };
    let others = [
        ("order", listener(vec![second.clone(), first.clone()])),
        ("one certificate", listener(vec![first.clone()])),
        ("private key", listener(vec![other_key, second])),
        ("version", ListenerTls { version_min: TlsVersion::Tls13, ..plain.clone() }),
        ("ciphers", ListenerTls { ciphers: vec!["TLS_AES_128_GCM_SHA256"], ..plain.clone() }),
    ];
    for (what, other) in others {
        assert_eq!(ticketer(&other).decrypt(&ticket), None, "{what}");
    }
}

/// A client that offers one version and remembers sessions.
fn client_of(ca: &Issuer, version: &'static rustls::SupportedProtocolVersion) -> Arc<ClientConfig> {
    let roots = pem::roots(&material("ca.pem", ca.pem().as_bytes())).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
