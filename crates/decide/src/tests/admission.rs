//! Single-threaded admission tests: which request gets which slot.

use model::{Administrative, EndpointRow, EndpointSet, Health, WhenAllDown};

use super::*;
use crate::{Reason, Tier, server_token};

fn state(live: &LiveService, port: u16) -> Arc<model::ServerState> {
    Arc::clone(&live.endpoints().by_address(address(port)).unwrap().state)
}

fn bound_to(port: u16) -> Ask<'static> {
    Ask { affinity: Some(server_token(address(port))), ..Ask::default() }
}

#[test]
fn slots_are_counted_and_freed() {
    let (_registry, live) = one(service("a", &[1, 2], 2, 0));
    let slots: Vec<_> = (0..4).map(|_| go(admit(&live))).collect();
    assert_eq!(live.view(NOW).endpoints[0].in_flight, 2);
    let Refusal::Full { retry_after } = refused(admit(&live)) else { panic!("not full") };
    assert_eq!(retry_after, Duration::from_secs(1));
    drop(slots);
    let view = live.view(NOW);
    assert_eq!((view.endpoints[0].in_flight, view.endpoints[1].in_flight), (0, 0));
    assert_eq!((view.endpoints[0].requests, view.endpoints[1].requests), (2, 2));
}

#[test]
fn without_a_limit_slots_are_counted_too() {
    let (_registry, live) = one(service("a", &[1], 0, 5));
    let slots: Vec<_> = (0..1_000).map(|_| go(admit(&live))).collect();
    assert_eq!(live.view(NOW).endpoints[0].in_flight, 1_000);
    drop(slots);
    assert_eq!(live.view(NOW).endpoints[0].in_flight, 0);
}

#[test]
fn a_freed_slot_goes_to_the_head_and_newcomers_stand_behind() {
    let (_registry, live) = one(service("a", &[1], 1, 3));
    let slot = go(admit(&live));
    let mut waiters: Vec<_> = (0..3).map(|_| wait(admit(&live))).collect();
    assert_eq!(live.queue_length(), 3);
    assert!(matches!(refused(admit(&live)), Refusal::Full { .. }));
    drop(slot);
    // Handed over, not freed: the count never fell.
    assert_eq!((live.view(NOW).endpoints[0].in_flight, live.queue_length()), (1, 2));
    let mut newcomer = wait(admit(&live));
    for waiter in &mut waiters {
        let slot = look(waiter).unwrap();
        assert!(look(&mut newcomer).is_none());
        drop(slot);
    }
    assert!(look(&mut newcomer).is_some());
    assert_eq!(live.view(NOW).endpoints[0].in_flight, 0);
}

#[test]
fn leaving_with_an_uncollected_slot_hands_it_over() {
    let (_registry, live) = one(service("a", &[1], 1, 3));
    let slot = go(admit(&live));
    let (first, second) = (wait(admit(&live)), wait(admit(&live)));
    let mut third = wait(admit(&live));
    drop(second);
    assert_eq!(live.queue_length(), 2);
    drop(slot);
    drop(first);
    assert!(look(&mut third).is_some());
    assert_eq!((live.view(NOW).endpoints[0].in_flight, live.queue_length()), (0, 0));
}

#[test]
fn services_that_share_an_address_share_its_count_and_serve_by_age() {
    let registry = Registry::with_seed(0);
    let specs = vec![service("a", &[1, 2], 1, 5), service("b", &[2, 3], 1, 5)];
    let published = publish(&registry, specs);
    let (a, b) = (&published.services[0], &published.services[1]);
    // Fill 1, 2, 3.
    let _one = go(admit_asking(a, &bound_to(1)));
    let two = go(admit_asking(b, &bound_to(2)));
    let _three = go(admit(b));
    let mut first = wait(admit(b));
    let mut second = wait(admit(a));
    let mut third = wait(admit(b));
    drop(two);
    let slot = look(&mut first).unwrap();
    assert_eq!(port(&slot), 2);
    drop(slot);
    // The slot's endpoint is the receiver's own, although another service's request freed it.
    let slot = look(&mut second).unwrap();
    assert!(Arc::ptr_eq(&slot.state, &state(a, 2)));
    drop(slot);
    assert_eq!(port(&look(&mut third).unwrap()), 2);
}

#[test]
fn affinity_waits_for_its_server_while_others_have_room() {
    let (_registry, live) = one(service("a", &[1, 2], 1, 5));
    let one = go(admit_asking(&live, &bound_to(1)));
    let mut bound = wait(admit_asking(&live, &bound_to(1)));
    // It does not block the others.
    let two = go(admit(&live));
    assert_eq!(port(&two), 2);
    let mut any = wait(admit(&live));
    drop(two);
    assert_eq!(look(&mut any).map(|slot| port(&slot)), Some(2));
    assert!(look(&mut bound).is_none());
    drop(one);
    assert_eq!(look(&mut bound).map(|slot| port(&slot)), Some(1));
}

#[test]
fn affinity_goes_elsewhere_if_its_server_is_not_ready_or_the_queue_has_no_place() {
    let (_registry, live) = one(service("a", &[1, 2], 1, 1));
    let one = go(admit_asking(&live, &bound_to(1)));
    let mut bound = wait(admit_asking(&live, &bound_to(1)));
    assert_eq!(port(&go(admit_asking(&live, &bound_to(1)))), 2);
    // Its server goes down: it waits for any.
    state(&live, 1).set_health(Health::Down, NOW);
    live.refresh(NOW);
    assert_eq!(look(&mut bound).map(|slot| port(&slot)), Some(2));
    drop(one);
    assert_eq!(port(&go(admit_asking(&live, &bound_to(1)))), 2);
}

#[test]
fn weight_0_takes_bound_requests_only_and_a_drained_server_none() {
    let mut spec = service("a", &[1, 2], 2, 0);
    spec.servers[0].weight = 0;
    let (_registry, live) = one(spec);
    for _ in 0..4 {
        assert_eq!(port(&go(admit(&live))), 2);
    }
    assert_eq!(port(&go(admit_asking(&live, &bound_to(1)))), 1);
    state(&live, 1).set_administrative(Administrative::Drain);
    live.refresh(NOW);
    assert_eq!(port(&go(admit_asking(&live, &bound_to(1)))), 2);
}

#[test]
fn a_server_that_leaves_takes_nothing_and_is_not_missed() {
    let mut spec = service("a", &[1, 2, 3], 4, 0);
    // As soon as one of the others were missing, the backup would take requests.
    spec.servers[2].backup = true;
    spec.zones.ready_min = 0.9;
    let (_registry, live) = one(spec);
    assert!(state(&live, 1).set_leaving(true));
    live.refresh(NOW);
    for _ in 0..4 {
        assert_eq!(port(&go(admit_asking(&live, &bound_to(1)))), 2);
    }
    assert!(state(&live, 1).set_leaving(false));
    live.refresh(NOW);
    assert_eq!(port(&go(admit_asking(&live, &bound_to(1)))), 1);
}

#[test]
fn tried_servers_are_the_last_resort() {
    let (_registry, live) = one(service("a", &[1, 2, 3], 1, 1));
    let tried = [address(1), address(2)];
    let again = Ask { avoid: &tried, ..Ask::default() };
    let three = go(admit_asking(&live, &again));
    assert_eq!(port(&three), 3);
    // The third is full, the tried ones are not: it waits for the third,
    let mut waiter = wait(admit_asking(&live, &again));
    let one = go(admit(&live));
    assert_ne!(port(&one), 3);
    drop(one);
    assert!(look(&mut waiter).is_none());
    // and if there is no place to wait, it takes a tried one.
    assert_ne!(port(&go(admit_asking(&live, &again))), 3);
    drop(three);
    assert_eq!(look(&mut waiter).map(|slot| port(&slot)), Some(3));
    let everyone = [address(1), address(2), address(3)];
    go(admit_asking(&live, &Ask { avoid: &everyone, ..Ask::default() }));
}

#[test]
fn a_waiter_that_avoids_a_server_takes_it_when_the_others_are_gone() {
    let (_registry, live) = one(service("a", &[1, 2], 1, 1));
    let tried = [address(1)];
    let _two = go(admit_asking(&live, &bound_to(2)));
    let mut waiter = wait(admit_asking(&live, &Ask { avoid: &tried, ..Ask::default() }));
    assert!(look(&mut waiter).is_none());
    state(&live, 2).set_health(Health::Down, NOW);
    live.refresh(NOW);
    assert_eq!(look(&mut waiter).map(|slot| port(&slot)), Some(1));
}

#[test]
fn zones_fail_over_and_back_and_waiters_follow() {
    let mut spec = service("a", &[1, 2], 1, 5);
    spec.servers[0].zone = Some("here".into());
    spec.servers[1].zone = Some("there".into());
    let registry = Registry::with_seed(0);
    let snapshot =
        Snapshot { zone: Some("here".into()), services: vec![spec.into()], ..Snapshot::empty() };
    let live = Arc::clone(&registry.publish(Arc::new(snapshot), NOW).services[0]);
    let one = go(admit(&live));
    let mut waiter = wait(admit(&live));
    state(&live, 1).set_health(Health::Down, NOW);
    let change = live.refresh(NOW).unwrap();
    assert_eq!((change.from, change.to), (Tier::OwnZone, Tier::AllZones));
    assert_eq!((change.reason, change.eligible, change.total), (Reason::OwnZoneDown, 1, 2));
    assert_eq!(look(&mut waiter).map(|slot| port(&slot)), Some(2));
    assert_eq!(live.refresh(NOW), None);
    drop(one);
    state(&live, 1).set_health(Health::Up, NOW);
    assert_eq!(live.refresh(NOW).map(|change| change.to), Some(Tier::OwnZone));
    assert_eq!(port(&go(admit(&live))), 1);
}

#[test]
fn when_all_are_down() {
    let mut spec = service("a", &[1], 1, 5);
    let (registry, live) = one(spec.clone());
    state(&live, 1).set_health(Health::Down, NOW);
    live.refresh(NOW);
    assert_eq!(refused(admit(&live)), Refusal::NoServerReady);
    spec.when_all_down = WhenAllDown::TryAll;
    publish(&registry, vec![spec]);
    assert_eq!(live.endpoints().tier, Tier::TryAll);
    go(admit(&live));
}

#[test]
fn a_server_that_came_back_grows_to_its_share() {
    let mut spec = service("a", &[1, 2], 0, 0);
    spec.slow_start = Some(Duration::from_secs(10));
    let (_registry, live) = one(spec);
    assert_eq!(live.refresh_due(), None);
    state(&live, 1).set_health(Health::Down, NOW);
    live.refresh(NOW);
    state(&live, 1).set_health(Health::Up, NOW);
    live.refresh(NOW);
    let mut at = NOW;
    let mut shares = Vec::new();
    loop {
        let mut rng = fastrand::Rng::with_seed(1);
        let first = (0..1_000)
            .filter(|_| port(&go(live.admit(&Ask::default(), &mut rng, at))) == 1)
            .count();
        shares.push(first);
        let Some(due) = live.refresh_due() else { break };
        at = due;
        live.refresh(at);
    }
    assert_eq!(at, NOW + Duration::from_secs(10));
    // A tenth against a whole, up to half.
    assert!((85..=97).contains(&shares[0]) && shares.last() == Some(&500), "{shares:?}");
    assert!(shares.is_sorted(), "{shares:?}");
}

#[test]
fn discovery_keeps_what_is_known_of_addresses_that_stay() {
    let (_registry, live) = one(service("a", &[1, 2], 1, 5));
    let kept = state(&live, 2);
    kept.set_health(Health::Down, NOW);
    live.refresh(NOW);
    let _one = go(admit(&live));
    let mut waiter = wait(admit(&live));
    let row = |port| EndpointRow {
        name: "s".into(),
        address: address(port),
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
        listing: None,
    };
    live.set_endpoints(EndpointSet { rows: vec![row(2), row(3), row(3)] }, NOW);
    assert_eq!(live.endpoints().all.len(), 2);
    assert!(Arc::ptr_eq(&kept, &state(&live, 2)));
    // The new server's slots go to the waiting requests.
    assert_eq!(look(&mut waiter).map(|slot| port(&slot)), Some(3));
    live.set_endpoints(EndpointSet::default(), NOW);
    assert_eq!(refused(admit(&live)), Refusal::NoServerReady);
}

#[test]
fn retry_after_follows_the_drain_rate() {
    let (_registry, live) = one(service("a", &[1], 1, 100));
    let mut rng = fastrand::Rng::with_seed(1);
    let mut queue = std::collections::VecDeque::new();
    let mut running = go(live.admit(&Ask::default(), &mut rng, NOW));
    let mut last = NOW;
    // Ten a second are served, more arrive.
    for step in 0..200 {
        last = NOW + Duration::from_millis(step * 50);
        match live.admit(&Ask::default(), &mut rng, last) {
            Admission::Wait(waiter) => queue.push_back(waiter),
            other => assert!(matches!(other, Admission::Refused(Refusal::Full { .. }))),
        }
        if step % 2 == 1 {
            drop(running);
            running = look(&mut queue.pop_front().unwrap()).unwrap();
        }
    }
    let rate = live.drain_rate(last);
    assert!((9.0..=11.0).contains(&rate), "{rate}");
    let expected = ((queue.len() as f64 + 1.0) / rate).ceil() as u64;
    assert_eq!(queue[0].retry_after(last), Duration::from_secs(expected));
}
