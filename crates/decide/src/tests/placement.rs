//! The branch and the server of a request by its session.

use model::{
    Administrative, Denial, DenialCause, Forward, Health, MessageChanges, Rewrite, RouteAffinity,
    RouteRetries, RouteTimeouts, ServiceId, SessionCarrier, Split, SplitTarget,
};
use wire::http1::{HeadLimits, Parsed, RequestHead, parse_request};

use super::*;
use crate::placement::{Placement, place};
use crate::session::{Session, service_token};

const WALL: Duration = Duration::from_secs(1_800_000_000);

fn forward(carrier: SessionCarrier, weights: &[u32]) -> Forward {
    let affinity = RouteAffinity {
        scope: carrier.scope(),
        carrier,
        lifetime_max: Some(Duration::from_secs(100)),
        idle_max: None,
        key_file: None,
    };
    let branch =
        |(id, &weight): (usize, &u32)| Split { weight, ..Split::only(ServiceId(id as u32)) };
    Forward {
        to: weights.iter().enumerate().map(branch).collect(),
        rewrite: Rewrite::default(),
        mirrors: Vec::new(),
        filters: Vec::new(),
        fields: MessageChanges::default(),
        timeouts: RouteTimeouts::default(),
        retries: RouteRetries::default(),
        affinity: Some(Box::new(affinity)),
    }
}

fn cookie() -> SessionCarrier {
    SessionCarrier::Cookie { name: "s".into(), is_permanent: false }
}

fn request(fields: &str) -> RequestHead {
    let limits = HeadLimits { head_max_bytes: 8_192, target_max_bytes: 4_096, fields_max: 64 };
    let text = format!("GET / HTTP/1.1\r\nhost: a\r\n{fields}\r\n");
    let mut head = RequestHead::default();
    let parsed = parse_request(text.as_bytes(), &limits, &mut head);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{text}");
    head
}

/// Stands for a branch without a service.
const DENIED: u32 = u32::MAX;

/// Services `a` with the servers 1 and 2, and `b` with 3 and 4.
fn two() -> (Registry, Arc<Published>) {
    let registry = Registry::with_seed(0);
    registry.set_affinity_key(AffinityKey::new([5; 16]));
    let services = vec![service("a", &[1, 2], 0, 0), service("b", &[3, 4], 0, 0)];
    let published = publish(&registry, services);
    (registry, published)
}

fn value(published: &Published, forward: &Forward, (service, port): (&str, u16)) -> String {
    begun(published, forward, (service, port), WALL)
}

fn begun(
    published: &Published,
    forward: &Forward,
    (service, port): (&str, u16),
    wall: Duration,
) -> String {
    let session = Session::new(service_token(service), at(port), wall);
    published.session_key(forward.affinity.as_ref().unwrap()).seal(&session)
}

/// Which services and servers 100 requests with these fields are placed at.
fn placed(published: &Published, forward: &Forward, fields: &str) -> Vec<(u32, Option<u64>)> {
    let head = request(fields);
    let mut rng = fastrand::Rng::with_seed(3);
    let places = (0..100).map(|_| {
        let placed = place(published, forward, &head, || WALL, &mut rng);
        let Placement { branch, bound, .. } = placed;
        assert_eq!(bound.session.map(|session| session.server), bound.server);
        let service = match branch.to {
            SplitTarget::Service(id) => id.0,
            SplitTarget::Deny(_) => DENIED,
        };
        (service, bound.server)
    });
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn at(port: u16) -> u64 {
    crate::server_token(address(port))
}

#[test]
fn a_session_decides_before_the_weights() {
    let (_registry, published) = two();
    let drawn = vec![(0, None), (1, None)];
    let forward = forward(cookie(), &[1, 1]);
    let of = |of| value(&published, &forward, of);
    let [a_2, b_3, gone, other] = [("a", 2), ("b", 3), ("a", 9), ("c", 2)].map(of);
    let elsewhere =
        value(&published, &self::forward(SessionCarrier::Field("x".into()), &[1]), ("a", 2));
    for (fields, expected) in [
        (String::new(), drawn.clone()),
        (format!("cookie: s={a_2}\r\n"), vec![(0, Some(at(2)))]),
        (format!("cookie: s={b_3}\r\n"), vec![(1, Some(at(3)))]),
        (format!("cookie: x=y; s={b_3}; z\r\n"), vec![(1, Some(at(3)))]),
        (format!("cookie: S={b_3}\r\n"), drawn.clone()),
        (format!("s: {b_3}\r\n"), drawn.clone()),
        // A browser has several cookies of the name, the one with the longest path first.
        (format!("cookie: s={elsewhere}; s={a_2}\r\n"), vec![(0, Some(at(2)))]),
        (format!("cookie: s=1; s=2; s=3; s=4; s={a_2}\r\n"), drawn.clone()),
        // A server that has left; a service that is not of this route; a value of another scope; nonsense.
        (format!("cookie: s={gone}\r\n"), vec![(0, None)]),
        (format!("cookie: s={other}\r\n"), drawn.clone()),
        (format!("cookie: s={elsewhere}\r\n"), drawn.clone()),
        ("cookie: s=\r\n".into(), drawn.clone()),
        // What the cookies of services have.
        (format!("cookie: s={:016x}\r\n", at(2)), drawn.clone()),
    ] {
        assert_eq!(placed(&published, &forward, &fields), expected, "{fields}");
    }
}

/// A browser sends the cookies of all paths, the one with the longest path first.
#[test]
fn of_several_sessions_the_first_that_holds_counts() {
    let (_registry, published) = two();
    let mut forward = forward(cookie(), &[1, 1]);
    let ended =
        begun(&published, &forward, ("b", 3), WALL.saturating_sub(Duration::from_secs(100)));
    let [a_1, a_2, gone, other] =
        [("a", 1), ("a", 2), ("b", 9), ("c", 2)].map(|of| value(&published, &forward, of));
    for (case, values, expected) in [
        ("the first has ended", [&ended, &a_2], vec![(0, Some(at(2)))]),
        ("the first's service is not here", [&other, &a_2], vec![(0, Some(at(2)))]),
        ("the first's server has left", [&gone, &a_2], vec![(0, Some(at(2)))]),
        ("both hold", [&a_1, &a_2], vec![(0, Some(at(1)))]),
        ("no server", [&gone, &ended], vec![(1, None)]),
    ] {
        let fields = format!("cookie: s={}; s={}\r\n", values[0], values[1]);
        assert_eq!(placed(&published, &forward, &fields), expected, "{case}");
    }
    let denial = Denial { status: 503, cause: DenialCause::Configured };
    forward.to[1].to = SplitTarget::Deny(denial);
    let fields = format!("cookie: s={a_2}\r\n");
    assert_eq!(placed(&published, &forward, &fields), [(0, Some(at(2)))], "none is denied");
    assert_eq!(placed(&published, &forward, ""), [(0, None), (DENIED, None)]);
}

#[test]
fn a_field_carries_sessions() {
    let (_registry, published) = two();
    let forward = forward(SessionCarrier::Field("x-session".into()), &[1, 1]);
    let a_2 = value(&published, &forward, ("a", 2));
    let fields = format!("X-Session: {a_2}\r\n");
    assert_eq!(placed(&published, &forward, &fields), [(0, Some(at(2)))]);
    let fields = format!("cookie: x-session={a_2}\r\n");
    assert_eq!(placed(&published, &forward, &fields).len(), 2);
}

/// Of a split between `a` and `b`, with a session at server 2 of `a`.
#[test]
fn sessions_move_when_their_server_is_not_ready() {
    let drawn = vec![(0, None), (1, None)];
    type Change = fn(&Published);
    let down: Change = |published| {
        for one in &published.services[0].endpoints().all {
            one.state.set_health(Health::Down, NOW);
        }
    };
    let none: Change = |_| {};
    let drained: Change =
        |published| state_of_2(published).set_administrative(Administrative::Drain);
    let weightless: Change = |published| state_of_2(published).set_weight(Some(0));
    for (case, change, weights, expected) in [
        ("as ever", none, [1, 1], vec![(0, Some(at(2)))]),
        ("the service has no weight", none, [0, 1], vec![(0, Some(at(2)))]),
        ("the server has no weight", weightless, [1, 1], vec![(0, Some(at(2)))]),
        ("the server is drained", drained, [1, 1], vec![(0, None)]),
        ("drained, and no weight", drained, [0, 1], vec![(1, None)]),
        ("all servers are down", down, [1, 1], drawn.clone()),
    ] {
        let (_registry, published) = two();
        let forward = forward(cookie(), &weights);
        let fields = format!("cookie: s={}\r\n", value(&published, &forward, ("a", 2)));
        change(&published);
        published.services[0].refresh(NOW);
        assert_eq!(placed(&published, &forward, &fields), expected, "{case}");
    }
}

fn state_of_2(published: &Published) -> Arc<model::ServerState> {
    let endpoints = published.services[0].endpoints();
    Arc::clone(&endpoints.by_address(address(2)).unwrap().state)
}

#[test]
fn sessions_end_and_a_reload_keeps_them() {
    let (registry, published) = two();
    let forward = forward(cookie(), &[1, 1]);
    let head = request(&format!("cookie: s={}\r\n", value(&published, &forward, ("b", 4))));
    let mut rng = fastrand::Rng::with_seed(3);
    let mut bound = |published: &Published, age_s| {
        let wall = WALL + Duration::from_secs(age_s);
        place(published, &forward, &head, || wall, &mut rng).bound.server
    };
    assert_eq!(bound(&published, 99), Some(at(4)));
    assert_eq!(bound(&published, 100), None);
    // The services have other positions now.
    let services = vec![service("0", &[9], 0, 0), service("b", &[4, 5], 0, 0)];
    assert_eq!(bound(&publish(&registry, services), 99), Some(at(4)));
    let file = AffinityKeyFile { path: "k".into(), key: AffinityKey::new([6; 16]) };
    let services = vec![Arc::new(service("a", &[1], 0, 0)), Arc::new(service("b", &[4], 0, 0))];
    let snapshot = Snapshot { services, affinity_key_file: Some(file), ..Snapshot::empty() };
    let published = registry.publish(Arc::new(snapshot), NOW);
    assert_eq!(bound(&published, 99), None, "another key");
}

#[test]
fn one_service_in_several_branches() {
    let (_registry, published) = two();
    let mut forward = forward(cookie(), &[0, 1, 1]);
    // Such as with other changes to fields.
    forward.to[1].to = SplitTarget::Service(ServiceId(0));
    forward.to[2].to = SplitTarget::Service(ServiceId(1));
    let head = request(&format!("cookie: s={}\r\n", value(&published, &forward, ("a", 2))));
    let mut rng = fastrand::Rng::with_seed(3);
    let placed = place(&published, &forward, &head, || WALL, &mut rng);
    assert!(std::ptr::eq(placed.branch, &raw const forward.to[1]), "the one with a weight");
    assert_eq!(placed.bound.server, Some(at(2)));
    assert!(!placed.is_drawn);
}

/// Such as of two variants that a request field tells apart.
#[test]
fn a_session_keeps_its_branch_of_a_service() {
    let (_registry, published) = two();
    for (weights, expected) in [([3, 1], [150, 50]), ([0, 0], [100, 100])] {
        let mut forward = forward(cookie(), &weights);
        forward.to[1].to = SplitTarget::Service(ServiceId(0));
        let mut rng = fastrand::Rng::with_seed(3);
        let mut counts = [0_i32; 2];
        for age_s in 0..100 {
            for port in [1, 2] {
                let began = WALL.saturating_sub(Duration::from_secs(age_s));
                let value =
                    begun(&published, &forward, ("a", port), began + Duration::from_secs(1));
                let head = request(&format!("cookie: s={value}\r\n"));
                let mut branch = || {
                    let placed = place(&published, &forward, &head, || WALL, &mut rng);
                    usize::from(std::ptr::eq(placed.branch, &raw const forward.to[1]))
                };
                let first = branch();
                assert!((0..5).all(|_| branch() == first));
                counts[first] += 1;
            }
        }
        let is_near = |(count, expected): (&i32, &i32)| (count - expected).abs() < 30;
        assert!(counts.iter().zip(&expected).all(is_near), "{weights:?}: {counts:?}");
    }
}
