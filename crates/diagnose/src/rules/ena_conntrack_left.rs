//! The provider's connection tracking table for this instance is nearly full.
//!
//! **When.** `conntrack_allowance_available`, a gauge of the ENA driver, falls so fast that it
//! reaches zero within an hour, or is below a tenth of its value in the first sample.
//!
//! **Why.** At zero, the provider drops packets of new connections (`ena_shaped`), and no counter
//! of the kernel shows it.
//!
//! **What to do.** Use fewer and longer connections, security-group rules that need no tracking, or
//! a larger instance.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const WITHIN_S: f64 = 3600.0;
const SHARE_MIN: f64 = 0.1;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const NAME: &str = "conntrack_allowance_available";
    let (Some(first), Some(last)) = (view.namespace.samples.first(), view.last()) else { return };
    let (Some(before), Some(after)) =
        (out.want("interfaces", &first.interfaces), out.want("interfaces", &last.interfaces))
    else {
        return;
    };
    for now in after {
        let then = before.iter().find(|one| one.name == now.name);
        let gauge = |one: &crate::facts::Interface| one.statistics.get()?.get(NAME).copied();
        let (Some(left), Some(was)) = (gauge(now), then.and_then(gauge)) else { continue };
        let Some(lost) = was.checked_sub(left).filter(|&lost| lost > 0) else { continue };
        let per_s = lost as f64 / view.seconds().max(f64::MIN_POSITIVE);
        let zero_in_s = left as f64 / per_s;
        if zero_in_s > WITHIN_S && left as f64 >= SHARE_MIN * was as f64 {
            continue;
        }
        out.push(
            out.finding(
                format!("{} {NAME}", now.name),
                Severity::Warning,
                Certainty::Possible,
                format!(
                    "At this rate, the provider's connection tracking table for {} is full in {} minutes.",
                    now.name,
                    words::number(zero_in_s / 60.0)
                ),
            )
            .evidence(Evidence::count(NAME, left, "connections"))
            .evidence(Evidence::number("falls by", per_s, "connections per second"))
            .why("At zero, packets of new connections are dropped outside this machine.")
            .remedy(
                "Keep connections alive, and allow traffic both ways in the security group, so that it is not tracked",
                &[],
                "an open security group protects less",
            )
            .verify(format!("ethtool -S {} | grep {NAME} no longer falls", now.name))
            .source(&["ethtool statistics"]),
        );
    }
}
