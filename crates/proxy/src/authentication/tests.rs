//! Verifiers across configurations, and a reload while a password is being verified, on real sockets.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use model::{AccessLog, Action, AuthenticationId, Protocol, RequestFilter};

use super::passwords::tests::{HELD, USERS};
use super::*;
use crate::{AccessSink, AccessTarget, ListenerSockets, Options};

fn basic(name: &str, users: &str) -> Authentication {
    let users = Material { path: "users".into(), bytes: users.as_bytes().into() };
    Authentication {
        name: name.into(),
        realm: name.to_owned(),
        scheme: AuthenticationScheme::Basic { users },
        identity_fields: Vec::new(),
        forwards_credentials: true,
    }
}

fn snapshot(authentications: Vec<Authentication>) -> Snapshot {
    Snapshot { authentications, ..Snapshot::empty() }
}

fn users(verifier: &Verifier) -> &Arc<Users> {
    match verifier {
        Verifier::Basic(users) => users,
        _ => panic!("it has users"),
    }
}

#[test]
fn a_file_is_parsed_once_for_all_authentications_before_workers_need_it() {
    let authentications = Authentications::new();
    let next = snapshot(vec![basic("a", USERS), basic("b", USERS), basic("c", "")]);
    authentications.prepare(&next);
    let made = |made: &Made| Weak::clone(&made.verifier);
    let before: Vec<_> = authentications.made().iter().map(made).collect();
    assert_eq!(before.len(), 3);
    // A worker that still uses another configuration does not make it forget.
    authentications.of(&snapshot(vec![basic("d", "")]));
    let verifiers = authentications.of(&next);
    for (verifier, before) in verifiers.iter().zip(before) {
        assert!(Arc::ptr_eq(verifier, &before.upgrade().unwrap()));
    }
    assert!(Arc::ptr_eq(users(&verifiers[0]), users(&verifiers[1])));
    assert!(!Arc::ptr_eq(users(&verifiers[0]), users(&verifiers[2])));
    authentications.prepare(&snapshot(Vec::new()));
    let weak: Vec<_> = verifiers.iter().map(Arc::downgrade).collect();
    drop(verifiers);
    assert!(weak.iter().all(|weak| weak.strong_count() == 0), "they end with the last worker");
    authentications.of(&Snapshot::empty());
    assert!(authentications.made().is_empty(), "what is no longer used is dropped");
}

#[test]
fn a_user_whose_verification_ends_after_its_removal_is_denied() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let front = socket.local_addr().unwrap();
    let with = |users: &str| {
        let mut snapshot = crate::isolate::tests::snapshot(Protocol::Http, front, front);
        snapshot.authentications = vec![basic("staff", users)];
        let route = Arc::make_mut(&mut snapshot.routes[0]);
        route.filters = vec![RequestFilter::Authenticate(AuthenticationId(0))];
        // The status of a request that has passed.
        route.action = Action::Deny(model::Denial::configured(418));
        Arc::new(snapshot)
    };
    let registry = Arc::new(decide::Registry::new());
    registry.publish(with(USERS), os::clock::now());
    let (access, _writer) = AccessSink::start(
        AccessTarget::open(&AccessLog::Off, None, || Box::new(std::io::sink())).unwrap(),
    )
    .unwrap();
    let proxy = crate::start(Options {
        registry: Arc::clone(&registry),
        counters: Arc::new(observe::Registry::new()),
        workers: 1,
        access,
        spans: Arc::new(|_| {}),
        may_explain: None,
        identity: crate::Identity::new(0xa117),
        challenges: Arc::default(),
        tickets: Arc::default(),
    })
    .unwrap();
    let listener = ListenerSockets { name: "front".into(), sockets: vec![socket] };
    proxy.apply(vec![listener], &[], os::clock::now());
    // The password is "secret".
    let send = |credentials: &str| {
        let mut client = TcpStream::connect(front).unwrap();
        client.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let head = format!(
            "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {credentials}\r\nConnection: close\r\n\r\n"
        );
        client.write_all(head.as_bytes()).unwrap();
        client
    };
    let status = |mut client: TcpStream| {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    let (ann, held) = ("YW5uOnNlY3JldA==", "aGVsZDpzZWNyZXQ=");
    assert_eq!(status(send(ann)), "418");
    let removed = send(held);
    HELD.wait_for(1);
    let without = USERS.lines().next().unwrap();
    registry.publish(with(without), os::clock::now());
    HELD.open();
    assert_eq!(status(removed), "401");
    assert_eq!(status(send(held)), "401");
    // Others are not affected, and a change elsewhere neither.
    assert_eq!(status(send(ann)), "418");
    proxy.begin_drain();
    proxy.finish(Duration::from_mins(1));
}

#[test]
fn a_verdict_counts_as_long_as_the_user_has_the_same_hash() {
    let before = Users::parse(USERS.as_bytes()).unwrap();
    let now = |users: &str| Verifier::Basic(Arc::new(Users::parse(users.as_bytes()).unwrap()));
    let ann = USERS.lines().next().unwrap();
    assert!(now(USERS).still_has("ann", &before));
    assert!(now(ann).still_has("ann", &before), "another user was removed");
    assert!(!now(ann).still_has("held", &before));
    assert!(!now(&ann.replace("CwQcP2", "CwQcP3")).still_has("ann", &before));
    assert!(!now("").still_has("ann", &before));
    assert!(!Verifier::Nothing.still_has("ann", &before));
}
