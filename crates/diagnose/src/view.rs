//! What rules look through at the facts: differences between samples, settings, and the record of
//! what could not be seen.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::facts::{
    Facts, Host, HostSample, Known, Listener, Namespace, NamespaceSample, Setting, Settings,
};
use crate::finding::{Certainty, CouldNotCheck, Evidence, Finding, Severity};

/// How much a counter rose between the first sample and the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    /// Since the counter began.
    pub(crate) in_all: u64,
    /// Between the samples.
    pub(crate) by: u64,
    /// Between the samples; never zero.
    pub(crate) seconds: f64,
}

impl Change {
    /// From two readings `seconds` apart.
    pub(crate) fn between(before: u64, after: u64, seconds: f64) -> Result<Change, String> {
        if seconds <= 0.0 {
            return Err("two samples are needed, at different times".to_owned());
        }
        let by = after
            .checked_sub(before)
            .ok_or_else(|| "the counter went backwards between the samples".to_owned())?;
        Ok(Change { in_all: after, by, seconds })
    }

    pub(crate) fn per_s(self) -> f64 {
        self.by as f64 / self.seconds
    }

    pub(crate) fn is_rising(self) -> bool {
        self.by > 0
    }

    /// As evidence: the rate, and how many in all.
    pub(crate) fn evidence(self, name: &str) -> Evidence {
        Evidence::number(name, self.per_s(), "per second").in_all(self.in_all)
    }
}

/// Collects what rules say.
#[derive(Debug, Default)]
pub(crate) struct Out {
    rule: &'static str,
    namespace: Option<String>,
    findings: Vec<Finding>,
    could_not_check: BTreeSet<CouldNotCheck>,
}

impl Out {
    /// From here on `rule` speaks, of a namespace that is not the program's own, or of none.
    pub(crate) fn begin(&mut self, rule: &'static str, namespace: Option<String>) {
        self.rule = rule;
        self.namespace = namespace;
    }

    /// A finding of the rule that speaks. It counts once it is given to [`Out::push`].
    pub(crate) fn finding(
        &self,
        subject: impl Into<String>,
        severity: Severity,
        certainty: Certainty,
        what: impl Into<String>,
    ) -> Finding {
        let rule = Cow::Borrowed(self.rule);
        let mut finding = Finding::new(rule, subject, severity, certainty, what);
        finding.namespace.clone_from(&self.namespace);
        finding
    }

    pub(crate) fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Notes that `what` could not be looked at.
    pub(crate) fn could_not(&mut self, what: &str, reason: &str) {
        let reason = match &self.namespace {
            Some(namespace) => format!("{reason} (namespace {namespace})"),
            None => reason.to_owned(),
        };
        self.could_not_check.insert(CouldNotCheck { what: what.to_owned(), reason });
    }

    /// The fact, or a note that `what` could not be looked at.
    pub(crate) fn want<'a, T>(&mut self, what: &str, fact: &'a Known<T>) -> Option<&'a T> {
        match fact.as_result() {
            Ok(fact) => Some(fact),
            Err(reason) => {
                self.could_not(what, reason);
                None
            }
        }
    }

    pub(crate) fn into_parts(self) -> (Vec<Finding>, BTreeSet<CouldNotCheck>) {
        (self.findings, self.could_not_check)
    }
}

/// One namespace, among all facts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) namespace: &'a Namespace,
}

impl<'a> View<'a> {
    /// The newest sample.
    pub(crate) fn last(self) -> Option<&'a NamespaceSample> {
        self.namespace.samples.last()
    }

    fn first(self) -> Option<&'a NamespaceSample> {
        self.namespace.samples.first()
    }

    /// Seconds between the first and the last sample; 0 with fewer than two.
    pub(crate) fn seconds(self) -> f64 {
        match (self.first(), self.last()) {
            (Some(first), Some(last)) => last.at_ms.saturating_sub(first.at_ms) as f64 / 1000.0,
            _ => 0.0,
        }
    }

    /// How a counter of the kernel rose; a note when that is not known.
    pub(crate) fn counter(self, name: &str, out: &mut Out) -> Option<Change> {
        let change = self.change(name);
        if let Err((what, reason)) = &change {
            out.could_not(what, reason);
        }
        change.ok()
    }

    /// The same for one that this kernel need not have: no note.
    pub(crate) fn counter_if_any(self, name: &str) -> Option<Change> {
        self.change(name).ok()
    }

    fn change(self, name: &str) -> Result<Change, (String, String)> {
        const ALL: &str = "the kernel's TCP counters";
        let (Some(first), Some(last)) = (self.first(), self.last()) else {
            return Err((ALL.to_owned(), "no sample was taken".to_owned()));
        };
        let read = |sample: &NamespaceSample| match sample.counters.as_result() {
            Err(reason) => Err((ALL.to_owned(), reason.to_owned())),
            Ok(counters) => counters.get(name).copied().ok_or_else(|| {
                (format!("the counter {name}"), "this kernel does not keep it".to_owned())
            }),
        };
        let (before, after) = (read(first)?, read(last)?);
        Change::between(before, after, self.seconds()).map_err(|reason| (ALL.to_owned(), reason))
    }

    /// The namespace's settings; a note when they were not read.
    pub(crate) fn settings(self, out: &mut Out) -> Option<&'a Settings> {
        out.want("kernel settings", &self.namespace.settings)
    }

    /// The first number of a setting; a note when it is not known.
    pub(crate) fn setting(self, name: &str, out: &mut Out) -> Option<u64> {
        let settings = self.settings(out)?;
        out.want(name, &settings.number(name)).copied()
    }

    /// The same without a note, for what only adds to a finding.
    pub(crate) fn setting_if_any(self, name: &str) -> Option<u64> {
        self.namespace.settings.get()?.number(name).get().copied()
    }

    /// Whether a setting exists here: `None` when that is not known.
    pub(crate) fn has_setting(self, name: &str) -> Option<bool> {
        match self.namespace.settings.get()?.get(name) {
            Setting::Is(_) => Some(true),
            Setting::Absent => Some(false),
            // It exists but its value cannot be read, or it was not read.
            Setting::Unknown(_) => {
                self.namespace.settings.get()?.unreadable.contains_key(name).then_some(true)
            }
        }
    }

    /// Listeners by address, from every sample in which they were seen; a note when unknown.
    pub(crate) fn listeners(self, out: &mut Out) -> Option<Vec<Listening<'a>>> {
        let last =
            self.last().and_then(|sample| out.want("listening sockets", &sample.listeners))?;
        let known = |sample: &'a NamespaceSample| Some(by_address(sample.listeners.get()?));
        let samples: Vec<_> = self.namespace.samples.iter().filter_map(known).collect();
        let first = self.first().and_then(known);
        let of = |(address, sockets): (SocketAddr, Vec<&'a Listener>)| {
            let seen: Vec<&[&Listener]> =
                samples.iter().filter_map(|one| one.get(&address)).map(Vec::as_slice).collect();
            let before = first.as_ref().map(|one| one.get(&address).map_or(&[][..], Vec::as_slice));
            Listening::of(address, sockets, &seen, before, self.seconds())
        };
        Some(by_address(last).into_iter().map(of).collect())
    }
}

fn by_address(listeners: &[Listener]) -> BTreeMap<SocketAddr, Vec<&Listener>> {
    let mut all: BTreeMap<SocketAddr, Vec<&Listener>> = BTreeMap::new();
    for one in listeners {
        all.entry(one.address).or_default().push(one);
    }
    all
}

/// The machine, between its first sample and its last.
pub(crate) fn host_seconds(host: &Host) -> f64 {
    match (host.samples.first(), host.samples.last()) {
        (Some(first), Some(last)) => last.at_ms.saturating_sub(first.at_ms) as f64 / 1000.0,
        _ => 0.0,
    }
}

/// A fact of the machine's first sample and of its last; a note when one is not known.
pub(crate) fn host_both<'a, T>(
    host: &'a Host,
    what: &str,
    fact: impl Fn(&'a HostSample) -> &'a Known<T>,
    out: &mut Out,
) -> Option<(&'a T, &'a T)> {
    let (Some(first), Some(last)) = (host.samples.first(), host.samples.last()) else {
        out.could_not(what, "no sample was taken");
        return None;
    };
    if last.at_ms <= first.at_ms {
        out.could_not(what, "two samples are needed, at different times");
        return None;
    }
    let (first, last) = (out.want(what, fact(first)), out.want(what, fact(last)));
    Some((first?, last?))
}

/// All listening sockets of one address: one, or a group that shares it (`SO_REUSEPORT`).
#[derive(Clone, Debug)]
pub(crate) struct Listening<'a> {
    pub(crate) address: SocketAddr,
    /// As in the last sample.
    pub(crate) sockets: Vec<&'a Listener>,
    /// Connections that wait in the fullest of them, and its backlog.
    pub(crate) fullest: (u32, u32),
    /// The smallest share of its backlog that the fullest had in any sample.
    pub(crate) share_min: f64,
    /// Samples in which the address was seen.
    pub(crate) samples: usize,
    /// Drops of all of them; `None`: not known, or too young for two samples.
    pub(crate) drops: Option<Change>,
}

impl<'a> Listening<'a> {
    /// `sockets` as in the last sample, `seen` in each sample that has the address, `before` in the
    /// first, where that was read.
    fn of(
        address: SocketAddr,
        sockets: Vec<&'a Listener>,
        seen: &[&[&Listener]],
        before: Option<&[&Listener]>,
        seconds: f64,
    ) -> Listening<'a> {
        let drops = before.and_then(|before| {
            let mut sum = (0_u64, 0_u64);
            for socket in &sockets {
                let after = *socket.drops.get()?;
                // One that was not there before has dropped all of its drops in between.
                let same = before.iter().find(|one| one.inode == socket.inode);
                let before = same.and_then(|one| one.drops.get().copied()).unwrap_or(0);
                sum = (sum.0.saturating_add(before), sum.1.saturating_add(after));
            }
            Change::between(sum.0, sum.1, seconds).ok()
        });
        let shares = seen.iter().filter_map(|sockets| fullest(sockets)).map(share_full);
        Listening {
            address,
            fullest: fullest(&sockets).unwrap_or_default(),
            share_min: shares.fold(f64::MAX, f64::min),
            samples: seen.len(),
            sockets,
            drops,
        }
    }

    /// The program's name, or what stands for it.
    pub(crate) fn program(&self) -> &str {
        let known = self.sockets.iter().find_map(|one| one.program.get());
        known.map_or("its program", String::as_str)
    }

    /// `nginx at 0.0.0.0:80`, as a sentence may begin with it.
    pub(crate) fn name(&self) -> String {
        match self.sockets.iter().find_map(|one| one.program.get()) {
            Some(program) => format!("{program} at {}", self.address),
            None => format!("The program at {}", self.address),
        }
    }

    /// The smallest backlog of the group.
    pub(crate) fn backlog(&self) -> u32 {
        self.sockets.iter().map(|one| one.backlog).min().unwrap_or_default()
    }

    /// Whether one of them is full now: it holds one connection more than its backlog says.
    pub(crate) fn is_full(&self) -> bool {
        self.fullest.0 > self.fullest.1
    }

    /// Whether it has ever dropped a packet.
    pub(crate) fn has_dropped(&self) -> bool {
        self.sockets.iter().any(|one| one.drops.get().is_some_and(|&drops| drops > 0))
    }
}

/// Of several queues the fullest: (waiting, backlog).
fn fullest(sockets: &[&Listener]) -> Option<(u32, u32)> {
    sockets.iter().map(|one| (one.waiting, one.backlog)).max_by(|one, other| {
        share_full(*one).total_cmp(&share_full(*other)).then(other.1.cmp(&one.1))
    })
}

/// Of a queue (waiting, backlog), which share is taken; 1.0: full.
fn share_full((waiting, backlog): (u32, u32)) -> f64 {
    f64::from(waiting) / (f64::from(backlog) + 1.0)
}
