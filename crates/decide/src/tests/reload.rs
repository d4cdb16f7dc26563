//! Tests of what a new configuration keeps and what it changes.

use model::{EndpointRow, EndpointSet, Health};

use super::*;

#[test]
fn services_keep_their_identity_their_states_and_what_is_in_flight() {
    let registry = Registry::with_seed(0);
    let before = publish(&registry, vec![service("a", &[1, 2], 2, 5), service("b", &[3], 2, 5)]);
    let a = Arc::clone(&before.services[0]);
    let known = Arc::clone(&a.endpoints().all[1].state);
    known.set_health(Health::Down, NOW);
    a.refresh(NOW);
    let slot = go(admit(&a));
    let mut spec = service("a", &[2, 1], 2, 7);
    spec.servers[1].weight = 5;
    let after = publish(&registry, vec![spec]);
    assert_eq!((before.generation, after.generation), (1, 2));
    assert!(Arc::ptr_eq(&a, &after.services[0]));
    assert!(Arc::ptr_eq(&known, &a.endpoints().all[0].state));
    let view = a.view(NOW);
    assert_eq!((view.endpoints[1].in_flight, view.endpoints[1].weight), (1, 5));
    assert_eq!(view.queue_length_max, 7);
    drop(slot);
    assert_eq!(a.view(NOW).endpoints[1].in_flight, 0);
}

#[test]
fn an_unchanged_service_is_left_alone() {
    let registry = Registry::with_seed(0);
    let specs = |max| vec![service("a", &[1], 2, 5), service("b", &[2], max, 5)];
    let before = publish(&registry, specs(2));
    let endpoints = before.services.iter().map(|live| live.endpoints()).collect::<Vec<_>>();
    let after = publish(&registry, specs(3));
    assert!(Arc::ptr_eq(&endpoints[0], &after.services[0].endpoints()));
    assert!(!Arc::ptr_eq(&endpoints[1], &after.services[1].endpoints()));
    assert_eq!(after.services[1].view(NOW).endpoints[0].in_flight_max, 3);
    // Another zone concerns all of them.
    let mut snapshot = Snapshot::clone(&after.snapshot);
    snapshot.zone = Some("here".into());
    let zoned = registry.publish(Arc::new(snapshot), NOW);
    assert!(!Arc::ptr_eq(&endpoints[0], &zoned.services[0].endpoints()));
}

#[test]
fn a_weight_set_at_run_time_overrides_the_configured_one_until_reset() {
    let registry = Registry::with_seed(0);
    let a = Arc::clone(&publish(&registry, vec![service("a", &[1, 2], 0, 0)]).services[0]);
    let state = Arc::clone(&a.endpoints().all[0].state);
    let given = |live: &Arc<LiveService>| {
        let slots: Vec<Slot> = (0..8).map(|_| go(admit(live))).collect();
        slots.iter().filter(|slot| port(slot) == 1).count()
    };
    assert_eq!(given(&a), 4);
    state.set_weight(Some(3));
    a.refresh(NOW);
    assert_eq!(given(&a), 6);
    // None at all, even across a reload that changes the configured weight.
    state.set_weight(Some(0));
    let mut spec = service("a", &[1, 2], 0, 0);
    spec.servers[0].weight = 9;
    publish(&registry, vec![spec]);
    assert_eq!(given(&a), 0);
    let view = a.view(NOW);
    assert_eq!((view.endpoints[0].weight, view.endpoints[0].weight_configured), (0, 9));
    state.set_weight(None);
    a.refresh(NOW);
    assert!(given(&a) >= 7);
}

#[test]
fn a_raised_limit_lets_waiters_through_and_a_lowered_one_waits_for_the_surplus_to_end() {
    let (registry, live) = one(service("a", &[1], 1, 9));
    let first = go(admit(&live));
    let mut second = wait(admit(&live));
    let mut third = wait(admit(&live));
    publish(&registry, vec![service("a", &[1], 2, 9)]);
    let second = look(&mut second).unwrap();
    assert!(look(&mut third).is_none());
    publish(&registry, vec![service("a", &[1], 1, 9)]);
    drop(first);
    assert!(look(&mut third).is_none());
    assert_eq!(live.view(NOW).endpoints[0].in_flight, 1);
    drop(second);
    assert!(look(&mut third).is_some());
}

#[test]
fn without_a_limit_any_more_all_go() {
    let (registry, live) = one(service("a", &[1], 1, 9));
    let _first = go(admit(&live));
    let mut waiters: Vec<_> = (0..9).map(|_| wait(admit(&live))).collect();
    publish(&registry, vec![service("a", &[1], 0, 9)]);
    let slots: Vec<_> = waiters.iter_mut().map(|waiter| look(waiter).unwrap()).collect();
    assert_eq!(live.view(NOW).endpoints[0].in_flight, 10);
    drop(slots);
}

#[test]
fn a_retired_service_still_serves_its_queue_but_its_limit_no_longer_counts() {
    let registry = Registry::with_seed(0);
    let both = vec![service("a", &[1], 1, 9), service("b", &[1], 0, 9)];
    let before = publish(&registry, both);
    let slot = go(admit(&before.services[0]));
    let mut left = wait(admit(&before.services[0]));
    let mut stays = wait(admit(&before.services[1]));
    publish(&registry, vec![service("b", &[1], 2, 9)]);
    assert!(look(&mut left).is_some());
    assert!(look(&mut stays).is_some());
    drop(slot);
    let again = publish(&registry, vec![service("b", &[1], 2, 9), service("a", &[1], 2, 9)]);
    assert!(!Arc::ptr_eq(&before.services[0], &again.services[1]));
    assert_eq!(again.services[1].view(NOW).endpoints[0].in_flight, 0);
}

#[test]
fn the_smallest_limit_of_many_services_at_an_address_counts() {
    let registry = Registry::with_seed(0);
    let names: Vec<String> = (0..300).map(|n| format!("s{n}")).collect();
    let at = |limits: &dyn Fn(usize) -> u32| {
        let services = names.iter().enumerate();
        services.map(|(n, name)| service(name, &[1], limits(n), 9)).collect::<Vec<_>>()
    };
    let max = |published: &Published| published.services[0].endpoints().all[0].slots.max();
    let published = publish(&registry, at(&|_| 0));
    assert_eq!(max(&published), 0, "no limit");
    // The last to come, one that changes, one that leaves, all but one that leave.
    let mut services = at(&|_| 0);
    services.push(service("last", &[1], 4, 9));
    assert_eq!(max(&publish(&registry, services.clone())), 4);
    assert_eq!(max(&publish(&registry, at(&|n| if n == 150 { 7 } else { 0 }))), 7);
    assert_eq!(max(&publish(&registry, at(&|n| if n == 150 { 9 } else { 8 }))), 8);
    let published = publish(&registry, services[150..151].to_vec());
    assert_eq!(max(&published), 0);
    assert_eq!(max(&publish(&registry, at(&|n| n as u32 + 3))), 3);
    // A request at an address is counted once, whichever service it came by.
    let published = publish(&registry, at(&|n| if n == 299 { 2 } else { 0 }));
    let slots = [0, 150].map(|n| go(admit(&published.services[n])));
    let mut waits = wait(admit(&published.services[299]));
    drop(slots);
    assert!(look(&mut waits).is_some());
}

#[test]
fn servers_found_by_name_outlive_a_reload_with_the_new_settings() {
    let mut spec = service("a", &[1], 1, 0);
    let target = ServerTarget::Name { host: "s.internal".into(), port: 80 };
    spec.servers.push(ServerSpec {
        target,
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
    });
    let (registry, live) = one(spec.clone());
    assert_eq!(live.endpoints().all.len(), 1);
    let row = |name: &str, port| EndpointRow {
        name: name.into(),
        address: address(port),
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
        listing: None,
    };
    let rows = vec![row("10.0.0.1:1", 1), row("s.internal:80", 8), row("s.internal:80", 9)];
    live.set_endpoints(EndpointSet { rows }, NOW);
    let slot = go(admit(&live));
    spec.servers[1].weight = 3;
    spec.servers.remove(0);
    publish(&registry, vec![spec]);
    let endpoints = live.endpoints();
    let rows: Vec<_> =
        endpoints.all.iter().map(|e| (e.row.address.port().unwrap(), e.row.weight)).collect();
    assert_eq!(rows, [(8, 3), (9, 3)]);
    drop(slot);
    let empty = publish(&registry, vec![]);
    assert_eq!((empty.services.len(), registry.current().generation), (0, 3));
}

#[test]
fn a_servers_own_limit_counts_instead_of_the_services() {
    let registry = Registry::with_seed(0);
    let max = |published: &Published, service: usize| {
        let view = published.services[service].view(NOW);
        view.endpoints.iter().map(|endpoint| endpoint.in_flight_max).collect::<Vec<_>>()
    };
    let mut spec = service("a", &[1, 2], 3, 5);
    spec.servers[0].in_flight_max = Some(1);
    let published = publish(&registry, vec![spec.clone(), service("b", &[1], 0, 0)]);
    assert_eq!(max(&published, 0), [1, 3]);
    // The limit belongs to the address.
    assert_eq!(max(&published, 1), [1]);
    let slots: Vec<Slot> = (0..4).map(|_| go(admit(&published.services[0]))).collect();
    let mut waits = wait(admit(&published.services[0]));
    assert!(look(&mut waits).is_none());
    let mut at_once: Vec<u16> = slots.iter().map(port).collect();
    at_once.sort_unstable();
    assert_eq!(at_once, [1, 2, 2, 2]);
    // A reload that raises one server's limit serves the request that waits.
    spec.servers[0].in_flight_max = Some(2);
    let published = publish(&registry, vec![spec.clone(), service("b", &[1], 0, 0)]);
    assert_eq!(max(&published, 0), [2, 3]);
    assert_eq!(look(&mut waits).as_ref().map(port), Some(1));
    // Without its own it has the service's again; if no service is left that limits it, none.
    spec.servers[0].in_flight_max = None;
    assert_eq!(max(&publish(&registry, vec![spec, service("b", &[1], 0, 0)]), 1), [3]);
    assert_eq!(max(&publish(&registry, vec![service("b", &[1], 0, 0)]), 0), [0]);
    drop(slots);
}

#[test]
fn limits_that_change_places_in_a_reload_are_never_both_absent() {
    let registry = Registry::with_seed(0);
    let limited = |name: &str, own: Option<u32>| {
        let mut spec = service(name, &[1], 0, 0);
        spec.servers[0].in_flight_max = own;
        spec
    };
    let published = publish(&registry, vec![limited("a", Some(2)), limited("b", None)]);
    let slots: Vec<Slot> = (0..2).map(|_| go(admit(&published.services[0]))).collect();
    let after = publish(&registry, vec![limited("a", None), limited("b", Some(2))]);
    assert_eq!(after.services[0].view(NOW).endpoints[0].in_flight_max, 2);
    assert!(matches!(admit(&after.services[0]), Admission::Refused { .. }));
    drop(slots);
}

#[test]
fn every_address_of_a_name_has_the_limit_of_its_server() {
    let mut spec = service("a", &[1], 4, 0);
    let target = ServerTarget::Name { host: "s.internal".into(), port: 80 };
    spec.servers.push(ServerSpec {
        target,
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: Some(2),
        version: None,
    });
    let (registry, live) = one(spec.clone());
    let row = |name: &str, port, in_flight_max| EndpointRow {
        name: name.into(),
        address: address(port),
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max,
        version: None,
        listing: None,
    };
    let found = |max| row("s.internal:80", 8, max);
    let rows = vec![row("10.0.0.1:1", 1, None), found(Some(2))];
    live.set_endpoints(EndpointSet { rows }, NOW);
    let max = |live: &Arc<LiveService>| {
        let view = live.view(NOW);
        view.endpoints.iter().map(|endpoint| endpoint.in_flight_max).collect::<Vec<_>>()
    };
    assert_eq!(max(&live), [4, 2]);
    // A reload keeps what was resolved, and applies its new limit; an address that is found later
    // has it, too.
    spec.servers[1].in_flight_max = Some(3);
    publish(&registry, vec![spec]);
    assert_eq!(max(&live), [4, 3]);
    let rows = vec![row("10.0.0.1:1", 1, None), found(Some(3)), row("s.internal:80", 9, Some(3))];
    live.set_endpoints(EndpointSet { rows }, NOW);
    assert_eq!(max(&live), [4, 3, 3]);
}

#[test]
fn places_of_a_later_reading_stay_when_certificates_are_renewed() {
    let read = |first_line: usize| {
        let file: Arc<str> = "weir.toml".into();
        let route = |line: usize| model::Route {
            name: "r".into(),
            matches: model::RouteMatch::any(),
            action: model::Action::Deny(model::Denial::configured(403)),
            filters: Vec::new(),
            maintenance: None,
            error_pages: Vec::new(),
            written_at: model::WrittenAt::new(Arc::clone(&file), line),
        };
        let routes = [route(first_line), route(first_line + 2)].map(Arc::new).to_vec();
        Snapshot { routes, ..Snapshot::empty() }
    };
    let place = |published: &Published, index: usize| {
        published.written_at(index).map(|place| place.to_string())
    };
    let registry = Registry::with_seed(0);
    let first = registry.publish(Arc::new(read(1)), NOW);
    assert_eq!(place(&first, 1).as_deref(), Some("weir.toml:3"));
    assert_eq!(place(&first, 2), None);
    first.note_reread(&read(5));
    assert_eq!(place(&first, 1).as_deref(), Some("weir.toml:7"));
    // A copy, as with new certificates.
    let renewed = registry.publish(Arc::new(Snapshot::clone(&first.snapshot)), NOW);
    assert_eq!(place(&renewed, 0).as_deref(), Some("weir.toml:5"));
    // Another reading, even one with the lines of the first.
    let next = registry.publish(Arc::new(read(1)), NOW);
    assert_eq!(place(&next, 0).as_deref(), Some("weir.toml:1"));
}
