//! Reads facts about the machine as a whole.

pub(crate) mod cgroups;
mod hypervisor;
mod sysctl_files;

use diagnose::facts::{Host, HostSample, Known, LogLine, Neighbours, SystemMemory};

use crate::file::{known, number, read, reason};
use crate::text::{cpu, kmsg, tables};

pub(crate) use cgroups::Cgroups;
pub(crate) use hypervisor::hypervisor;
pub(crate) use sysctl_files::sysctl_files;

/// The last lines of the kernel's log that speak of the network; older ones repeat them.
const LOG_LINES_MAX: usize = 200;

/// What does not change while one looks.
pub(crate) fn host() -> Host {
    Host {
        kernel_release: known("/proc/sys/kernel/osrelease", |text| Some(text.trim().to_owned())),
        page_size_bytes: Known::Is(os::limits::page_size_bytes() as u64),
        memory_bytes: known("/proc/meminfo", |text| cpu::memory_bytes(text, "MemTotal")),
        hypervisor: hypervisor(),
        product: known("/sys/class/dmi/id/product_name", |text| Some(text.trim().to_owned())),
        sysctl_files: sysctl_files(),
        kernel_log: kernel_log(),
        ..Host::default()
    }
}

/// Lines of the kernel's log that speak of the network.
pub(crate) fn kernel_log() -> Known<Vec<LogLine>> {
    let mut lines = std::collections::VecDeque::new();
    let read = os::kernel_log::each(|record| {
        if let Some(line) = kmsg::record(record) {
            lines.push_back(line);
            if lines.len() > LOG_LINES_MAX {
                lines.pop_front();
            }
        }
    });
    match read {
        Ok(()) => Known::Is(lines.into()),
        Err(error) => Known::unknown(format!("/dev/kmsg: {}", reason(&error))),
    }
}

/// The machine as it is now. `interfaces` are the names of the own namespace's; `neighbours` were
/// read in the first namespace, where alone they are shown.
pub(crate) fn sample(
    at_ms: u64,
    interfaces: &[&str],
    cgroups: &Cgroups,
    neighbours: Known<Vec<Neighbours>>,
) -> HostSample {
    let (cpu, cpus) = match known("/proc/stat", cpu::stat) {
        Known::Is((total, each)) => (Known::Is(total), Known::Is(each)),
        Known::Unknown(why) => (Known::unknown(why.clone()), Known::unknown(why)),
    };
    let softnet = |text: &str| Some(tables::softnet(text)).filter(|rows| !rows.is_empty());
    let available = |text: &str| {
        let available_bytes = cpu::memory_bytes(text, "MemAvailable")?;
        Some(SystemMemory { available_bytes, ..SystemMemory::default() })
    };
    HostSample {
        at_ms,
        cpu,
        cpus,
        // The same rows in every namespace.
        softnet: known("/proc/thread-self/net/softnet_stat", softnet),
        interrupts: known("/proc/interrupts", |text| Some(cpu::interrupts(text, interfaces))),
        cgroups: cgroups.read(),
        memory: known("/proc/meminfo", available),
        neighbours,
    }
}

/// Neighbour tables, as the calling thread's namespace shows them: only the first one does.
pub(crate) fn neighbours() -> Known<Vec<Neighbours>> {
    let mut all = Vec::new();
    for (family, cache) in [("ipv4", "arp_cache"), ("ipv6", "ndisc_cache")] {
        let path = format!("/proc/thread-self/net/stat/{cache}");
        let table = match read(&path) {
            Ok(text) => tables::per_processor(&text),
            // A kernel without IPv6 has no such table.
            Err(_) if !all.is_empty() => break,
            Err(why) => {
                return Known::unknown(format!(
                    "{why}; only the machine's first network namespace shows it"
                ));
            }
        };
        let column = |name: &str| match table.get(name) {
            Some(&number) => Known::Is(number),
            None => Known::unknown(format!("{path} has no column {name}")),
        };
        let threshold =
            |n: u8| number(format!("/proc/sys/net/{family}/neigh/default/gc_thresh{n}"));
        all.push(Neighbours {
            family: family.to_owned(),
            entries: column("entries"),
            gc_thresh2: threshold(2),
            gc_thresh3: threshold(3),
            table_fulls: column("table_fulls"),
        });
    }
    Known::Is(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_processors_and_memory() {
        let host = host();
        assert!(host.kernel_release.get().is_some_and(|release| release.contains('.')));
        assert!(host.memory_bytes.get().is_some_and(|&bytes| bytes > 1 << 20));
        let sample = sample(1, &[], &Cgroups::find(), neighbours());
        assert!(sample.cpu.get().is_some_and(|cpu| cpu.total() > 0));
        assert!(sample.softnet.get().is_some() && sample.memory.get().is_some());
    }
}
