//! The certificates of the listeners in force, as facts for the doctor and the daily reminder.

use diagnose::facts::Certificate;
use model::Snapshot;

/// Returns the readable certificates, with the time that is left at `now_s` seconds since 1970-01-01.
pub(crate) fn certificates(snapshot: &Snapshot, now_s: i64) -> Vec<Certificate> {
    let mut found = Vec::new();
    for listener in &snapshot.listeners {
        for certificate in listener.tls.iter().flat_map(|tls| &tls.certificates) {
            let Ok(facts) = tls::facts(&certificate.chain) else { continue };
            found.push(Certificate {
                listener: listener.name.to_string(),
                file: certificate.chain.path.display().to_string(),
                not_after: tls::date(facts.not_after),
                left_s: facts.not_after.saturating_sub(now_s),
                lifetime_s: facts.not_after.saturating_sub(facts.not_before),
                ends_soon: facts.ends_soon(now_s),
                is_by_acme: certificate.acme.is_some(),
                is_placeholder: acme::is_placeholder(certificate),
                names: facts.names,
            });
        }
    }
    found
}
