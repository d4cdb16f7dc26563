//! Private networks of a test: a namespace for the balancer and its clients, and one for each zone,
//! joined by veth pairs, so that a zone can be cut off without affecting the machine.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{Process, Scene, find, linked};

/// A balancer's namespace and one for each zone.
pub struct Zones {
    balancer: Namespace,
    zones: Vec<(String, Namespace)>,
}

impl Zones {
    /// Makes the networks and runs `test` inside the balancer's; everything it starts there is
    /// there too. Zone n (from 1) is 10.99.n.0/24; the balancer is host 1 in each.
    pub fn run<R: Send>(names: &[&str], test: impl FnOnce(&Zones) -> R + Send) -> R {
        let zones = Zones::make(names);
        // A thread of its own, because it moves house and a test's thread may be the main one.
        let ended = std::thread::scope(|scope| {
            let inside = || {
                zones.balancer.enter();
                test(&zones)
            };
            scope.spawn(inside).join()
        });
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn make(names: &[&str]) -> Zones {
        remove_leftovers();
        let balancer = Namespace::make("lb");
        let mut zones = Vec::new();
        for (number, name) in (1_u8..).zip(names) {
            let zone = Namespace::make(name);
            let link = format!("zone{number}");
            let peer = ["peer", "name", "eth0", "netns", &zone.name];
            balancer.ip(&[&["link", "add", &link, "type", "veth"][..], &peer].concat());
            balancer.ip(&["addr", "add", &format!("10.99.{number}.1/24"), "dev", &link]);
            balancer.ip(&["link", "set", &link, "up"]);
            zone.ip(&["link", "set", "eth0", "up"]);
            for host in 11..=20 {
                zone.ip(&["addr", "add", &format!("10.99.{number}.{host}/24"), "dev", "eth0"]);
            }
            zones.push(((*name).to_owned(), zone));
        }
        Zones { balancer, zones }
    }

    /// The address of `host` (11 to 20) in `zone`.
    pub fn address(&self, zone: &str, host: u8, port: u16) -> SocketAddr {
        let number = self.zones.iter().position(|(name, _)| name == zone).expect("a zone") + 1;
        SocketAddr::new(Ipv4Addr::new(10, 99, number as u8, host).into(), port)
    }

    /// Runs `work` in `zone`; processes that it starts live there.
    pub fn inside<R>(&self, zone: &str, work: impl FnOnce() -> R) -> R {
        self.zone(zone).enter();
        let result = work();
        self.balancer.enter();
        result
    }

    /// Joins two zones by a link of the lab's, which does to packets what `ways` says; it takes the
    /// place of the way by the balancer's network for as long as it runs. Its ends are `link0`.
    pub fn join(&self, scene: &Scene, zones: [&str; 2], ways: &str) -> Process {
        let file = scene.file("link.toml", ways);
        let link = linked::start(scene, zones.map(|zone| self.zone(zone)), &file, &[]);
        let [one, other] = zones;
        for (near, far) in [(one, other), (other, one)] {
            let [own, far] = [near, far].map(|zone| self.address(zone, 11, 0).ip().to_string());
            self.zone(near).ip(&["route", "add", &far, "dev", "link0", "src", &own]);
        }
        link
    }

    /// Drops every packet to and from `zone`, silently, as a broken network does.
    pub fn cut(&self, zone: &str) {
        self.zone(zone).nft(
            "add table inet cut; \
             add chain inet cut in { type filter hook input priority 0; policy drop; }; \
             add chain inet cut out { type filter hook output priority 0; policy drop; }",
        );
    }

    /// Undoes [`Zones::cut`].
    pub fn restore(&self, zone: &str) {
        self.zone(zone).nft("delete table inet cut");
    }

    /// Drops every FIN that leaves `zone`: that a connection was closed there is not heard, as while the
    /// FIN is still on its way.
    pub fn hide_ends(&self, zone: &str) {
        self.zone(zone).nft(
            "add table inet ends; \
             add chain inet ends out { type filter hook output priority 0; }; \
             add rule inet ends out tcp flags & fin == fin drop",
        );
    }

    /// Adds nftables rules in `zone`.
    pub fn nft(&self, zone: &str, rules: &str) {
        self.zone(zone).nft(rules);
    }

    /// Adds nftables rules in the balancer's namespace.
    pub fn nft_here(&self, rules: &str) {
        self.balancer.nft(rules);
    }

    /// `ip WORDS` in the balancer's namespace.
    pub fn ip(&self, words: &[&str]) {
        self.balancer.ip(words);
    }

    fn zone(&self, zone: &str) -> &Namespace {
        let found = self.zones.iter().find(|(name, _)| name == zone);
        &found.unwrap_or_else(|| panic!("no zone {zone}")).1
    }
}

/// A network namespace with its loopback up, gone when this is dropped.
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn make(purpose: &str) -> Namespace {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-{}-{number}-{purpose}", std::process::id());
        command("ip", &["netns", "add", &name]);
        let namespace = Namespace { name };
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    /// Its name in /run/netns.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into it.
    pub(crate) fn enter(&self) {
        let path = Path::new("/run/netns").join(&self.name);
        let file = File::open(&path).expect("the namespace's file");
        move_into_link_name_space(
            std::os::fd::AsFd::as_fd(&file),
            Some(LinkNameSpaceType::Network),
        )
        .expect("entering the namespace");
    }

    pub(crate) fn ip(&self, words: &[&str]) {
        command("ip", &[&["-n", &self.name][..], words].concat());
    }

    fn nft(&self, rules: &str) {
        self.exec("nft", &[rules]);
    }

    /// Runs a program in it to its end.
    pub(crate) fn exec(&self, program: &str, words: &[&str]) {
        let path = find(program).unwrap_or_else(|| panic!("no {program}"));
        let path = path.to_string_lossy();
        command("ip", &[&["netns", "exec", &self.name, &path][..], words].concat());
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let ip = find("ip").expect("ip");
        drop(Command::new(ip).args(["netns", "del", &self.name]).status());
    }
}

/// Turns off segmentation offload, so that packets leave `interface` at most one MTU long.
pub fn offloads_off(interface: &str) {
    command("ethtool", &["-K", interface, "tso", "off", "gso", "off"]);
}

fn command(program: &str, words: &[&str]) {
    let path = find(program).unwrap_or_else(|| panic!("no {program}"));
    let output = Command::new(path).args(words).output().expect("a program that starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {said}", words.join(" "));
}

/// Removes namespaces of test runs that were killed before they could.
pub(crate) fn remove_leftovers() {
    let Ok(entries) = std::fs::read_dir("/run/netns") else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut parts = name.split('-');
        let (Some("weir"), Some(pid)) = (parts.next(), parts.next()) else {
            continue;
        };
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            drop(Namespace { name });
        }
    }
}
