//! The certificates in force, as facts for the doctor and the daily reminder.

use diagnose::facts::Certificate;
use model::Snapshot;

/// Returns the readable certificates, with the time that is left at `now_s` seconds since 1970-01-01.
pub(crate) fn certificates(snapshot: &Snapshot, now_s: i64) -> Vec<Certificate> {
    let all = snapshot.certificates();
    all.filter_map(|(listener, certificate)| in_force(listener, certificate, now_s)).collect()
}

fn in_force(
    listener: Option<&str>,
    certificate: &model::Certificate,
    now_s: i64,
) -> Option<Certificate> {
    let facts = tls::facts(&certificate.chain).ok()?;
    Some(Certificate {
        listener: listener.map(str::to_owned),
        file: certificate.chain.path.display().to_string(),
        not_after: tls::date(facts.not_after),
        left_s: facts.not_after.saturating_sub(now_s),
        lifetime_s: facts.not_after.saturating_sub(facts.not_before),
        ends_soon: facts.ends_soon(now_s),
        is_by_acme: certificate.acme.is_some(),
        is_placeholder: acme::is_placeholder(certificate),
        names: facts.names,
    })
}
