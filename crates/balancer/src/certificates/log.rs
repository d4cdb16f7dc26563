//! What the log says about certificates by ACME: what happened, for which names, what Weir does now,
//! and when it tries again.

use acme::{Event, Failure, Source, Update};
use model::Acme;

/// Logs an event; called on the thread that obtains certificates.
pub(super) fn log(event: &Event, settings: &Acme) {
    match event {
        Event::Certificate(update) => certificate(update, settings),
        Event::Failed(failure) => failed(failure),
        Event::NotUsed { names, why } => {
            let names = names.join(", ");
            tracing::warn!(
                names,
                "a certificate from another fleet member is not used: {why}. The one in use stays in use"
            );
        }
        Event::NotStored { names, why } => {
            let names = names.join(", ");
            tracing::warn!(
                names,
                "a certificate from another fleet member is in use, but could not be stored: {why}. It is fetched again after a restart"
            );
        }
        Event::Ignored(line) => {
            tracing::warn!("{line}; the file is ignored, and replaced by the next order");
        }
    }
}

fn certificate(update: &Update, settings: &Acme) {
    let Update { index, stored, source } = update;
    let names = settings.certificates.get(*index).map(|one| one.names.join(", "));
    let (names, until) = (names.unwrap_or_default(), tls::date(stored.facts.not_after));
    match source {
        Source::Stored => tracing::debug!(names, until, "certificate found in the state directory"),
        Source::Issued => {
            tracing::info!(names, until, "certificate issued by ACME; it takes effect now");
        }
        Source::AnotherMember => {
            tracing::info!(
                names,
                until,
                "certificate issued by ACME to another member of the fleet; it takes effect now"
            );
        }
        Source::AnotherProcess => {
            tracing::info!(
                names,
                until,
                "certificate issued by ACME to another process; it takes effect now"
            );
        }
    }
}

fn failed(failure: &Failure) {
    let Failure { valid_until_s, retry_at_s, failures, .. } = failure;
    let retry_at = super::report::time(*retry_at_s);
    let meanwhile = match valid_until_s {
        Some(until_s) if *until_s > os::clock::wall().as_secs().cast_signed() => {
            format!("the one in use stays in use and is valid until {}", tls::date(*until_s))
        }
        Some(until_s) => {
            format!("the one in use has expired on {}, and clients refuse it", tls::date(*until_s))
        }
        None => "clients get a self-signed one, which they refuse".to_owned(),
    };
    tracing::warn!(retry_at, failures, "{failure}; {meanwhile}");
}
