//! Certificates by ACME, as `weir status` shows them.

use std::fmt::Write as _;

use admin_api::status::{Acme, AcmeCertificate, AcmeFailure};

/// Names on one line; the JSON form has all.
const NAMES_SHOWN_MAX: usize = 3;

/// Returns a line for each certificate, and one for what keeps it from being renewed.
pub(super) fn text(acme: &Acme) -> String {
    let Acme { directory, running, certificates } = acme;
    let mut out = format!("\ncertificates by ACME from {directory}");
    // Writing to a String cannot fail.
    let _ = match running {
        true => writeln!(out, ":"),
        false => writeln!(out, ": NOT RENEWED, the ACME thread does not run; see Weir's log"),
    };
    for one in certificates {
        let AcmeCertificate { names, not_after, next_attempt, .. } = one;
        let AcmeCertificate { renewal_by_authority, ordered_by, failure, .. } = one;
        let shown: Vec<&str> = names.iter().take(NAMES_SHOWN_MAX).map(String::as_str).collect();
        let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let valid = match not_after {
            Some(not_after) => format!("valid until {not_after}"),
            None => "not issued yet".to_owned(),
        };
        let next = match (next_attempt, failure) {
            (None, _) => String::new(),
            (Some(at), Some(_)) => format!(", next attempt {at}"),
            (Some(at), None) if *renewal_by_authority => {
                format!(", renewed {at} as the authority asks")
            }
            (Some(at), None) => format!(", renewed {at}"),
        };
        let by =
            ordered_by.as_ref().map_or_else(String::new, |name| format!(", ordered by {name}"));
        let _ = writeln!(out, "  {}{more}: {valid}{next}{by}", shown.join(", "));
        if let Some(AcmeFailure { what, refused, count }) = failure {
            let times = if *count == 1 { "once" } else { &format!("{count} times, last") };
            let _ = writeln!(out, "    failed {times}: {what}");
            for refusal in refused {
                let _ = writeln!(out, "    {}: {}", refusal.name, refusal.why);
            }
        }
    }
    out
}
