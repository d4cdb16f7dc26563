//! Reads a network namespace: its settings once, its counters, sockets and interfaces at each sample, all
//! from a thread inside the namespace.

pub(crate) mod interfaces;
pub(crate) mod settings;
pub(crate) mod sockets;

use std::collections::BTreeMap;

use diagnose::facts::{Conntrack, Known, NamespaceSample, SockStat};

use crate::file::Files;
use crate::text::{counters, tables};

/// Where the calling thread's network namespace shows its tables. (`/proc/net` is that of the
/// process's first thread.)
const NET: &str = "/proc/thread-self/net";

/// The calling thread's namespace as it is now; `at_ms` is stamped by the caller, so that all that
/// is read for one moment has the same timestamp.
pub(crate) fn sample(at_ms: u64) -> NamespaceSample {
    let net = Files::of(NET);
    NamespaceSample {
        counters: counters(&net).into(),
        conntrack: conntrack(&net),
        interfaces: interfaces::read(&net),
        ..sockets_only(at_ms, &net)
    }
}

/// Of the calling thread's namespace only what its sockets hold.
pub(crate) fn glance(at_ms: u64) -> NamespaceSample {
    sockets_only(at_ms, &Files::of(NET))
}

fn sockets_only(at_ms: u64, net: &Files) -> NamespaceSample {
    let sockstat = net.known("sockstat", tables::sockstat);
    let in_use_v6 = net.known("sockstat6", tables::sockstat6_in_use);
    let count = |stat: &SockStat| Some(stat.in_use + stat.time_wait + in_use_v6.get()?);
    let (listeners, sockets) = sockets::read(sockstat.get().and_then(count));
    NamespaceSample { at_ms, listeners, sockets, sockstat, ..NamespaceSample::default() }
}

fn counters(net: &Files) -> Result<BTreeMap<String, u64>, String> {
    let mut all = BTreeMap::new();
    counters::paired(&net.read("snmp")?, &mut all);
    counters::paired(&net.read("netstat")?, &mut all);
    // A kernel without IPv6 has none.
    if let Ok(text) = net.read("snmp6") {
        counters::single(&text, &mut all);
    }
    Ok(all)
}

/// Connection tracking is there when its settings are.
fn conntrack(net: &Files) -> Known<Option<Conntrack>> {
    const SETTINGS: &str = "/proc/sys/net/netfilter";
    let count = format!("{SETTINGS}/nf_conntrack_count");
    match std::fs::exists(&count) {
        Ok(false) => return Known::Is(None),
        Ok(true) => {}
        Err(error) => return Known::unknown(format!("{count}: {}", crate::file::reason(&error))),
    }
    let settings = Files::of(SETTINGS);
    Known::Is(Some(Conntrack {
        count: settings.number("nf_conntrack_count"),
        max: settings.number("nf_conntrack_max"),
        buckets: settings.number("nf_conntrack_buckets"),
        stats: conntrack_stats(net),
    }))
}

/// From the file where the kernel has it, else by netlink, which takes `CAP_NET_ADMIN`.
fn conntrack_stats(net: &Files) -> Known<BTreeMap<String, u64>> {
    let file = match net.read("stat/nf_conntrack") {
        Ok(text) => return Known::Is(tables::per_processor(&text)),
        Err(why) => why,
    };
    match os::conntrack::statistics() {
        Ok(stats) => Known::Is(BTreeMap::from([
            ("invalid".to_owned(), stats.invalid),
            ("insert_failed".to_owned(), stats.insert_failed),
            ("drop".to_owned(), stats.drop),
            ("early_drop".to_owned(), stats.early_drop),
        ])),
        Err(error) => {
            Known::unknown(format!("{file}; by netlink: {}", crate::file::reason(&error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_what_every_host_has() {
        let sample = sample(7);
        assert_eq!(sample.at_ms, 7);
        let counters = sample.counters.get().unwrap();
        for name in ["TcpRetransSegs", "TcpExtListenOverflows", "TcpExtTCPReqQFullDoCookies"] {
            assert!(counters.contains_key(name), "{name}");
        }
        assert!(sample.sockstat.get().is_some());
        assert!(sample.listeners.get().is_some() && sample.sockets.get().is_some());
        assert!(sample.interfaces.get().is_some());
    }
}
