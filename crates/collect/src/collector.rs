//! Samples a host once or repeatedly: facts that hardly change are read at the start, counters at each
//! sample, and the owners of listeners when these are first seen.

use std::collections::BTreeMap;

use diagnose::facts::{
    FORMAT, Facts, Host, HostSample, Known, Namespace, NamespaceSample, SysctlFile,
};
use diagnose::rules::SETTINGS;
use diagnose::sysctl::lines;
use os::namespace::Namespace as Entrance;
use rustc_hash::FxHashSet;

use crate::host::{self, Cgroups};
use crate::namespace;
use crate::namespace::settings::{Selection, settings};
use crate::places::{self, Place, Which};
use crate::programs;

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// In which network namespaces.
    pub namespaces: Which,
    /// How many samples are kept, the newest; at least 2, for two make a rate.
    pub samples_max: usize,
    /// Whether every kernel setting of the network is read: for facts that are saved, or that a
    /// person looks at one by one. Otherwise those are that rules ask for, or that a file of this
    /// host sets.
    pub all_settings: bool,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { namespaces: Which::All, samples_max: 8, all_settings: false }
    }
}

/// Looks at this host, and keeps what it saw. While it looks at other network namespaces the calling
/// thread is in them, and in its own again afterwards.
#[derive(Debug)]
pub struct Collector {
    facts: Facts,
    places: Vec<Place>,
    /// The own namespace, where others are looked at too.
    home: Option<Entrance>,
    cgroups: Cgroups,
    selection: Selection,
    samples_max: usize,
}

impl Collector {
    /// Reads what hardly changes. No sample is taken yet.
    ///
    /// # Errors
    /// When a namespace that was asked for by name is not there or may not be entered: a sentence
    /// for people.
    pub fn begin(wanted: &Wanted) -> Result<Collector, String> {
        let found = places::find(&wanted.namespaces)?;
        let home = found.home.as_ref();
        let host = host::host();
        let selection = if wanted.all_settings { Selection::All } else { selection(&host) };
        let begin = |place| begin_namespace(place, home, &selection);
        let facts = Facts {
            format: FORMAT,
            taken_at_unix_ms: milliseconds(os::clock::wall()),
            host,
            namespaces: found.places.iter().map(begin).collect(),
            namespaces_left_out: found.left_out,
            captures: Vec::new(),
            // A balancer that looks at itself adds what it knows.
            balancer: Known::default(),
            traffic: Known::default(),
        };
        let samples_max = wanted.samples_max.max(2);
        let collector = Collector {
            facts,
            places: found.places,
            home: found.home,
            cgroups: Cgroups::find(),
            selection,
            samples_max,
        };
        collector.go_home();
        Ok(collector)
    }

    /// Takes a sample of the machine and of every namespace.
    pub fn sample(&mut self) {
        let mut neighbours = None;
        let mut own_interfaces = Vec::new();
        for (place, namespace) in self.places.iter().zip(&mut self.facts.namespaces) {
            let is_first = namespace.is_first == Known::Is(true);
            let read = || {
                let sample = namespace::sample(now_ms());
                (sample, is_first.then(host::neighbours))
            };
            let sample = match place.inside(self.home.as_ref(), read) {
                Ok((sample, seen)) => {
                    neighbours = neighbours.or(seen);
                    sample
                }
                Err(why) => nothing(now_ms(), &why),
            };
            if namespace.is_own {
                let interfaces = sample.interfaces.get().into_iter().flatten();
                own_interfaces = interfaces.map(|interface| interface.name.clone()).collect();
            }
            push(&mut namespace.samples, sample, self.samples_max);
        }
        self.go_home();
        let names: Vec<&str> = own_interfaces.iter().map(String::as_str).collect();
        let neighbours = neighbours.unwrap_or_else(host::neighbours);
        let sample: HostSample = host::sample(now_ms(), &names, &self.cgroups, neighbours);
        push(&mut self.facts.host.samples, sample, self.samples_max);
        self.name_programs();
    }

    /// Takes a small sample between two whole ones: who listens, who waits to be accepted, and what
    /// all other sockets hold. What rules want to know of more than two moments is among it.
    pub fn glance(&mut self) {
        for (place, namespace) in self.places.iter().zip(&mut self.facts.namespaces) {
            let sample = place
                .inside(self.home.as_ref(), || namespace::glance(now_ms()))
                .unwrap_or_else(|why| nothing(now_ms(), &why));
            push(&mut namespace.samples, sample, self.samples_max);
        }
        self.go_home();
        let sample = HostSample { at_ms: now_ms(), ..HostSample::default() };
        push(&mut self.facts.host.samples, sample, self.samples_max);
        self.name_programs();
    }

    /// Reads the settings and the kernel's log again: for observation over days.
    pub fn renew(&mut self) {
        self.facts.host.kernel_log = host::kernel_log();
        for (place, namespace) in self.places.iter().zip(&mut self.facts.namespaces) {
            let read = || settings(&self.selection);
            let settings = place.inside(self.home.as_ref(), read);
            namespace.settings = settings.into();
        }
        self.go_home();
    }

    /// Should the way back be closed, which was open before, then the next look at the own namespace
    /// says so.
    fn go_home(&self) {
        if let Some(home) = &self.home {
            let _ = home.enter();
        }
    }

    /// What was seen so far.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What was seen so far, to be added to: what the balancer counts.
    pub fn facts_mut(&mut self) -> &mut Facts {
        &mut self.facts
    }

    /// What was seen.
    pub fn into_facts(self) -> Facts {
        self.facts
    }

    /// Says whose the listeners of the newest samples are. Those that were there in the sample
    /// before keep what is known; for new ones all processes are looked through, once.
    fn name_programs(&mut self) {
        let mut unnamed = FxHashSet::default();
        for namespace in &mut self.facts.namespaces {
            let [earlier @ .., newest] = namespace.samples.as_mut_slice() else { continue };
            let before: BTreeMap<u64, _> = earlier
                .last()
                .and_then(|sample| sample.listeners.get())
                .into_iter()
                .flatten()
                .map(|listener| (listener.inode, listener))
                .collect();
            let Known::Is(listeners) = &mut newest.listeners else { continue };
            for listener in listeners {
                match before.get(&listener.inode) {
                    Some(known) => {
                        listener.program = known.program.clone();
                        listener.pid = known.pid.clone();
                        listener.program_started_at_ms = known.program_started_at_ms.clone();
                    }
                    None => {
                        unnamed.insert(listener.inode);
                    }
                }
            }
        }
        if unnamed.is_empty() {
            return;
        }
        let holders = programs::holders(unnamed.iter().copied());
        for namespace in &mut self.facts.namespaces {
            let Some(newest) = namespace.samples.last_mut() else { continue };
            let Known::Is(listeners) = &mut newest.listeners else { continue };
            for listener in listeners.iter_mut().filter(|l| unnamed.contains(&l.inode)) {
                match holders.of(listener.inode) {
                    Ok(program) => {
                        listener.program = Known::Is(program.name.clone());
                        listener.pid = Known::Is(program.pid);
                        listener.program_started_at_ms = match program.started_at_ms {
                            Some(at) => Known::Is(at),
                            None => Known::unknown("its process does not tell"),
                        };
                    }
                    Err(why) => {
                        listener.program = Known::unknown(why.clone());
                        listener.pid = Known::unknown(why.clone());
                        listener.program_started_at_ms = Known::unknown(why);
                    }
                }
            }
        }
        self.facts.host.process_limits = Known::Is(holders.limits());
    }
}

/// Settings that rules ask for, and those that files of this host set.
fn selection(host: &Host) -> Selection {
    let lines = |file: &SysctlFile| lines(&file.text);
    let files = host.sysctl_files.get().into_iter().flatten();
    let set: Vec<String> = files.flat_map(lines).map(|line| line.name).collect();
    Selection::named(SETTINGS.iter().copied().chain(set.iter().map(String::as_str)))
}

fn begin_namespace(place: &Place, home: Option<&Entrance>, selection: &Selection) -> Namespace {
    let settings = place.inside(home, || {
        // Only there the machine's own limits are shown.
        let first = std::fs::exists("/proc/sys/net/core/netdev_max_backlog");
        let first = first.map_err(|error| crate::file::reason(&error));
        (settings(selection), Known::from(first))
    });
    let (settings, is_first) = match settings {
        Ok((settings, is_first)) => (Known::Is(settings), is_first),
        Err(why) => (Known::unknown(why.clone()), Known::unknown(why)),
    };
    Namespace {
        inode: place.inode,
        name: place.name.clone(),
        is_own: place.entrance.is_none(),
        is_first,
        settings,
        samples: Vec::new(),
    }
}

/// A sample of a namespace that could not be entered.
fn nothing(at_ms: u64, why: &str) -> NamespaceSample {
    NamespaceSample {
        at_ms,
        counters: Known::unknown(why),
        listeners: Known::unknown(why),
        sockets: Known::unknown(why),
        sockstat: Known::unknown(why),
        conntrack: Known::unknown(why),
        interfaces: Known::unknown(why),
    }
}

fn push<T>(samples: &mut Vec<T>, sample: T, samples_max: usize) {
    if samples.len() >= samples_max {
        samples.remove(0);
    }
    samples.push(sample);
}

fn now_ms() -> u64 {
    milliseconds(os::clock::since_boot())
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn two_samples_of_this_host() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let wanted = Wanted { namespaces: Which::Own, samples_max: 2, all_settings: false };
        let mut collector = Collector::begin(&wanted).unwrap();
        for _ in 0..3 {
            collector.sample();
        }
        let facts = collector.facts();
        assert_eq!(facts.host.samples.len(), 2, "the oldest went");
        let [own] = facts.namespaces.as_slice() else { panic!("{facts:?}") };
        assert!(own.is_own && own.name.is_empty() && own.samples.len() == 2);
        assert!(own.samples[0].at_ms <= own.samples[1].at_ms);
        let listeners = own.samples[1].listeners.get().unwrap();
        let address = listener.local_addr().unwrap();
        let seen = listeners.iter().find(|listener| listener.address == address).unwrap();
        assert_eq!(seen.pid, Known::Is(std::process::id()));
    }
}
