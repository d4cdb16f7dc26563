//! Instances whose address is a host name, which Weir resolves.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use e2e::consul::{FakeConsul, Instance};
use e2e::{Scene, Weir};

use super::stage::{Server, Steady, config, consul_at, server, wait_for_standings};

/// A DNS server with the addresses of one name, for a second each. No address: there is no such name.
struct Dns(Arc<Mutex<Vec<Ipv4Addr>>>);

impl Dns {
    fn start(address: SocketAddr, name: &'static str, ips: &[Ipv4Addr]) -> Dns {
        let socket = UdpSocket::bind(address).expect("a free address");
        let dns = Dns(Arc::new(Mutex::new(ips.to_vec())));
        let ips = Arc::clone(&dns.0);
        std::thread::spawn(move || {
            let mut message = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut message) {
                let answer = answer(&message[..length], name, &ips.lock().unwrap());
                drop(socket.send_to(&answer, from));
            }
        });
        dns
    }

    fn set(&self, ips: &[Ipv4Addr]) {
        *self.0.lock().unwrap() = ips.to_vec();
    }
}

/// A response (RFC 1035 section 4.1): the question, and a record of type A for each address.
fn answer(query: &[u8], name: &str, ips: &[Ipv4Addr]) -> Vec<u8> {
    let end = query[12..].iter().position(|&byte| byte == 0).map_or(query.len(), |at| 12 + at + 5);
    let labels =
        name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    let is_known = query[12..end - 5].eq_ignore_ascii_case(&labels.collect::<Vec<u8>>());
    let is_of_ipv4 = query[end - 4..end - 2] == [0, 1];
    let ips = if is_known && is_of_ipv4 { ips } else { &[] };
    let mut answer = query[..end].to_vec();
    answer[2] |= 0x84;
    answer[3] = if is_known { 0x80 } else { 0x83 };
    answer[6..12].copy_from_slice(&[0, ips.len() as u8, 0, 0, 0, 0]);
    for ip in ips {
        // The name of the question; A, IN; a second; four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
        answer.extend(ip.octets());
    }
    answer
}

#[test]
fn a_host_name_in_a_listing_is_resolved() {
    let Some(scene) = Scene::new("discovery-names", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let ip = |host| scene.ip(host);
    let dns = Dns::start(scene.address(2, 5353), "web.internal", &[ip(11), ip(12)]);
    let fake = FakeConsul::start(scene.address(40, 8500));
    let mut named = Instance::new("web-1", servers[0].address());
    named.address = "web.internal".to_owned();
    fake.set("web", &[named.clone()]);
    let resolver = format!("resolver = \"{}\"\n{}", scene.address(2, 5353), consul_at(&fake.url()));
    let weir = Weir::start(&scene, &config(&scene, &resolver, "consul = \"web\"", ""));
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    let shown = server(&weir, servers[0].address());
    assert_eq!(
        (&shown["name"], &shown["listing"]["object"]),
        (&"web.internal:8080".into(), &"node1/web-1".into())
    );
    dns.set(&[ip(12), ip(13)]);
    steady.only(&[12, 13]);
    // An instance with an address beside it, and then without the name.
    let other = Instance::new("web-2", servers[0].address());
    fake.set("web", &[named.clone(), other.clone()]);
    steady.only(&[11, 12, 13]);
    fake.set("web", std::slice::from_ref(&other));
    steady.only(&[11]);
    wait_for_standings(&weir, &[(&[11], "listed")]);
    // A name that is new to Weir, and one that is not known.
    let mut unknown = Instance::new("web-3", servers[0].address());
    unknown.address = "nowhere.internal".to_owned();
    fake.set("web", &[other, named, unknown]);
    steady.only(&[11, 12, 13]);
    steady.finish();
}
