//! A certificate of a listener, or that of `[fleet.tls]`, expires soon, or has expired.
//!
//! **When.** Less than a fifth of a certificate's lifetime is left, and at most 21 days (critical: less than a
//! twentieth, and at most two days, or none). Or ACME has not issued one yet, and a self-signed one is in its place;
//! in the seconds after a first start that is no fault.
//!
//! **Why.** All clients refuse an expired certificate from the same second on. Other members refuse an expired certificate
//! of `[fleet.tls]`: session ticket keys and certificates are then no longer shared. Renewal normally happens when a third
//! of the lifetime is left, so it has failed, or nothing renews this certificate.
//!
//! **What to do.** Renew the file: a changed certificate comes into force without a restart. If Weir obtains it by
//! ACME, `weir status` shows why it has not been renewed.

use crate::facts::{Certificate, Facts};
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::view::Out;
use crate::words;

const MINUTE_S: i64 = 60;
const HOUR_S: i64 = 60 * MINUTE_S;
const DAY_S: i64 = 24 * HOUR_S;

const CRITICAL_SHARE: i64 = 20;
const CRITICAL_S: i64 = 2 * DAY_S;
const NAMES_SHOWN_MAX: usize = 3;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    super::unknown(super::BALANCER, &facts.balancer, out);
    let Some(balancer) = facts.balancer.get() else { return };
    for certificate in balancer.certificates.iter().filter(|one| one.ends_soon) {
        out.push(finding(certificate, out));
    }
}

fn finding(certificate: &Certificate, out: &Out) -> Finding {
    let Certificate { listener, file, names, not_after, left_s, lifetime_s, .. } = certificate;
    let owner = match listener {
        Some(listener) => format!("on listener {listener}"),
        None => "of this member of the fleet".to_owned(),
    };
    let is_critical =
        !certificate.is_placeholder && *left_s < (lifetime_s / CRITICAL_SHARE).min(CRITICAL_S);
    let severity = if is_critical { Severity::Critical } else { Severity::Warning };
    let names = words::list(names, NAMES_SHOWN_MAX);
    let what = if certificate.is_placeholder {
        format!("No certificate for {names} {owner} has been issued yet.")
    } else {
        let ends = if *left_s > 0 { "ends" } else { "ended" };
        format!("The certificate for {names} {owner} {ends} on {not_after}.")
    };
    let subject = format!("{file} of {}", listener.as_deref().unwrap_or(super::FLEET));
    let finding = out.finding(subject, severity, Certainty::Certain, what);
    let finding = if certificate.is_placeholder {
        finding.evidence(Evidence::text("in its place", "a self-signed certificate"))
    } else {
        finding
            .evidence(Evidence::text(
                if *left_s > 0 { "left" } else { "expired for" },
                time(*left_s),
            ))
            .evidence(Evidence::text("lifetime", time(*lifetime_s)))
    };
    let finding = finding.why(if certificate.is_placeholder {
        "Clients do not trust a self-signed certificate."
    } else if listener.is_none() {
        "Other members refuse an expired certificate: session ticket keys and certificates are no longer shared."
    } else {
        "Clients refuse an expired certificate, all of them from the same second on."
    });
    let finding = if certificate.is_by_acme {
        finding.remedy("See what ACME says", &["weir status"], "none")
    } else {
        let action = format!("Renew {file}: it comes into force without a restart");
        finding.remedy(action, &[], "none")
    };
    finding.verify("the finding is gone").source(&["the certificates of the balancer"])
}

/// A time in whole days, hours or minutes, whatever its sign.
fn time(seconds: i64) -> String {
    let seconds = seconds.saturating_abs();
    let (unit_s, unit) = [(DAY_S, "day"), (HOUR_S, "hour")]
        .into_iter()
        .find(|(unit_s, _)| seconds >= 2 * unit_s)
        .unwrap_or((MINUTE_S, "minute"));
    words::plural((seconds / unit_s).unsigned_abs(), unit)
}
