//! Catalogues as bytes, and both sides of an exchange.

use super::*;

fn id(n: u8) -> CertificateId {
    CertificateId([n; 16])
}

fn version(n: u8) -> CertificateVersion {
    CertificateVersion { not_before_s: -1, not_after_s: i64::from(n) << 40, digest: [n; 16] }
}

fn offer() -> Offer {
    let entries =
        Versions::from([(id(1), Some(version(1))), (id(2), None), (id(3), Some(version(3)))]);
    let challenges = vec![
        Answer::Http { token: "token".into(), key_authorization: "token.thumb".into() },
        Answer::Tls { name: "a.example".into(), digest: vec![7; 32] },
    ];
    Offer {
        catalogue: catalogue(entries),
        challenges: (9, challenges),
        pems: [(id(1), Pem(Arc::from(*b"one")))].into(),
    }
}

#[test]
fn a_catalogue_is_read_as_it_was_written() {
    let offer = offer();
    assert_eq!(read(&write(&offer)), Some((offer.catalogue, offer.challenges)));
    assert!(!format!("{:?}", Pem(Arc::from(*b"SECRET"))).contains("SECRET"));
    let empty = Offer::default();
    assert_eq!(read(&write(&empty)), Some((empty.catalogue, empty.challenges)));
    let entries: Versions =
        (0..CERTIFICATES_MAX).map(|n| (CertificateId((n as u128).to_be_bytes()), None)).collect();
    let text = "x".repeat(TEXT_MAX_BYTES);
    let one = Answer::Http { token: text.clone(), key_authorization: text };
    let challenges = (1, vec![one; CHALLENGES_MAX]);
    let most = Offer { catalogue: catalogue(entries), challenges, pems: HashMap::new() };
    let bytes = write(&most);
    assert_eq!(bytes.len(), CATALOGUE_MAX_BYTES);
    assert_eq!(read(&bytes), Some((most.catalogue, most.challenges)));
}

#[test]
fn different_catalogues_have_different_digests() {
    let one = offer().catalogue;
    assert_eq!(one.digest, catalogue(one.entries.clone()).digest);
    for entries in [
        Versions::from([(id(1), Some(version(1))), (id(2), None)]),
        Versions::from([(id(1), Some(version(2))), (id(2), None), (id(3), Some(version(3)))]),
        Versions::new(),
    ] {
        assert_ne!(one.digest, catalogue(entries).digest);
    }
    assert_eq!(catalogue(Versions::new()), Catalogue::default());
}

#[test]
fn malformed_catalogues_are_refused() {
    let bytes = write(&offer());
    let entries = bytes.len() - 3 * ENTRY_BYTES;
    for length in (0..bytes.len())
        .filter(|length| *length < entries || !(length - entries).is_multiple_of(ENTRY_BYTES))
    {
        assert_eq!(read(&bytes[..length]), None, "{length} bytes");
    }
    let mut unknown = bytes.clone();
    unknown[10] = 3;
    assert_eq!(read(&unknown), None);
    let twice = [bytes.as_slice(), &bytes[entries..]].concat();
    assert_eq!(read(&twice), None, "an entry twice");
    let mut many = bytes;
    many[8..10].copy_from_slice(&(CHALLENGES_MAX as u16 + 1).to_le_bytes());
    assert_eq!(read(&many), None);
}

/// Runs both sides; returns what the asking one got, and whether the other one has answered.
async fn exchange(
    offer: &Offer,
    wanted: &Versions,
) -> (Result<Received, String>, Result<(), String>) {
    let (mut one, mut other) = tokio::io::duplex(64);
    let answering = async {
        let mut request = [0; wire::REQUEST_BYTES];
        other.read_exact(&mut request).await.unwrap();
        assert_eq!(request, wire::CERTIFICATES);
        answer(&mut other, offer).await
    };
    tokio::join!(fetch(&mut one, wanted), answering)
}

#[tokio::test]
async fn only_what_is_wanted_and_newer_is_fetched() {
    let offer = offer();
    let all = Versions::from([(id(1), None), (id(3), None), (id(4), None)]);
    let (received, answered) = exchange(&offer, &all).await;
    answered.unwrap();
    let received = received.unwrap();
    assert_eq!(received.challenges, offer.challenges);
    // The other side has the entry of the third, but no longer its text.
    assert_eq!(received.certificates, [(id(1), version(1), Pem(Arc::from(*b"one")))]);
    let (received, _) = exchange(&offer, &Versions::from([(id(1), Some(version(1)))])).await;
    assert_eq!(received.unwrap().certificates, []);
}

#[tokio::test]
async fn lengths_over_the_maximum_are_refused() {
    for bytes in [(CATALOGUE_MAX_BYTES as u32 + 1).to_le_bytes(), u32::MAX.to_le_bytes()] {
        let (mut one, mut other) = tokio::io::duplex(64);
        other.write_all(&bytes).await.unwrap();
        let error = fetch(&mut one, &Versions::new()).await.unwrap_err();
        assert!(error.contains("too long"), "{error}");
    }
    let (mut one, mut other) = tokio::io::duplex(1 << 20);
    one.write_all(&u16::MAX.to_le_bytes()).await.unwrap();
    let error = answer(&mut other, &offer()).await.unwrap_err();
    assert!(error.contains("too many"), "{error}");
}
