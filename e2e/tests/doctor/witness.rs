//! Compares the doctor's findings with the kernel's counters in the same network namespace. The test reads
//! the counters itself, before the doctor's first sample and after its last one.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// For how long the doctor looks (`--for`), not counting the time that it is stopped.
pub(crate) const LOOK: Duration = Duration::from_millis(600);

/// The kernel's counters and some settings of one network namespace at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// By the names that `nstat` prints; those of connection tracking as `conntrack:NAME`.
    counters: BTreeMap<String, u64>,
    settings: BTreeMap<&'static str, String>,
}

impl Counted {
    /// Reads the calling thread's namespace.
    pub(crate) fn now() -> Counted {
        let mut counters = BTreeMap::new();
        for file in ["snmp", "netstat"] {
            let text = read(file);
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.chunks_exact(2) {
                let mut names = pair[0].split_whitespace();
                let prefix = names.next().expect("a prefix").trim_end_matches(':');
                for (name, value) in names.zip(pair[1].split_whitespace().skip(1)) {
                    counters.insert(format!("{prefix}{name}"), value.parse().unwrap_or(0));
                }
            }
        }
        let text = read("stat/nf_conntrack");
        let names: Vec<&str> =
            text.lines().next().map(|line| line.split_whitespace().collect()).unwrap_or_default();
        for line in text.lines().skip(1) {
            for (name, value) in names.iter().zip(line.split_whitespace()) {
                let value = u64::from_str_radix(value, 16).expect("a hexadecimal number");
                *counters.entry(format!("conntrack:{name}")).or_insert(0) += value;
            }
        }
        let settings = CLAIMS.iter().filter_map(|claim| match claim.holds_if {
            HoldsIf::Setting(name, _) => {
                let path = format!("/proc/sys/{name}");
                Some((name, std::fs::read_to_string(path).ok()?.trim().to_owned()))
            }
            _ => None,
        });
        Counted { settings: settings.collect(), counters }
    }

    /// A counter; 0 if the kernel does not keep it.
    pub(crate) fn of(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

/// A file of the calling thread's /proc/net; empty if the kernel does not have it.
fn read(file: &str) -> String {
    std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default()
}

/// What must be true when a rule says something.
struct Claim {
    rule: &'static str,
    /// Words of the statement, compared without letter case; empty for any statement of the rule.
    says: &'static str,
    holds_if: HoldsIf,
}

enum HoldsIf {
    /// One of these rose during the look.
    Rose(&'static [&'static str]),
    /// One of these has ever risen.
    EverRose(&'static [&'static str]),
    /// The first ones together rose by more than the others together.
    Exceed(&'static [&'static str], &'static [&'static str]),
    /// One of these has ever risen at the other end.
    RoseAtOtherEnd(&'static [&'static str]),
    /// The setting (a path below /proc/sys) fits.
    Setting(&'static str, fn(&str) -> bool),
}

impl HoldsIf {
    /// The counters that decide.
    fn counters(&self) -> impl Iterator<Item = &'static str> {
        let [names, others]: [&[_]; 2] = match *self {
            HoldsIf::Rose(names) | HoldsIf::EverRose(names) | HoldsIf::RoseAtOtherEnd(names) => {
                [names, &[]]
            }
            HoldsIf::Exceed(names, others) => [names, others],
            HoldsIf::Setting(..) => [&[], &[]],
        };
        names.iter().chain(others).copied()
    }
}

const fn claim(rule: &'static str, says: &'static str, holds_if: HoldsIf) -> Claim {
    Claim { rule, says, holds_if }
}

/// Counters of a receiver that had no room for data.
const NO_ROOM: &[&str] = &[
    "TcpExtTCPToZeroWindowAdv",
    "TcpExtRcvPruned",
    "TcpExtTCPRcvQDrop",
    "TcpExtTCPZeroWindowDrop",
];

/// Connections that programs of this host reset.
const ABORTS: &[&str] =
    &["TcpExtTCPAbortOnData", "TcpExtTCPAbortOnClose", "TcpExtTCPAbortOnLinger"];

/// Every rule that speaks in a situation needs an entry here.
const CLAIMS: &[Claim] = {
    use HoldsIf::{EverRose, Exceed, Rose, RoseAtOtherEnd, Setting};
    &[
        claim("syn_unanswered", "", Rose(&["TcpExtTCPSynRetrans"])),
        claim(
            "syn_unanswered",
            "servers do not answer",
            Exceed(&["TcpExtTCPTimeouts"], &["TcpExtLockDroppedIcmps"]),
        ),
        claim(
            "server_queue_full",
            "",
            RoseAtOtherEnd(&["TcpExtListenOverflows", "TcpExtListenDrops"]),
        ),
        claim("connections_stalled", "", Rose(&["TcpExtTCPTimeouts"])),
        claim("connects_refused", "", Exceed(&["TcpAttemptFails"], &["TcpExtTCPAbortOnTimeout"])),
        claim("resets_received", "", Exceed(&["TcpEstabResets"], ABORTS)),
        claim("resets_sent", "", Rose(&["TcpOutRsts"])),
        claim("resets_sent", "closed ports", Exceed(&["TcpOutRsts"], ABORTS)),
        claim("resets_sent", "programs here cut off", Rose(ABORTS)),
        claim("listener_overflow", "", EverRose(&["TcpExtListenOverflows"])),
        claim("listener_overflow", "connections a second", Rose(&["TcpExtListenOverflows"])),
        claim("receive_buffer_small", "", Rose(NO_ROOM)),
        claim(
            "receive_buffer_small",
            "",
            Setting("net/ipv4/tcp_rmem", |value| {
                value.split_whitespace().last().is_some_and(|max| max.len() < 6)
            }),
        ),
        claim("slow_reader", "", EverRose(NO_ROOM)),
        claim("peer_slow_reader", "", RoseAtOtherEnd(NO_ROOM)),
        claim("loss", "", Exceed(&["TcpRetransSegs"], &["TcpExtTCPSynRetrans"])),
        claim("reordering", "ahead of their turn", Rose(&["TcpExtTCPOFOQueue"])),
        claim("reordering", "overtake", Rose(&["TcpExtTCPSACKReorder", "TcpExtTCPTSReorder"])),
        claim("reordering", "overtake", Rose(&["TcpExtTCPDSACKRecv", "TcpExtTCPFullUndo"])),
        claim("slow_reader", "out of order", Rose(&["TcpExtTCPOFOQueue"])),
        claim("slow_reader", "a program reads slowly", Exceed(NO_ROOM, &["TcpExtTCPOFOQueue"])),
        claim("slow_reader", "zero window", Rose(&["TcpExtTCPToZeroWindowAdv"])),
        claim("slow_reader", "drops", Rose(&["TcpExtRcvPruned", "TcpExtTCPRcvQDrop"])),
        claim("syn_cookies", "", EverRose(&["TcpExtSyncookiesSent"])),
        claim("syn_drops", "are dropped", Rose(&["TcpExtTCPReqQFullDrop"])),
        claim("syn_drops", "", Setting("net/ipv4/tcp_syncookies", |value| value == "0")),
        claim("conntrack_drops", "", Rose(&["conntrack:drop", "conntrack:early_drop"])),
        claim("conntrack_drops", "drops", Rose(&["conntrack:drop"])),
        claim("conntrack_full", "", EverRose(&["conntrack:entries"])),
        claim("time_wait_overflow", "", Rose(&["TcpExtTCPTimeWaitOverflow"])),
        claim(
            "backlog_stale",
            "",
            Setting("net/core/somaxconn", |value| value.parse().is_ok_and(|max: u32| max > 128)),
        ),
        claim(
            "backlog_low",
            "",
            Setting("net/core/somaxconn", |value| value.parse().is_ok_and(|max: u32| max > 511)),
        ),
        claim("sack_off", "", Setting("net/ipv4/tcp_sack", |value| value == "0")),
        claim("timestamps_off", "", Setting("net/ipv4/tcp_timestamps", |value| value == "0")),
        claim(
            "window_scaling_off",
            "",
            Setting("net/ipv4/tcp_window_scaling", |value| value == "0"),
        ),
        claim(
            "abort_on_overflow",
            "",
            Setting("net/ipv4/tcp_abort_on_overflow", |value| value == "1"),
        ),
        claim(
            "ports_exhausted",
            "",
            Setting("net/ipv4/ip_local_port_range", |value| value == "40000\t40099"),
        ),
    ]
};

/// Why a finding cannot be true; `None` if the counters bear it out.
pub(crate) fn contradiction(
    finding: &Value,
    [before, after]: [&Counted; 2],
    other_end: &Counted,
) -> Option<String> {
    let rule = finding["rule"].as_str().expect("a rule");
    let what = finding["what"].as_str().expect("a statement").to_lowercase();
    let mut claims = CLAIMS.iter().filter(|claim| claim.rule == rule).peekable();
    if claims.peek().is_none() {
        return Some(format!("{rule}: no counter is named that could contradict it"));
    }
    let rose = |name: &&str| after.of(name).saturating_sub(before.of(name));
    let broken = claims.find(|claim| {
        let holds = match claim.holds_if {
            HoldsIf::Rose(names) => names.iter().any(|name| rose(name) > 0),
            HoldsIf::EverRose(names) => names.iter().any(|name| after.of(name) > 0),
            HoldsIf::Exceed(names, others) => {
                let sum = |of: &[&str]| of.iter().map(rose).sum::<u64>();
                sum(names) > sum(others)
            }
            HoldsIf::RoseAtOtherEnd(names) => names.iter().any(|name| other_end.of(name) > 0),
            HoldsIf::Setting(name, fits) => {
                after.settings.get(name).is_some_and(|value| fits(value))
            }
        };
        what.contains(claim.says) && !holds
    });
    if let Some(claim) = broken {
        let counted: Vec<String> = claim
            .holds_if
            .counters()
            .map(|name| format!("{name} {}, +{} at this end", after.of(name), rose(&name)))
            .collect();
        return Some(format!("{rule}: the kernel contradicts \"{what}\": {}", counted.join("; ")));
    }
    let mut figures = finding["evidence"].as_array().expect("evidence").iter();
    figures.find_map(|one| wrong_figure(one, before, after))
}

/// A figure of the evidence that has a counter's name, and is not within what the counter did: the
/// test's two readings enclose the doctor's.
fn wrong_figure(one: &Value, before: &Counted, after: &Counted) -> Option<String> {
    let name = one["name"].as_str()?;
    let (&from, &to) = (before.counters.get(name)?, after.counters.get(name)?);
    let is_within = match (one["in_all"].as_u64(), one["figure"].as_f64()?) {
        // The doctor's samples are at least that far apart, but for the rounding of milliseconds.
        (Some(in_all), per_s) => {
            (from..=to).contains(&in_all) && per_s * LOOK.as_secs_f64() <= (to - from) as f64 * 1.01
        }
        (None, count) => count <= to as f64,
    };
    (!is_within).then(|| format!("{name}: {one}, though it went from {from} to {to}"))
}
