//! Tests that the explanation of a choice matches the state of the servers.

use model::{Administrative, Health};

use super::*;
use crate::explain::{By, Decision, SERVERS_MAX, Way, Why};

fn whys(decision: &Decision) -> Vec<&'static str> {
    decision.servers.iter().map(|one| one.why.as_str()).collect()
}

/// Explains a request, lets it choose, and returns how it got its server.
fn explained(live: &Arc<LiveService>, ask: &Ask<'_>) -> (Decision, Option<Slot>) {
    let mut decision = live.explain(ask, NOW);
    let slot = match admit_asking(live, ask) {
        Admission::Go(slot) => Some(slot),
        _ => None,
    };
    decision.settle(slot.as_ref().map(|slot| &**slot.endpoint()), Way::AtOnce, NOW);
    (decision, slot)
}

#[test]
fn each_server_that_is_passed_over_has_its_reason() {
    let mut spec = service("app", &[1, 2, 3, 4, 5, 6, 7, 8, 9], 1, 0);
    spec.zones = ZonePolicy { ready_min: 0.1, ready_recovered: 0.1 };
    spec.servers[4].weight = 0;
    spec.servers[5].backup = true;
    let (_registry, live) = one(spec);
    let endpoints = live.endpoints();
    let state = |index: usize| &endpoints.all[index].state;
    state(0).set_administrative(Administrative::Drain);
    state(1).set_administrative(Administrative::Maintenance);
    state(2).set_health(Health::Down, NOW);
    state(3).eject(NOW + Duration::from_secs(9));
    live.refresh(NOW);
    let avoid = [address(7)];
    let ask = Ask { avoid: &avoid, ..Ask::default() };
    let (decision, slot) = explained(&live, &ask);
    let chosen = slot.map(|slot| (port(&slot), slot)).unwrap();
    let others =
        if chosen.0 == 8 { ["chosen", "not_its_turn"] } else { ["not_its_turn", "chosen"] };
    let mut expected = vec![
        "draining",
        "maintenance",
        "down",
        "ejected",
        "weight_zero",
        "backup",
        "already_tried",
    ];
    expected.extend(others);
    assert_eq!(whys(&decision), expected);
    assert_eq!((decision.by, decision.chosen), (Some(By::RoundRobin), Some(address(chosen.0))));

    let (decision, _second) = explained(&live, &ask);
    assert!(whys(&decision)[7..].contains(&"full"), "{decision:?}");
}

#[test]
fn a_refusal_is_explained_too() {
    let (_registry, live) = one(service("app", &[1, 2], 1, 0));
    let _held = [go(admit(&live)), go(admit(&live))];
    let (decision, slot) = explained(&live, &Ask::default());
    assert!(slot.is_none());
    assert_eq!((decision.by, decision.chosen), (None, None));
    assert_eq!(whys(&decision), ["full", "full"]);
    for endpoint in &live.endpoints().all {
        endpoint.state.set_health(Health::Down, NOW);
    }
    live.refresh(NOW);
    let (decision, _) = explained(&live, &Ask::default());
    assert_eq!(whys(&decision), ["down", "down"]);
    assert_eq!(decision.reason.as_str(), "all_down");
}

#[test]
fn a_bound_client_goes_where_it_is_bound() {
    let (_registry, live) = one(service("app", &[1, 2, 3], 4, 0));
    let affinity = Some(crate::server_token(address(2)));
    let (decision, _slot) = explained(&live, &Ask { affinity, ..Ask::default() });
    assert_eq!(decision.by, Some(By::Affinity));
    assert_eq!(whys(&decision), ["client_bound", "chosen", "client_bound"]);
}

#[test]
fn with_many_servers_the_chosen_one_is_listed_and_the_rest_counted() {
    let ports: Vec<u16> = (1..=100).collect();
    let mut spec = service("app", &ports, 0, 0);
    spec.balance = Balance::Hash(model::HashKey { on: model::HashOn::Client, load_factor: 2.0 });
    let (_registry, live) = one(spec);
    for endpoint in live.endpoints().all.iter().take(40) {
        endpoint.state.set_health(Health::Down, NOW);
    }
    live.refresh(NOW);
    for key in 0..20 {
        let (decision, slot) = explained(&live, &Ask { key: Some(key), ..Ask::default() });
        assert_eq!(decision.servers.len(), SERVERS_MAX);
        let last = decision.servers.last().unwrap();
        assert_eq!((last.why, Some(last.address)), (Why::Chosen, decision.chosen));
        assert_eq!(last.in_flight, 1);
        assert_eq!(decision.more, [(Why::Down, 9), (Why::OtherKey, 59)]);
        drop(slot);
    }
}

#[test]
fn what_is_foreseen_takes_nothing_and_comes_true() {
    use crate::foresee::Foreseen;
    let mut rng = fastrand::Rng::with_seed(1);
    for balance in [Balance::RoundRobin, Balance::LeastConnections] {
        let mut spec = service("app", &[1, 2, 3], 2, 1);
        spec.balance = balance;
        let (_registry, live) = one(spec);
        let mut held = Vec::new();
        for step in 0..7 {
            let foresee = |rng: &mut _| match live.foresee(&Ask::default(), rng, NOW).0 {
                Foreseen::Server(endpoint) => Some(endpoint.row.address),
                Foreseen::Waits(_) => None,
                Foreseen::Refused(cause) => panic!("{cause:?}"),
            };
            let foreseen = foresee(&mut rng);
            assert_eq!(foresee(&mut rng), foreseen, "step {step}: asking takes no turn");
            assert_eq!(live.queue_length(), 0);
            match admit(&live) {
                Admission::Go(slot) => {
                    assert_eq!(Some(slot.endpoint().row.address), foreseen, "step {step}");
                    held.push(slot);
                }
                Admission::Wait(_) => assert_eq!((foreseen, step), (None, 6)),
                Admission::Refused(refusal) => panic!("{refusal:?}"),
            }
        }
        assert_eq!(held.len(), 6);
        let _waits = admit(&live);
        let (foreseen, decision) = live.foresee(&Ask::default(), &mut rng, NOW);
        assert!(matches!(foreseen, Foreseen::Refused(model::Cause::QueueFull)), "{foreseen:?}");
        assert_eq!(whys(&decision), ["full", "full", "full"]);
    }
    slots_that_no_waiting_request_can_use_are_foreseen(&mut rng);
}

/// Requests wait, but none of them for the server that has room: a new one goes there at once.
fn slots_that_no_waiting_request_can_use_are_foreseen(rng: &mut fastrand::Rng) {
    use crate::foresee::Foreseen;
    let bound_to = |port| Some(crate::server_token(address(port)));
    let mut foreseen = |live: &LiveService, ask: &Ask<'_>| match live.foresee(ask, rng, NOW) {
        (Foreseen::Server(endpoint), decision) => (endpoint.row.address.port(), decision.by),
        (other, _) => panic!("{other:?}"),
    };
    // One waits for server 2, to which it is bound; a new one is bound to server 1.
    let (_registry, live) = one(service("app", &[1, 2], 1, 9));
    let to_2 = Ask { affinity: bound_to(2), ..Ask::default() };
    let _held = go(admit_asking(&live, &to_2));
    let _waits = wait(admit_asking(&live, &to_2));
    let (waits, _) = live.foresee(&to_2, &mut fastrand::Rng::with_seed(1), NOW);
    assert!(matches!(&waits, Foreseen::Waits(Some(one)) if one.row.address == address(2)));
    let to_1 = Ask { affinity: bound_to(1), ..Ask::default() };
    assert_eq!(foreseen(&live, &to_1), (Some(1), Some(By::Affinity)));
    assert_eq!(live.queue_length(), 1);
    assert_eq!(port(&go(admit_asking(&live, &to_1))), 1);

    // One waits that avoids server 1, which has room.
    for queue_max in [1, 9] {
        let (_registry, live) = one(service("app", &[1, 2], 1, queue_max));
        let _held = go(admit_asking(&live, &to_2));
        let avoid = [address(1)];
        let _waits = wait(admit_asking(&live, &Ask { avoid: &avoid, ..Ask::default() }));
        assert_eq!(foreseen(&live, &Ask::default()), (Some(1), Some(By::Queue)));
        assert_eq!(live.queue_length(), 1);
        assert_eq!(port(&go(admit(&live))), 1);
    }
}
