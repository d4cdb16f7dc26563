//! CPU steal: the hypervisor gives this machine's processor time to other machines.
//!
//! **When.** Steal (`/proc/stat`, eighth field) is above 5 % of all processor time between the
//! samples (warning), or above 10 % (critical).
//!
//! **Why.** The machine was ready to run, but the hypervisor did not schedule it: another virtual
//! machine uses too much, or a burstable instance has spent its CPU credits. Tools that show CPU
//! usage without steal hide this: a machine at "80 %" may have no capacity left, as the graphs of
//! one company showed.
//!
//! **What to do.** Check the credit balance at the provider (it is not visible from the machine),
//! choose an instance type without credits, or move to another host. Steal of 0 does not prove that
//! credits remain.
//!
//! **Burst credits.** A burstable instance whose credits are spent is held to its baseline: steal
//! rises while what the machine gets stays near a share that its type fixes. Where the firmware
//! tells the type (that of Amazon's T3, T3a and T4g does), the finding compares the two.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, host_both};
use crate::words;

const WARNING_SHARE: f64 = 0.05;
const CRITICAL_SHARE: f64 = 0.10;

/// What a burstable type gets once its credits are spent, as a share of each of its processors:
/// "Baseline utilization per vCPU" in Amazon's guide to EC2, burstable performance instances.
/// T2 is not among them: its hypervisor does not tell the type.
const FAMILIES: [&str; 3] = ["t3", "t3a", "t4g"];
const BASELINES: [(&str, f64); 7] = [
    ("nano", 0.05),
    ("micro", 0.10),
    ("small", 0.20),
    ("medium", 0.20),
    ("large", 0.30),
    ("xlarge", 0.40),
    ("2xlarge", 0.40),
];
/// A machine that is held to its baseline gets that much, give or take this part of it.
const NEAR_BASELINE: f64 = 0.25;

/// The baseline of an instance type, as a share of each processor; `None` for one that bursts not.
fn baseline(product: &str) -> Option<f64> {
    let (family, size) = product.split_once('.')?;
    let (_, share) = BASELINES.iter().find(|(name, _)| *name == size)?;
    FAMILIES.contains(&family).then_some(*share)
}

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((first, last)) = host_both(&facts.host, "processor time", |sample| &sample.cpu, out)
    else {
        return;
    };
    let (Some(total), Some(steal)) =
        (last.total().checked_sub(first.total()), last.steal.checked_sub(first.steal))
    else {
        return out.could_not("processor time", "the counters went backwards between the samples");
    };
    let share = steal as f64 / total.max(1) as f64;
    if share <= WARNING_SHARE {
        return;
    }
    let idle = last.idle.saturating_sub(first.idle) as f64 / total.max(1) as f64;
    let given = 1.0 - share - idle;
    let product = facts.host.product.get();
    let baseline = product.and_then(|product| baseline(product));
    // A machine that idles more than it is held back has not used what it was given.
    let near = |at: f64| (given - at).abs() <= at * NEAR_BASELINE;
    let is_held = share > idle && baseline.is_some_and(near);
    let credits = if is_held {
        " It gets only its type's baseline, so its burst credits are probably spent."
    } else {
        ""
    };
    out.push(
        out.finding(
            "steal",
            if share > CRITICAL_SHARE { Severity::Critical } else { Severity::Warning },
            Certainty::Likely,
            format!(
                "CPU steal: {} of the processor time is given to other machines.{credits}",
                words::percent(share)
            ),
        )
        .evidence(Evidence::text(
            "steal",
            format!("{} of all processor time", words::percent(share)),
        ))
        .evidence(Evidence::text("idle", format!("{} of all processor time", words::percent(idle))))
        .evidences(
            facts
                .host
                .hypervisor
                .get()
                .and_then(Option::as_ref)
                .map(|one| Evidence::text("hypervisor", one)),
        )
        .evidences(baseline.zip(product).map(|(at, product)| {
            Evidence::text(
                format!("{product}, a burstable type"),
                format!(
                    "gets {} of each processor now; its baseline is {}",
                    words::percent(given),
                    words::percent(at)
                ),
            )
        }))
        .why("Requests wait while the hypervisor pauses the machine, and programs on it cannot detect why.")
        .remedy(
            "Check the credit balance at the provider; choose an instance type without credits, or move to another host",
            &["vmstat 1 5"],
            "a larger instance costs more",
        )
        .verify("`st` in vmstat 1 stays below 1")
        .source(&["/proc/stat"]),
    );
}
