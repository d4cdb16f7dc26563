//! Tests of limits that the balancers of a fleet share: what the control loop allows, and when it is
//! notified.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use model::{EndpointRow, EndpointSet, UnixPath};

use super::*;
use crate::{Slots, Usage, server_token};

fn slots(live: &LiveService, port: u16) -> Arc<Slots> {
    Arc::clone(&live.endpoints().by_address(address(port)).unwrap().slots)
}

fn usage(slots: &Slots) -> (u32, u32, u32) {
    let Usage { allowed, in_flight, waiting } = slots.usage();
    (allowed, in_flight, waiting)
}

/// Returns how often the control loop has been told.
fn listen(registry: &Registry) -> Arc<AtomicU32> {
    let told = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&told);
    registry.set_news(Arc::new(move || {
        counted.fetch_add(1, SeqCst);
    }));
    told
}

#[test]
fn nothing_is_allowed_until_the_control_loop_says_so_and_then_waiting_requests_go() {
    let (_registry, live) = one(fleet("a", &[1], 4, 9));
    let slots = slots(&live, 1);
    assert!(slots.is_shared());
    let mut waiters: Vec<_> = (0..3).map(|_| wait(admit(&live))).collect();
    assert_eq!(usage(&slots), (0, 0, 3));
    assert_eq!(slots.allow(2), 0, "the number before they go");
    assert_eq!(usage(&slots), (2, 2, 1));
    let running: Vec<Slot> = waiters.iter_mut().filter_map(look).collect();
    assert_eq!(running.len(), 2);
    assert_eq!(slots.allow(9), 2);
    assert_eq!(usage(&slots), (4, 3, 0), "at most the configured limit");
    let running = (running, look(&mut waiters[2]).unwrap(), go(admit(&live)));
    wait(admit(&live));
    drop(running);
    assert_eq!((usage(&slots), slots.max()), ((4, 0, 0), 4));
}

#[test]
fn a_number_below_what_is_in_flight_is_reached_as_requests_end() {
    let (_registry, live) = one(fleet("a", &[1], 4, 9));
    let slots = slots(&live, 1);
    slots.allow(3);
    let mut running: Vec<Slot> = (0..3).map(|_| go(admit(&live))).collect();
    let mut waits = wait(admit(&live));
    assert_eq!(slots.allow(1), 3);
    for in_flight in [2, 1] {
        running.pop();
        assert!(look(&mut waits).is_none());
        assert_eq!(usage(&slots), (1, in_flight, 1));
    }
    // Now it is this balancer's again, and is handed over.
    running.pop();
    assert!(look(&mut waits).is_some());
    assert_eq!(usage(&slots), (1, 0, 0));
}

#[test]
fn sharing_begins_and_ends_with_a_configuration() {
    let (registry, live) = one(service("a", &[1], 2, 9));
    let slots = slots(&live, 1);
    assert_eq!((usage(&slots), slots.is_shared()), ((2, 0, 0), false));
    assert_eq!(slots.allow(1), 0);
    assert_eq!(usage(&slots).0, 2, "not shared, so the control loop has no say");
    assert!(registry.shared_slots().is_empty());
    let first = go(admit(&live));
    publish(&registry, vec![fleet("a", &[1], 2, 9)]);
    assert_eq!((usage(&slots), slots.is_shared()), ((0, 1, 0), true));
    let mut waits = wait(admit(&live));
    slots.allow(1);
    assert!(look(&mut waits).is_none());
    // Another setting leaves what is allowed, unless the limit falls below it.
    publish(&registry, vec![fleet("a", &[1], 5, 9)]);
    assert_eq!(usage(&slots), (1, 1, 1));
    publish(&registry, vec![service("a", &[1], 2, 9)]);
    assert_eq!((usage(&slots), slots.is_shared()), ((2, 2, 0), false));
    drop((first, look(&mut waits).unwrap()));
    publish(&registry, vec![service("a", &[1], 0, 9)]);
    assert_eq!(usage(&slots), (u32::MAX, 0, 0));
    publish(&registry, vec![fleet("a", &[1], 5, 9)]);
    slots.allow(5);
    publish(&registry, vec![fleet("a", &[1], 3, 9)]);
    assert_eq!(usage(&slots), (3, 0, 0));
}

#[test]
fn an_address_is_shared_if_any_service_says_so_and_the_smallest_limit_counts() {
    let registry = Registry::with_seed(0);
    let published = publish(&registry, vec![fleet("a", &[1], 4, 9), service("b", &[1], 2, 9)]);
    let slots = slots(&published.services[0], 1);
    assert_eq!((slots.max(), slots.is_shared()), (2, true));
    slots.allow(4);
    assert_eq!(usage(&slots).0, 2);
    // Of the service that says so, the limit may be the larger one or the server's own; without a
    // limit there is nothing to share.
    let mut own = fleet("c", &[1], 0, 9);
    own.servers[0].in_flight_max = Some(3);
    publish(&registry, vec![service("b", &[1], 2, 9), own]);
    assert_eq!((slots.max(), slots.is_shared()), (2, true));
    publish(&registry, vec![service("b", &[1], 2, 9), fleet("c", &[1], 0, 9)]);
    assert_eq!((slots.max(), slots.is_shared()), (2, false));
    publish(&registry, vec![service("b", &[1], 0, 9), fleet("c", &[1], 0, 9)]);
    assert_eq!((slots.max(), usage(&slots).0, slots.is_shared()), (0, u32::MAX, false));
}

#[test]
fn what_belongs_to_one_machine_is_not_shared() {
    let mut spec = fleet("a", &[1], 2, 9);
    let unix = UnixPath::new("/run/app.sock").unwrap();
    let local = ["127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "169.254.0.1:80"];
    let local = local.map(|text| text.parse::<Address>().unwrap());
    for address in [Address::Unix(unix)].into_iter().chain(local) {
        let target = ServerTarget::Address(address);
        spec.servers.push(ServerSpec { target, ..server(1) });
    }
    let (registry, live) = one(spec);
    let shared = live.endpoints().all.iter().map(|one| one.slots.is_shared()).collect::<Vec<_>>();
    assert_eq!(shared, [true, false, false, false, false, false]);
    let listed = registry.shared_slots();
    assert_eq!(listed.iter().map(|slots| slots.address()).collect::<Vec<_>>(), [address(1)]);
    assert_eq!(live.endpoints().all[1].slots.usage().allowed, 2);
}

#[test]
fn those_that_wait_count_where_they_could_go() {
    let (_registry, live) = one(fleet("a", &[1, 2, 3], 2, 9));
    let bound = Ask { affinity: Some(server_token(address(1))), ..Ask::default() };
    let _waiters = [wait(admit_asking(&live, &bound)), wait(admit(&live))];
    let waiting = |port| slots(&live, port).usage().waiting;
    assert_eq!([1, 2, 3].map(waiting), [2, 1, 1]);
    let state = Arc::clone(&live.endpoints().by_address(address(2)).unwrap().state);
    state.set_health(model::Health::Down, NOW);
    live.refresh(NOW);
    assert_eq!([1, 2, 3].map(waiting), [2, 0, 1]);
}

#[test]
fn news_is_told_once_until_it_is_taken() {
    let (registry, live) = one(fleet("a", &[1], 4, 1));
    let slots = slots(&live, 1);
    let waits = wait(admit(&live));
    let told = listen(&registry);
    let news = || (told.load(SeqCst), registry.take_news());
    assert_eq!(news(), (1, true), "what was there before");
    refused(admit(&live));
    refused(admit(&live));
    assert_eq!(news(), (2, true));
    assert_eq!(news(), (2, false));
    drop(waits);
    slots.allow(2);
    let running = (go(admit(&live)), go(admit(&live)));
    assert_eq!(news(), (2, false), "there was room");
    let waits = wait(admit(&live));
    assert_eq!(news(), (3, true));
    drop(waits);
    // A freed slot is news only to a control loop that waits for it.
    slots.allow(1);
    drop(running.0);
    assert_eq!(news(), (4, true));
    drop(running.1);
    assert_eq!(news(), (4, false));
}

#[test]
fn there_is_no_news_of_a_service_with_a_limit_of_its_own() {
    let (registry, live) = one(service("a", &[1], 2, 1));
    let told = listen(&registry);
    let running = [go(admit(&live)), go(admit(&live))];
    let waits = wait(admit(&live));
    refused(admit(&live));
    publish(&registry, vec![service("a", &[1], 1, 1)]);
    drop((running, waits));
    assert_eq!((told.load(SeqCst), registry.take_news()), (0, false));
}

#[test]
fn an_address_that_left_is_listed_until_its_last_request_ends_and_comes_back_with_nothing() {
    let (registry, live) = one(fleet("a", &[1, 2], 4, 9));
    let gone = slots(&live, 2);
    let listed = |port| registry.shared_slots().iter().any(|s| s.address() == address(port));
    gone.allow(3);
    let running = go(admit(&live));
    let told = listen(&registry);
    publish(&registry, vec![fleet("a", &[1], 4, 9)]);
    assert_eq!((usage(&gone), listed(2)), ((0, 1, 0), true));
    assert_eq!(gone.allow(3), 1);
    assert_eq!(usage(&gone).0, 0, "a worker that still knows it takes nothing");
    drop(running);
    assert_eq!((told.load(SeqCst), listed(1), listed(2)), (1, true, false));
    // It stays the same while something holds it.
    let row = |port| EndpointRow::of(&server(port), "s".into(), address(port), None);
    live.set_endpoints(EndpointSet { rows: vec![row(1), row(2)] }, NOW);
    assert!(Arc::ptr_eq(&gone, &slots(&live, 2)) && listed(2));
    assert_eq!(usage(&gone), (0, 0, 0));
    // A whole service that leaves: its queue is still served.
    gone.allow(1);
    let running = go(admit(&live));
    let mut waits = wait(admit(&live));
    publish(&registry, vec![]);
    assert!(listed(2));
    drop(running);
    assert!(look(&mut waits).is_some());
    drop((waits, live));
    assert_eq!((listed(1), listed(2)), (false, false));
    // What was allowed then is not allowed any more.
    publish(&registry, vec![fleet("b", &[2], 4, 9)]);
    assert_eq!((usage(&gone), listed(2)), ((0, 0, 0), true));
}

#[test]
fn few_waiting_requests_ask_for_slots_of_few_of_many_servers() {
    let ports: Vec<u16> = (1..=100).collect();
    let (_registry, live) = one(fleet("a", &ports, 4, 99));
    let asked = || (1..=100).filter(|port| usage(&slots(&live, *port)).2 > 0).count();
    assert_eq!(asked(), 0);
    let mut waiters = vec![wait(admit(&live))];
    assert_eq!(asked(), 8);
    waiters.extend((0..19).map(|_| wait(admit(&live))));
    assert_eq!(asked(), 40);
    waiters.extend((0..40).map(|_| wait(admit(&live))));
    assert_eq!(asked(), 100);
}
