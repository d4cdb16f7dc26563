//! Tests of challenges, with handshakes in memory.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConnection, DigitallySignedStruct, ServerConnection, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;

/// Looks at a certificate as an authority does: not by its chain or its use. (webpki refuses the
/// critical extension, even for the signature alone.)
#[derive(Debug)]
struct Authority;

impl ServerCertVerifier for Authority {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}

/// Returns the certificate and the protocol of a handshake in memory.
fn shake(
    config: &Arc<ServerConfig>,
    name: &str,
    alpn: &[&[u8]],
) -> Result<(Vec<u8>, Option<Vec<u8>>), rustls::Error> {
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().unwrap().dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(Authority));
    let mut client = builder.with_no_client_auth();
    client.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(config))?;
    for _ in 0..8 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut &bytes[..]).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        client.read_tls(&mut &bytes[..]).unwrap();
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    let shown = client.peer_certificates().unwrap()[0].to_vec();
    Ok((shown, client.alpn_protocol().map(<[u8]>::to_vec)))
}

fn normal() -> Arc<ServerConfig> {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["normal.example".to_owned()]).unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let material =
        |text: String| model::Material { path: "x".into(), bytes: text.as_bytes().into() };
    let tls = model::ListenerTls {
        certificates: vec![model::Certificate {
            chain: material(certificate.pem()),
            key: material(key.serialize_pem()),
            ocsp: None,
            acme: None,
        }],
        unknown_names: model::UnknownNames::First,
        version_min: model::TlsVersion::Tls12,
        ciphers: Vec::new(),
        client_certificates: None,
        hsts: None,
    };
    crate::server(&tls, &[b"h2", b"http/1.1"]).unwrap()
}

#[test]
fn a_token_is_answered_until_its_challenge_ends() {
    let challenges = Arc::new(Challenges::default());
    let path = format!("{HTTP_01_PREFIX}tok-en_1");
    assert_eq!(challenges.http(&path), None);
    let pending = challenges.answer_http("tok-en_1", "tok-en_1.thumb", OrderOf::Own).unwrap();
    assert_eq!(challenges.http(&path).as_deref(), Some("tok-en_1.thumb"));
    for other in ["tok-en_1", "/tok-en_1", "/.well-known/acme-challenge/", &format!("{path}/"), "/"]
    {
        assert_eq!(challenges.http(other), None, "{other}");
    }
    assert!(!format!("{challenges:?} {pending:?}").contains("thumb"));
    drop(pending);
    assert_eq!(challenges.http(&path), None);
}

#[test]
fn a_token_that_could_be_a_path_is_refused() {
    let challenges = Arc::new(Challenges::default());
    for token in ["", "../x", "a/b", "a b", "a%2f", "a\r\nb", "é"] {
        assert!(challenges.answer_http(token, "x", OrderOf::Own).is_err(), "{token:?}");
    }
}

#[test]
fn the_table_is_bounded() {
    let challenges = Arc::new(Challenges::default());
    let answer =
        |index: usize| challenges.answer_http(&format!("token-{index}"), "x", OrderOf::Own);
    let mut kept: Vec<Pending> =
        (0..CHALLENGES_PENDING_MAX).map(|index| answer(index).unwrap()).collect();
    assert!(answer(CHALLENGES_PENDING_MAX).is_err());
    kept.pop();
    kept.push(answer(CHALLENGES_PENDING_MAX).unwrap());
}

#[test]
fn a_validation_gets_the_certificate_of_its_name_and_nobody_else_does() {
    let challenges = Arc::new(Challenges::default());
    let normal = normal();
    let digest = [7; 32];
    let pending = challenges.answer_tls("A.example", &digest, OrderOf::Own).unwrap();
    let second = challenges.answer_tls("b.example", &[8; 32], OrderOf::Own).unwrap();
    let with = |alpn: &[&'static [u8]], name| {
        let config = challenges.config_for(alpn.iter().copied(), &normal).unwrap();
        shake(&config, name, alpn)
    };

    let (der, protocol) = with(&[ACME_TLS_1], "a.example").unwrap();
    assert_eq!(protocol.as_deref(), Some(ACME_TLS_1));
    let (_, seen) = X509Certificate::from_der(&der).unwrap();
    let names = seen.subject_alternative_name().unwrap().unwrap().value.general_names.len();
    assert_eq!(names, 1);
    // RFC 8737 section 3: critical, and the digest is an OCTET STRING within it.
    let extension = seen.iter_extensions().find(|e| e.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
    let extension = extension.unwrap();
    assert!(extension.critical);
    assert_eq!(extension.value, [&[4, 32][..], &digest].concat());

    let (other, _) = with(&[ACME_TLS_1], "b.example").unwrap();
    assert_ne!(other, der);
    // No challenge is pending for it: the handshake fails, and shows no certificate.
    with(&[ACME_TLS_1], "normal.example").unwrap_err();
    // What a listener presents otherwise is as before.
    for alpn in [&[b"h2" as &[u8]][..], &[], &[ACME_TLS_1, b"h2"], &[b"h2", ACME_TLS_1]] {
        let (shown, protocol) = with(alpn, "a.example").unwrap();
        assert_ne!(shown, der);
        assert_ne!(protocol.as_deref(), Some(ACME_TLS_1));
    }
    assert!(challenges.tls_pending());
    drop(pending);
    with(&[ACME_TLS_1], "a.example").unwrap_err();
    drop(second);
    // None is pending: a listener's own configuration answers, which does not know the protocol.
    assert!(!challenges.tls_pending());
    assert!(Arc::ptr_eq(
        &challenges.config_for([ACME_TLS_1].into_iter(), &normal).unwrap(),
        &normal
    ));
    with(&[ACME_TLS_1], "a.example").unwrap_err();
}

#[test]
fn an_address_is_validated_by_its_reverse_name() {
    assert_eq!(server_name("192.0.2.1"), "1.2.0.192.in-addr.arpa");
    let v6 = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa";
    assert_eq!(server_name("2001:db8::1"), v6);
    let challenges = Arc::new(Challenges::default());
    let _pending = challenges.answer_tls("192.0.2.1", &[1; 32], OrderOf::Own).unwrap();
    shake(&challenges.server().unwrap(), "1.2.0.192.in-addr.arpa", &[ACME_TLS_1]).unwrap();
}

#[test]
fn a_digest_of_another_length_is_refused() {
    let challenges = Arc::new(Challenges::default());
    challenges.answer_tls("a.example", &[1; 31], OrderOf::Own).unwrap_err();
    challenges.answer_tls("not a name\u{e9}", &[1; 32], OrderOf::Own).unwrap_err();
    assert!(!challenges.tls_pending());
}

#[test]
fn own_answers_are_listed_for_others_and_those_of_others_are_not() {
    let challenges = Arc::new(Challenges::default());
    assert_eq!(challenges.own(), (0, Vec::new()));
    let http = Answer::Http { token: "token".into(), key_authorization: "token.thumb".into() };
    let of_tls = Answer::Tls { name: "a.example".into(), digest: vec![7; 32] };
    let first = challenges.answer_own(http.clone()).unwrap();
    let (number, own) = challenges.own();
    assert_eq!(own, std::slice::from_ref(&http));
    let second = challenges.answer_own(of_tls.clone()).unwrap();
    let (next, own) = challenges.own();
    assert!(next > number && number > 0);
    assert_eq!(own, [http, of_tls]);
    let other = Answer::Http { token: "other".into(), key_authorization: "other.thumb".into() };
    let of_other = challenges.answer(&other).unwrap();
    assert_eq!(challenges.own().0, next);
    assert!(challenges.http(&format!("{HTTP_01_PREFIX}other")).is_some());
    drop((first, of_other));
    assert!(challenges.own().0 > next);
    assert!(challenges.http(&format!("{HTTP_01_PREFIX}token")).is_none());
    drop(second);
    assert_eq!(challenges.own().0, 0);
    assert!(
        challenges.answer_own(Answer::Tls { name: "a.example".into(), digest: vec![7] }).is_err()
    );
    assert_eq!(challenges.own(), (0, Vec::new()));
}

#[test]
fn an_own_answer_comes_before_that_of_another_process_and_outlives_it() {
    let challenges = Arc::new(Challenges::default());
    let answer = |authorization: &str| Answer::Http {
        token: "token".into(),
        key_authorization: authorization.into(),
    };
    let given = || challenges.http(&format!("{HTTP_01_PREFIX}token")).map(|text| text.to_string());
    let own = challenges.answer_own(answer("own")).unwrap();
    let other = challenges.answer(&answer("other")).unwrap();
    assert_eq!(given().as_deref(), Some("own"));
    drop(own);
    assert_eq!(given().as_deref(), Some("other"));
    let own = challenges.answer_own(answer("own again")).unwrap();
    drop(other);
    assert_eq!(given().as_deref(), Some("own again"));
    drop(own);
    assert_eq!(given(), None);
}
