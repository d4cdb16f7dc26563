//! Hosts and links of a run: its own namespaces, interfaces, addresses and routes.
//!
//! Each host is a namespace `weir-lab-RUN-HOST` with addresses of 10.78.0.0/16 on its loopback
//! interface; links have no addresses. Dropping the [`Network`] removes everything; [`state::clean`]
//! removes what a killed run has left.

mod batch;
mod routes;
pub mod state;

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use os::namespace::Namespace;
use os::tun::Packets;
use serde_json::{Value, json};

use crate::incident::{Incident, Variant};
use crate::link::{End, Forwarder, Way, Ways, open};
use crate::stop::Stop;

/// The largest packet of every link, as on Ethernet.
const MTU: u32 = 1_500;

/// What a host's connections do about congestion is set for each of its routes: only a
/// machine's first namespace may have any of the kernel's algorithms for all.
const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";
/// What most machines do, whatever this one does.
const CUBIC: &str = "cubic";

/// The hosts of a run and the links between them.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    links: Vec<Link>,
}

#[derive(Debug)]
struct Host {
    name: String,
    namespace: String,
    congestion_control: String,
}

#[derive(Debug)]
struct Link {
    name: String,
    between: [String; 2],
    /// `None`: a plain pair of interfaces.
    forwarder: Option<Forwarder>,
    /// What it does when nothing is wrong, and whether an end is cut off.
    ways: [Way; 2],
    is_cut: bool,
}

impl Network {
    /// Makes the hosts and links of an incident; `run` makes their names its own.
    ///
    /// # Errors
    /// What could not be made, and why, or that it was to stop; what was made is gone again.
    pub fn make(
        incident: &Incident,
        variant: &Variant,
        run: &str,
        seed: u64,
        stop: &Stop,
    ) -> Result<Network, String> {
        let mut network = Network { hosts: Vec::new(), links: Vec::new() };
        for name in incident.all_hosts() {
            stop.check()?;
            let namespace = format!("{}{run}-{name}", state::NAMESPACES);
            let own = incident.host(&name).map(|host| &host.sysctl);
            let mut set = [Some(&variant.sysctl), own].into_iter().flatten();
            let congestion_control = set.find_map(|set| set.get(CONGESTION_CONTROL));
            let congestion_control = congestion_control.map_or(CUBIC, String::as_str).to_owned();
            let add = format!("netns add {namespace}");
            // Known before it is there, so that half of one is removed as well.
            network.hosts.push(Host { name, namespace, congestion_control });
            batch::run(&[add], None)?;
        }
        for (index, host) in network.hosts.iter().enumerate() {
            stop.check()?;
            let what = incident.host(&host.name);
            let count = what.map_or(1, |host| host.addresses);
            let mut lines = vec!["link set lo up".to_owned()];
            let add = |number| format!("addr add {}/32 dev lo", address(index, number));
            lines.extend((1..=count).map(add));
            let is_router = links_of(incident, &host.name) > 1;
            let own = what.map(|host| &host.sysctl);
            settings(&host.namespace, is_router, [own, Some(&variant.sysctl)])?;
            batch::run(&lines, Some(&host.namespace))?;
        }
        for (index, (name, between, link)) in incident.all_links().into_iter().enumerate() {
            stop.check()?;
            let ends = between.each_ref().map(|host| End {
                namespace: network.namespace(host).to_owned(),
                device: format!("lab{index}"),
            });
            let ways = link.ways().each()?;
            let forwarder = if link.plain {
                plain(&ends)?;
                None
            } else {
                let device = |end| open(end, Packets::Wire, MTU).map_err(|e| e.to_string());
                let devices = [device(&ends[0])?, device(&ends[1])?];
                let seed = seed.wrapping_mul(1_000_003).wrapping_add(index as u64);
                let started = Forwarder::start(devices, Packets::Wire, ways.clone(), seed);
                Some(started.map_err(|error| format!("link {name}: {error}"))?)
            };
            network.links.push(Link { name, between, forwarder, ways, is_cut: false });
        }
        network.set_routes(stop)?;
        Ok(network)
    }

    fn set_routes(&self, stop: &Stop) -> Result<(), String> {
        let edges: Vec<[usize; 2]> = self
            .links
            .iter()
            .map(|link| link.between.each_ref().map(|name| self.index(name).unwrap_or(0)))
            .collect();
        for (from, host) in self.hosts.iter().enumerate() {
            stop.check()?;
            let mut lines = Vec::new();
            for routes::Route { to, link, next } in routes::routes(from, self.hosts.len(), &edges) {
                let via = if self.links[link].forwarder.is_none() {
                    format!("via {} onlink ", address(next, 1))
                } else {
                    String::new()
                };
                let (network, own) = (address(to, 0), address(from, 1));
                let control = &host.congestion_control;
                lines.push(format!(
                    "route add {network}/24 {via}dev lab{link} src {own} congctl {control}"
                ));
            }
            batch::run(&lines, Some(&host.namespace))?;
        }
        Ok(())
    }

    fn index(&self, host: &str) -> Option<usize> {
        self.hosts.iter().position(|one| one.name == host)
    }

    /// The namespace of a host.
    pub fn namespace(&self, host: &str) -> &str {
        self.index(host).map_or("", |index| &self.hosts[index].namespace)
    }

    /// The `number`-th address of a host, from 1.
    pub fn address(&self, host: &str, number: u8) -> Option<Ipv4Addr> {
        self.index(host).map(|index| address(index, number))
    }

    /// A command that runs on a host.
    pub fn command(&self, host: &str, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.namespace(host)]).arg(program);
        command
    }

    /// Runs `work` in a host's namespace, on a separate thread.
    ///
    /// # Errors
    /// When there is no way in.
    pub fn inside<R: Send>(&self, host: &str, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        Namespace::open(&namespace_file(self.namespace(host)))?.inside(work)
    }

    /// Has a link do something else from now on.
    ///
    /// # Errors
    /// When there is no such link, or it is a plain one.
    pub fn set(&mut self, link: &str, ways: &Ways) -> Result<(), String> {
        let ways = ways.each()?;
        let found = self.links.iter_mut().find(|one| one.name == link);
        let link = found.ok_or_else(|| format!("no link {link}"))?;
        link.ways = ways;
        link.apply()
    }

    /// Cuts a host off, or reconnects it.
    ///
    /// # Errors
    /// When one of its links is a plain one, which cannot be cut.
    pub fn cut(&mut self, host: &str, is_cut: bool) -> Result<(), String> {
        for link in &mut self.links {
            if link.between.iter().any(|end| end == host) {
                link.is_cut = is_cut;
                link.apply()?;
            }
        }
        Ok(())
    }

    /// What links have done so far, by name.
    pub fn link_counts(&self) -> Value {
        let counts = self.links.iter().filter_map(|link| {
            let [there, back] = link.forwarder.as_ref()?.counts();
            Some((link.name.clone(), json!({ "there": there, "back": back })))
        });
        Value::Object(counts.collect())
    }

    /// Every host's kernel counters, by `nstat`'s names.
    pub fn counters(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let of = |host: &Host| {
            let read = |name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}"));
            let looked = self.inside(&host.name, || [read("netstat"), read("snmp")]);
            let texts = looked.into_iter().flatten().flatten();
            (host.name.clone(), texts.flat_map(|text| pairs(&text)).collect())
        };
        self.hosts.iter().map(of).collect()
    }

    /// How late the links' packets were, by name; the links end by it.
    pub fn end_links(&mut self) -> Value {
        let ended = self.links.iter_mut().filter_map(|link| {
            let late = link.forwarder.take()?.stop();
            Some((link.name.clone(), json!(late)))
        });
        Value::Object(ended.collect())
    }

    /// The hosts' names.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| &*host.name)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.end_links();
        for host in &self.hosts {
            // What is left is found again by `weir lab clean`.
            let _ = state::remove_namespace(&host.namespace);
        }
    }
}

impl Link {
    fn apply(&self) -> Result<(), String> {
        let cut = || Way { cut: true, ..Way::default() };
        let ways = if self.is_cut { [cut(), cut()] } else { self.ways.clone() };
        let forwarder = self.forwarder.as_ref();
        let forwarder = forwarder.ok_or_else(|| format!("link {} is a plain one", self.name))?;
        forwarder.set(ways).map_err(|error| format!("link {}: {error}", self.name))
    }
}

/// The file by which a namespace is entered.
fn namespace_file(namespace: &str) -> PathBuf {
    Path::new("/run/netns").join(namespace)
}

/// 10.78.HOST.NUMBER; hosts are fewer than 255.
fn address(host: usize, number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, host as u8 + 1, number)
}

fn links_of(incident: &Incident, host: &str) -> usize {
    let is_end = |(_, between, _): &(String, [String; 2], _)| between.iter().any(|end| end == host);
    incident.all_links().iter().filter(|link| is_end(link)).count()
}

/// A pair of interfaces that the kernel joins.
fn plain(ends: &[End; 2]) -> Result<(), String> {
    let [one, other] = ends;
    let pair = format!(
        "link add {} netns {} type veth peer name {} netns {}",
        one.device, one.namespace, other.device, other.namespace
    );
    batch::run(&[pair], None)?;
    for end in ends {
        batch::run(&[format!("link set {} up", end.device)], Some(&end.namespace))?;
    }
    Ok(())
}

/// Settings of a host's kernel: those of the lab, then its own.
fn settings(
    namespace: &str,
    is_router: bool,
    own: [Option<&BTreeMap<String, String>>; 2],
) -> Result<(), String> {
    let lab = [
        ("net.ipv6.conf.all.disable_ipv6", "1"),
        ("net.ipv6.conf.default.disable_ipv6", "1"),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.ip_forward", if is_router { "1" } else { "0" }),
    ];
    let own = own.into_iter().flatten().flatten().map(|(name, value)| (&**name, &**value));
    let own = own.filter(|(name, _)| *name != CONGESTION_CONTROL);
    let all: Vec<(&str, &str)> = lab.into_iter().chain(own).collect();
    let write = || {
        for (name, value) in &all {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            std::fs::write(&path, value).map_err(|error| format!("{name} = {value}: {error}"))?;
        }
        Ok(())
    };
    let entered = Namespace::open(&namespace_file(namespace)).and_then(|own| own.inside(write));
    entered.map_err(|error| format!("{namespace}: {error}"))?
}

/// Names and values of /proc/net/netstat and snmp: a line of names, a line of values.
fn pairs(text: &str) -> Vec<(String, u64)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for two in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) =
            (two[0].split_once(':'), two[1].split_once(':'))
        else {
            continue;
        };
        let each = names.split_whitespace().zip(values.split_whitespace());
        found.extend(each.filter_map(|(name, value)| {
            // Some are negative where there is no limit, and none that counts is.
            Some((format!("{group}{name}"), value.parse().ok()?))
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_that_nstat_prints() {
        let text = "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 3 14\nTcp: MaxConn\nTcp: -1\n";
        let found = pairs(text);
        assert_eq!(
            found,
            [("TcpExtSyncookiesSent".to_owned(), 3), ("TcpExtListenOverflows".to_owned(), 14)]
        );
    }

    #[test]
    fn addresses_are_of_the_labs_own_network() {
        assert_eq!(address(0, 1).to_string(), "10.78.1.1");
        assert_eq!(address(199, 12).to_string(), "10.78.200.12");
    }
}
