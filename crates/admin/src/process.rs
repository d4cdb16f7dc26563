//! This process's resource usage, from /proc.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use observe::exposition::ProcessGauges;

/// Returns the current figures; `None` if /proc does not have them.
pub(crate) fn gauges() -> Option<ProcessGauges> {
    let (fds_max, _) = os::limits::nofile();
    let (cpu, resident_bytes) = cpu_and_resident_bytes()?;
    Some(ProcessGauges {
        start_time: start_time(),
        cpu,
        resident_bytes,
        // Reading the directory opens one descriptor, which is closed afterwards.
        open_fds: (fs::read_dir("/proc/self/fd").ok()?.count() as u64).saturating_sub(1),
        fds_max,
    })
}

/// Returns when this process started. It is computed once: the distance between the two clocks differs
/// a little with every reading, and Prometheus would count each difference as a restart.
fn start_time() -> Duration {
    static START: OnceLock<Duration> = OnceLock::new();
    *START.get_or_init(|| {
        let uptime = Duration::from_micros(os::clock::now().as_micros());
        os::clock::wall().saturating_sub(uptime)
    })
}

/// Returns user and system CPU time, and resident memory: what can be read in a few microseconds.
pub fn cpu_and_resident_bytes() -> Option<(Duration, u64)> {
    let cpu = cpu(&fs::read_to_string("/proc/self/stat").ok()?)?;
    Some((cpu, resident_bytes(&fs::read_to_string("/proc/self/statm").ok()?)?))
}

/// Returns user and system time from /proc/self/stat. Fields are counted from the last parenthesis,
/// because the program's name comes before and may contain anything.
fn cpu(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    // proc(5): utime and stime are fields 14 and 15; the name is followed by field 3.
    let mut times = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    let ticks_per_s = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64((user + system) as f64 / ticks_per_s as f64))
}

fn resident_bytes(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_read_rightly() {
        let gauges = gauges().unwrap();
        assert!(gauges.resident_bytes > 100_000, "{gauges:?}");
        assert!((3..10_000).contains(&gauges.open_fds), "{gauges:?}");
        assert!(gauges.fds_max >= gauges.open_fds);
    }

    #[test]
    fn the_start_time_never_changes() {
        let first = start_time();
        assert!((0..1_000).all(|_| start_time() == first));
    }

    #[test]
    fn a_strange_name_does_not_move_the_fields() {
        let ticks = rustix::param::clock_ticks_per_second();
        let stat = format!("1 (a ) b) S 1 1 1 0 -1 4194560 1 2 3 4 {ticks} {ticks} 0 0 20 0 1");
        assert_eq!(cpu(&stat), Some(Duration::from_secs(2)));
        assert_eq!(cpu("nothing"), None);
    }
}
