//! A network namespace: its settings once, its counters, sockets and interfaces at a moment. All of
//! it is read by a thread that is in the namespace.

pub(crate) mod interfaces;
pub(crate) mod settings;
pub(crate) mod sockets;

use std::collections::BTreeMap;

use diagnose::facts::{Conntrack, Known, NamespaceSample};

use crate::file::{known, number, read};
use crate::text::{counters, tables};

/// Where the calling thread's network namespace shows its tables. (`/proc/net` is that of the
/// process's first thread.)
const NET: &str = "/proc/thread-self/net";

/// The calling thread's namespace as it is now; `at_ms` is stamped by the caller, so that all that
/// is read for one moment bears the same time.
pub(crate) fn sample(at_ms: u64) -> NamespaceSample {
    let (listeners, sockets) = sockets::read();
    NamespaceSample {
        at_ms,
        counters: counters().into(),
        listeners,
        sockets,
        sockstat: known(format!("{NET}/sockstat"), tables::sockstat),
        conntrack: conntrack(),
        interfaces: interfaces::read(),
    }
}

fn counters() -> Result<BTreeMap<String, u64>, String> {
    let mut all = BTreeMap::new();
    counters::paired(&read(format!("{NET}/snmp"))?, &mut all);
    counters::paired(&read(format!("{NET}/netstat"))?, &mut all);
    // A kernel without IPv6 has none.
    if let Ok(text) = read(format!("{NET}/snmp6")) {
        counters::single(&text, &mut all);
    }
    Ok(all)
}

/// Connection tracking is there when its settings are.
fn conntrack() -> Known<Option<Conntrack>> {
    const SETTINGS: &str = "/proc/sys/net/netfilter";
    let count = format!("{SETTINGS}/nf_conntrack_count");
    match std::fs::exists(&count) {
        Ok(false) => return Known::Is(None),
        Ok(true) => {}
        Err(error) => return Known::unknown(format!("{count}: {}", crate::file::reason(&error))),
    }
    Known::Is(Some(Conntrack {
        count: number(count),
        max: number(format!("{SETTINGS}/nf_conntrack_max")),
        buckets: number(format!("{SETTINGS}/nf_conntrack_buckets")),
        stats: conntrack_stats(),
    }))
}

/// From the file where the kernel has it, else by netlink, which takes `CAP_NET_ADMIN`.
fn conntrack_stats() -> Known<BTreeMap<String, u64>> {
    let file = match read(format!("{NET}/stat/nf_conntrack")) {
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
