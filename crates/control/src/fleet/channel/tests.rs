//! Two sides of connections over loopback.

use std::net::TcpListener;

use model::{Certificate, CertificateId, CertificateVersion, FleetTls, Material};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::certificates::catalogue;
use super::*;

type Issuer = CertifiedIssuer<'static, KeyPair>;

const SOON: Duration = Duration::from_secs(20);

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn material(text: &str) -> Material {
    Material { path: "file.pem".into(), bytes: text.as_bytes().into() }
}

/// A member with a certificate for this name.
fn member(by: &Issuer, name: &str) -> MemberTls {
    let key = KeyPair::generate().unwrap();
    let chain = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, by).unwrap();
    let certificate = Certificate {
        chain: material(&chain.pem()),
        key: material(&key.serialize_pem()),
        ocsp: None,
        acme: None,
    };
    tls::member(&FleetTls { certificate, ca: material(&by.pem()), name: Some(name.into()) })
        .unwrap()
}

/// An address of this test's own.
fn address(number: u8) -> SocketAddr {
    let [high, low] = (std::process::id() as u16).to_be_bytes();
    ([127, 100 + number % 4, high, low.clamp(1, 254)], 7900 + u16::from(number)).into()
}

fn start(number: u8, tls: MemberTls) -> Channel {
    let channel = Channel::start(address(number), tls, Arc::default()).unwrap();
    wait("it listens", || channel.is_listening().then_some(()));
    channel
}

fn wait<T>(what: &str, mut is: impl FnMut() -> Option<T>) -> T {
    let until = os::clock::now() + SOON;
    loop {
        if let Some(found) = is() {
            return found;
        }
        assert!(os::clock::now() < until, "waited for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn peer(start: u8, address: SocketAddr) -> Peer {
    Peer { name: "b1".into(), address, start: [start; 16] }
}

fn fetch(from: &mut Channel, address: SocketAddr, want: Want) -> Result<Contents, String> {
    assert!(from.ask(&peer(9, address), want));
    let fetched = wait("an answer", || from.answer());
    assert_eq!((fetched.from, fetched.address), (StartId([9; 16]), address));
    fetched.contents
}

fn ask(from: &mut Channel, address: SocketAddr) -> Result<Vec<SecretKey>, String> {
    match fetch(from, address, Want::TicketKeys)? {
        Contents::TicketKeys(keys) => Ok(keys),
        other @ Contents::Certificates(_) => panic!("{other:?}"),
    }
}

fn key(byte: u8) -> SecretKey {
    SecretKey {
        name: KeyName { generation: 3, id: tls::TicketKey::id(&[byte; 32]) },
        age: (Duration::from_secs(100), os::clock::now()),
        secret: Secret(Zeroizing::new([byte; 32])),
    }
}

#[test]
fn a_member_gets_the_keys_and_a_stranger_does_not() {
    let ca = authority();
    let one = start(1, member(&ca, "fleet.internal"));
    let mut other = start(2, member(&ca, "fleet.internal"));
    assert_eq!(ask(&mut other, address(1)), Ok(Vec::new()));
    one.set_keys(vec![key(1), key(2)]);
    let keys = ask(&mut other, address(1)).unwrap();
    let names: Vec<_> = keys.iter().map(|one| (one.name, one.secret.clone())).collect();
    assert_eq!(names, [key(1), key(2)].map(|one| (one.name, one.secret)));
    assert!(keys[0].age.0 >= Duration::from_secs(100), "{:?}", keys[0].age);

    // Of the same authority with another name, and of another authority with this one.
    other.set_tls(member(&ca, "else.internal"));
    assert!(ask(&mut other, address(1)).is_err());
    other.set_tls(member(&authority(), "fleet.internal"));
    assert!(ask(&mut other, address(1)).is_err());
    wait("both to be counted", || (one.refused() >= 2).then_some(()));

    one.set_tls(member(&ca, "fleet.internal"));
    other.set_tls(member(&ca, "fleet.internal"));
    assert_eq!(ask(&mut other, address(1)).unwrap().len(), 2);
}

#[test]
fn one_that_does_not_answer_is_given_up() {
    let ca = authority();
    let mut one = start(3, member(&ca, "fleet.internal"));
    let silent = TcpListener::bind(address(4)).unwrap();
    assert_eq!(ask(&mut one, address(4)), Err("no answer within 5 s".to_owned()));
    drop(silent);
    let error = ask(&mut one, address(4)).unwrap_err();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn it_listens_when_the_address_is_free() {
    let taken = TcpListener::bind(address(5)).unwrap();
    let channel =
        Channel::start(address(5), member(&authority(), "a.internal"), Arc::default()).unwrap();
    std::thread::park_timeout(Duration::from_millis(200));
    assert!(!channel.is_listening());
    drop(taken);
    wait("it listens", || channel.is_listening().then_some(()));
}

#[test]
fn a_dropped_one_ends_at_once_and_frees_its_address() {
    let ca = authority();
    let one = start(6, member(&ca, "a.internal"));
    let silent = TcpListener::bind(address(7)).unwrap();
    assert!(one.ask(&peer(9, address(7)), Want::TicketKeys));
    // It waits for the answer now.
    let (_waiting, _) = silent.accept().unwrap();
    drop(one);
    let begun = os::clock::now();
    wait("the address to be free", || TcpListener::bind(address(6)).ok());
    assert!(
        os::clock::now().since(begun) < Duration::from_secs(4),
        "sooner than the answer is given up"
    );
}

#[test]
fn a_member_gets_the_certificates_and_answers_of_another_one() {
    let ca = authority();
    let one = start(8, member(&ca, "fleet.internal"));
    let mut other = start(9, member(&ca, "fleet.internal"));
    let (id, version) = (
        CertificateId([1; 16]),
        CertificateVersion { not_before_s: 5, not_after_s: 9, digest: [2; 16] },
    );
    let answer =
        tls::Answer::Http { token: "token".into(), key_authorization: "token.thumb".into() };
    let catalogue = catalogue(Versions::from([(id, Some(version))]));
    one.set_certificates(Offer {
        catalogue: catalogue.clone(),
        challenges: (3, vec![answer.clone()]),
        pems: [(id, Pem(Arc::from(*b"key and chain")))].into(),
    });
    let mut ask = |wanted: Versions| match fetch(
        &mut other,
        address(8),
        Want::Certificates(Arc::new(wanted)),
    ) {
        Ok(Contents::Certificates(received)) => received,
        other => panic!("{other:?}"),
    };
    let received = ask(Versions::from([(id, None)]));
    assert_eq!((received.catalogue, received.challenges), (catalogue, (3, vec![answer])));
    let [(of, what, pem)] = &received.certificates[..] else {
        panic!("{:?}", received.certificates)
    };
    assert_eq!((of, what, &*pem.0), (&id, &version, &b"key and chain"[..]));
    assert_eq!(ask(Versions::from([(id, Some(version))])).certificates, []);
}

#[test]
fn a_silent_member_does_not_delay_other_fetches() {
    let ca = authority();
    let mut one = start(10, member(&ca, "fleet.internal"));
    let _other = start(11, member(&ca, "fleet.internal"));
    let silent = TcpListener::bind(address(12)).unwrap();
    assert!(one.ask(&peer(1, address(12)), Want::TicketKeys));
    let (_waiting, _) = silent.accept().unwrap();
    assert!(one.ask(&peer(2, address(11)), Want::TicketKeys));
    let fetched = wait("an answer", || one.answer());
    assert_eq!(fetched.from, StartId([2; 16]));
}
