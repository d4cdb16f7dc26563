//! Tests of what is opened, what is kept, and which errors are reported.

use std::num::NonZeroU16;

use model::{Networks, Protocol};

use super::*;

/// A configuration with an HTTP listener on `public` and the admin API on `admin`.
fn snapshot(public: SocketAddr, admin: SocketAddr) -> Snapshot {
    let text = format!(
        "connections_max = 1000\n\
         admin = {{ address = \"{admin}\" }}\n\
         listener = [{{ name = \"public\", address = \"{public}\", backlog = 4000000 }}]\n\
         route = [{{ service = \"s\" }}]\n\
         service.s = {{ server = [{{ address = \"127.0.0.1:5999\" }}] }}\n"
    );
    match config::check(&text, "test.toml", &()) {
        Ok(checked) => checked.snapshot,
        Err(report) => panic!("{}", report.render(false)),
    }
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn ports(group: &Group) -> Vec<u16> {
    group.sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
}

fn connect(to: Address) -> io::Result<std::net::TcpStream> {
    std::net::TcpStream::connect(to.ip().unwrap())
}

/// Opens listeners on free ports, by name.
fn opened(names: &[&str]) -> (Sockets, Snapshot) {
    let mut snapshot = snapshot(address(1), address(2));
    snapshot.admin = None;
    snapshot.workers = NonZeroU16::new(2);
    let first = snapshot.listeners.remove(0);
    for &name in names {
        let address = unused().into();
        snapshot.listeners.push(Listener { name: name.into(), address, ..first.clone() });
    }
    let (sockets, _) = open(&snapshot, Handed::default()).unwrap();
    (sockets, snapshot)
}

fn names(change: &Change) -> (Vec<&str>, Vec<&str>) {
    let added = change.added.iter().map(|added| &*added.name).collect();
    (added, change.removed.iter().map(|removed| &*removed.name).collect())
}

/// A listener on an address of loopback that is this process's own: a port of 127.0.0.1 that was
/// released may be the next one that the kernel gives to a client of another test.
fn taken() -> (TcpListener, SocketAddr) {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let own = SocketAddr::from(([127, 128 | high, middle, low], 0));
    let listener = TcpListener::bind(own).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn unused() -> SocketAddr {
    taken().1
}

#[test]
fn every_worker_has_a_socket_of_every_listener() {
    let mut snapshot = snapshot(address(1), address(2));
    snapshot.listeners[0].address = address(0).into();
    let admin_address = Address::from(address(0));
    snapshot.admin = Some(Admin { address: admin_address, token_file: None });
    snapshot.workers = NonZeroU16::new(3);
    let (mut sockets, doors) = open(&snapshot, Handed::default()).unwrap();
    let ports = ports(&sockets.groups[0]);
    assert_eq!(ports, [ports[0]; 3]);
    assert!(sockets.admin().is_some() && doors.admin.is_some());
    assert_eq!(sockets.for_proxy(3).unwrap()[0].sockets.len(), 3);
    let small = sockets.shortfalls.iter().find_map(|shortfall| match shortfall {
        Shortfall::Backlog { asked, granted, .. } => Some((*asked, *granted)),
        Shortfall::Files { .. } => None,
    });
    assert_eq!(small, Some((4_000_000, os::listen::somaxconn())));
}

#[test]
fn every_address_in_use_is_reported() {
    let ((_held, public), (_held_too, admin)) = (taken(), taken());
    let OpenError { lines, in_use, .. } =
        open(&snapshot(public, admin), Handed::default()).unwrap_err();
    assert_eq!(in_use, [public, admin]);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("listener \"public\": cannot listen on"), "{lines:?}");
    assert!(lines[1].starts_with("admin: cannot listen on"), "{lines:?}");
    assert!(lines.iter().all(|line| line.lines().count() == 1));
}

#[test]
fn unchanged_listeners_keep_their_sockets_and_changes_are_reported() {
    let (mut sockets, mut next) = opened(&["one", "two", "three"]);
    let before: Vec<_> = sockets.groups().iter().map(ports).collect();
    // Settings that the next request uses; another order.
    next.listeners[0].connections_max = 7;
    next.listeners[0].backlog = Some(9);
    next.listeners.reverse();
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(names(&change), (vec![], vec![]));
    sockets.adopt(change);
    let after: Vec<_> = sockets.groups().iter().rev().map(ports).collect();
    assert_eq!(before, after);

    // One removed, one added, one changed to tcp.
    let new_address = unused();
    next.listeners[0] =
        Listener { name: "four".into(), address: new_address.into(), ..next.listeners[0].clone() };
    next.listeners[1].protocol = Protocol::Tcp(model::TcpSplit::only(model::ServiceId(0)));
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(names(&change), (vec!["four", "two"], vec!["three", "two"]));
    assert_eq!(change.added[0].sockets.len(), 2);
    let gone = sockets.groups()[0].address;
    sockets.adopt(change);
    assert!(connect(gone).is_err(), "the last descriptor is closed");
}

#[test]
fn other_security_settings_replace_a_listener_on_its_own_sockets() {
    let (mut sockets, mut next) = opened(&["one", "two"]);
    let before: Vec<_> = sockets.groups().iter().map(ports).collect();
    // The peers that may send a PROXY header are a security setting; those whose forwarding fields
    // are trusted are not, since the next request follows that.
    next.listeners[0].proxy_protocol = Networks::from_iter(["10.0.0.0/8".parse().unwrap()]);
    next.listeners[1].trusted = Networks::from_iter(["10.0.0.0/8".parse().unwrap()]);
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(names(&change), (vec!["one"], vec!["one"]));
    assert!(change.removed[0].security_changed);
    sockets.adopt(change);
    let after: Vec<_> = sockets.groups().iter().map(ports).collect();
    assert_eq!(before, after);
    // Another name is not: existing connections stay.
    next.listeners[0].name = "other".into();
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(names(&change), (vec!["other"], vec!["one"]));
    assert!(!change.removed[0].security_changed);
    assert_eq!(change.removed[0].next, ["other".into()]);
    // Another name and other security settings.
    next.listeners[0].proxy_protocol = Networks::default();
    let change = sockets.prepare(&next, 2).unwrap();
    assert!(change.removed[0].security_changed);
}

#[test]
fn a_listener_is_replaced_by_its_name_and_by_its_address() {
    let (sockets, mut next) = opened(&["one", "two"]);
    // "one" moves, and "three" has its address, with other security settings.
    let mut three = Listener { name: "three".into(), ..next.listeners[0].clone() };
    three.proxy_protocol = Networks::from_iter(["10.0.0.0/8".parse().unwrap()]);
    next.listeners[0].address = unused().into();
    next.listeners.push(three);
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(names(&change), (vec!["one", "three"], vec!["one"]));
    assert_eq!(change.removed[0].next, ["one".into(), "three".into()]);
    assert!(change.removed[0].security_changed, "of its address");
    drop(change);
    // It moves and has other security settings itself.
    next.listeners.pop();
    next.listeners[0].proxy_protocol = Networks::from_iter(["10.0.0.0/8".parse().unwrap()]);
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(change.removed[0].next, ["one".into()]);
    assert!(change.removed[0].security_changed, "of its name");
    drop(change);
    // It is removed.
    next.listeners.remove(0);
    let change = sockets.prepare(&next, 2).unwrap();
    assert!(change.removed[0].next.is_empty() && !change.removed[0].security_changed);
}

#[test]
fn listeners_exchange_addresses_without_closing_a_socket() {
    let (mut sockets, mut next) = opened(&["one", "two"]);
    let (one, two) = (next.listeners[0].address, next.listeners[1].address);
    let clients: Vec<_> = [one, two].map(|at| connect(at).unwrap()).into_iter().collect();
    (next.listeners[0].address, next.listeners[1].address) = (two, one);
    let change = sockets.prepare(&next, 2).unwrap();
    assert_eq!(names(&change), (vec!["one", "two"], vec!["one", "two"]));
    let (added, _) = sockets.adopt(change);
    // Earlier clients are still in the queues.
    let in_queue = |added: &proxy::ListenerSockets| {
        added.sockets.iter().filter(|socket| os::accept::accept(socket).is_ok()).count()
    };
    assert_eq!(added.iter().map(in_queue).collect::<Vec<_>>(), [1, 1]);
    drop(clients);
}

#[test]
fn a_bind_failure_changes_nothing_and_names_our_own_listener_in_the_way() {
    let (sockets, mut next) = opened(&["one"]);
    let ((_held, elsewhere), mine) = (taken(), next.listeners[0].address);
    let second =
        Listener { name: "second".into(), address: elsewhere.into(), ..next.listeners[0].clone() };
    let port = mine.port().unwrap();
    next.listeners[0].address = SocketAddr::from(([0, 0, 0, 0], port)).into();
    next.listeners.push(second);
    let OpenError { lines, .. } = sockets.prepare(&next, 2).unwrap_err();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("this balancer itself") && lines[0].contains("\"one\""), "{lines:?}");
    assert!(lines[1].contains("another program"), "{lines:?}");
    assert!(connect(mine).is_ok());
}

#[test]
fn sockets_that_were_handed_over_are_all_kept() {
    let (sockets, mut next) = opened(&["one", "gone"]);
    let handed = |sockets: &Sockets| {
        let groups = sockets.groups().iter().map(|group| HandedGroup {
            name: Arc::clone(&group.name),
            address: group.address,
            sockets: group.sockets.iter().map(|socket| socket.try_clone().unwrap()).collect(),
            file: None,
        });
        Handed { groups: groups.collect(), ..Handed::default() }
    };
    // Fewer workers, another name.
    next.workers = NonZeroU16::new(1);
    next.listeners.truncate(1);
    next.listeners[0].name = "other".into();
    let (fewer, _) = open(&next, handed(&sockets)).unwrap();
    assert_eq!(ports(&fewer.groups()[0]), ports(&sockets.groups()[0]));
    // More workers.
    next.workers = NonZeroU16::new(5);
    let (mut more, _) = open(&next, handed(&sockets)).unwrap();
    assert_eq!(more.groups()[0].sockets.len(), 2, "not before everything else is well");
    more.for_proxy(5).unwrap();
    assert_eq!(ports(&more.groups()[0]), [next.listeners[0].address.port().unwrap(); 5]);
}

#[test]
fn tunnels_need_more_files_than_exchanges() {
    let mut snapshot = snapshot(address(1), address(2));
    Arc::make_mut(&mut snapshot.services[0]).idle_connections_max = 0;
    let http = files_wanted(&snapshot, 1);
    snapshot.listeners[0].protocol = Protocol::Tcp(model::TcpSplit::only(model::ServiceId(0)));
    assert_eq!(files_wanted(&snapshot, 1) - http, 4 * 1000);
    let none_kept = files_wanted(&snapshot, 2);
    Arc::make_mut(&mut snapshot.services[0]).idle_connections_max = 10;
    assert_eq!(files_wanted(&snapshot, 2) - none_kept, 2 * 10);
    Arc::make_mut(&mut snapshot.services[0]).idle_connections_max = 60_000;
    let all = u64::from(snapshot.connections_max);
    assert_eq!(files_wanted(&snapshot, 2) - none_kept, all, "no more than clients, in all");
}
