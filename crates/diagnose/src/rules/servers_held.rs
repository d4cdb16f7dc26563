//! The source of a service lists far fewer servers than before, and Weir keeps the missing ones.
//!
//! **When.** One answer of the source lists fewer than `hold_share` of the servers that it listed before, or none,
//! and `hold_max` has not passed since: warning. Critical if the source lists none that is ready.
//!
//! **Why.** A catalogue that restarts empty, a token that may read nothing, or a script that writes half a file
//! looks the same as servers that are gone. Weir keeps the missing servers for `hold_max` and uses them like
//! backups, after a passing check if the service has one, so that a mistake of the source is no outage.
//!
//! **What to do.** If the servers were removed on purpose, do nothing: they leave when `hold_max` is over. If not,
//! find out why the source does not list them. Without a `check`, requests may go to servers that are gone.

use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    for source in traffic.sources.iter().filter(|source| source.held > 0) {
        let is_ready = source.listed > 0 || source.flapping > 0;
        let severity = if is_ready { Severity::Warning } else { Severity::Critical };
        let listed = words::sum([source.listed, source.flapping, source.not_ready]);
        let before = words::sum([listed, source.held]);
        let what = format!(
            "{} lists {} of {} servers of {}; the missing ones are kept and used last.",
            source.source,
            words::thousands(listed),
            words::thousands(before),
            source.service,
        );
        out.push(
            out.finding(source.service.clone(), severity, Certainty::Certain, what)
                .about(&source.service, [""; 0])
                .evidence(Evidence::count("servers that are listed", listed, ""))
                .evidence(Evidence::count("servers that are kept", source.held, ""))
                .why("A source that fails may look like servers that are gone.")
                .remedy(
                    "Find out why the source no longer lists them; if they are gone, wait for hold_max",
                    &["weir status"],
                    "none",
                )
                .verify("weir status shows no servers that are no longer listed but kept")
                .source(&["the state of the service's source in /api/v1/services"]),
        );
    }
}
