//! CPU throttling: a cgroup uses up its CPU quota, and its programs are paused.
//!
//! **When.** Between the samples, a cgroup used up its quota before its period ended
//! (`nr_throttled` of `cpu.stat` rises, cgroup v1 and v2). Advice if this is rare, a warning if it
//! happens in 5 % of the periods, critical from 25 %.
//!
//! **Why.** All threads of the cgroup are paused for the rest of the period, usually up to 100 ms.
//! This looks like random latency on a machine whose CPUs seem idle. Several threads use up a quota
//! in a fraction of the period: 8 threads with a quota of two CPUs need 25 ms.
//!
//! **What to do.** Raise the quota, or remove it and use weights (CPU requests) instead; run as
//! many threads as the quota has CPUs; shorten the period. In Kubernetes the quota is `limits.cpu`.

use crate::facts::{Cgroup, CgroupVersion, Facts};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, host_both, host_seconds};
use crate::words;

const WARNING_SHARE: f64 = 0.05;
const CRITICAL_SHARE: f64 = 0.25;
const PROGRAMS_SHOWN_MAX: usize = 3;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    const WHAT: &str = "CPU quotas of cgroups";
    let host = &facts.host;
    let Some((first, last)) = host_both(host, WHAT, |sample| &sample.cgroups, out) else { return };
    for now in last {
        let same = |one: &&Cgroup| one.path == now.path && one.version == now.version;
        let Some(before) = first.iter().find(same) else { continue };
        let change = |of: fn(&Cgroup) -> &crate::facts::Known<u64>| {
            Change::between(*of(before).get()?, *of(now).get()?, host_seconds(host)).ok()
        };
        let Some(&_) = out.want(WHAT, &now.throttled_periods) else { continue };
        let Some(throttled) = change(|one| &one.throttled_periods).filter(|one| one.is_rising())
        else {
            continue;
        };
        let periods = change(|one| &one.periods);
        let stood_still = change(|one| &one.throttled_us);
        push(now, throttled, periods, stood_still, out);
    }
}

fn push(
    cgroup: &Cgroup,
    throttled: Change,
    periods: Option<Change>,
    stood_still: Option<Change>,
    out: &mut Out,
) {
    let share = periods.map_or(0.0, |one| throttled.by as f64 / one.by.max(1) as f64);
    let severity = if share >= CRITICAL_SHARE {
        Severity::Critical
    } else if share >= WARNING_SHARE {
        Severity::Warning
    } else {
        Severity::Advice
    };
    let cpus = match (cgroup.quota_us.get(), cgroup.period_us.get()) {
        (Some(Some(quota)), Some(period)) => Some(*quota as f64 / (*period).max(1) as f64),
        _ => None,
    };
    let whom = if cgroup.programs.is_empty() {
        cgroup.path.clone()
    } else {
        words::list(&cgroup.programs, PROGRAMS_SHOWN_MAX)
    };
    let path = &cgroup.path;
    let (file, raise) = match cgroup.version {
        CgroupVersion::V1 => (
            "cpu.stat (cgroup v1)",
            format!("echo 400000 > /sys/fs/cgroup/cpu{path}/cpu.cfs_quota_us"),
        ),
        CgroupVersion::V2 => {
            ("cpu.stat (cgroup v2)", format!("echo '400000 100000' > /sys/fs/cgroup{path}/cpu.max"))
        }
    };
    out.push(
        out.finding(
            path.clone(),
            severity,
            Certainty::Certain,
            format!("CPU throttling: {whom} exceeds its CPU quota in {} of its periods.", words::percent(share)),
        )
        .evidence(throttled.evidence("nr_throttled"))
        .evidences(periods.map(|one| one.evidence("nr_periods")))
        .evidences(stood_still.map(|one| {
            Evidence::number("threads paused", one.per_s() / 1000.0, "ms per second, summed over threads")
        }))
        .evidences(cpus.map(|cpus| Evidence::number("quota", cpus, "CPUs")))
        .evidences(cgroup.period_us.get().map(|&us| Evidence::number("period", us as f64 / 1000.0, "ms")))
        .why("All its threads are paused until the period ends, which looks like random latency while CPUs are idle.")
        .remedy(
            "Raise the quota, here to four CPUs; in Kubernetes `limits.cpu`, in systemd `CPUQuota=400%`",
            &[&raise],
            "the programs can then take that much CPU from others",
        )
        .remedy("Run as many threads as the quota has CPUs", &[], "less throughput if the quota was never used up")
        .verify("nr_throttled in cpu.stat no longer rises under the same load")
        .source(&[file]),
    );
}
