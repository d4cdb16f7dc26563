//! Certificates by ACME for `/api/v1/status`.

use std::time::Duration;

use admin_api::status::{Acme, AcmeCertificate, AcmeFailure, AcmeRefusal};
use model::CertificateOwner;
use observe::TimestampCache;

use super::{Shared, Thread, lock};

/// Returns the state of all certificates by ACME; `None`: there are none.
pub(crate) fn report(shared: &Shared) -> Option<Acme> {
    let thread = lock(shared);
    let Thread { settings, handle, shared, .. } = thread.as_ref()?;
    let running = handle.as_ref().is_some_and(acme::Handle::is_running);
    let known = handle.as_ref().map(acme::Handle::status).unwrap_or_default();
    let certificates = if known.is_empty() {
        // It could not start, or has just started.
        let names = settings.certificates.iter().map(|one| one.names.clone());
        names.map(|names| AcmeCertificate { names, ..AcmeCertificate::default() }).collect()
    } else {
        let ordered_by = |names: &[String]| match shared
            .owner(&tls::certificate_id(&settings.directory, names))
        {
            CertificateOwner::Other(name) => Some(name.to_string()),
            CertificateOwner::Own | CertificateOwner::Unknown => None,
        };
        known.into_iter().map(|status| certificate(ordered_by(&status.names), status)).collect()
    };
    Some(Acme { directory: settings.directory.to_string(), running, certificates })
}

fn certificate(ordered_by: Option<String>, status: acme::Status) -> AcmeCertificate {
    let acme::Status { names, valid_until_s, renew_at_s, renewal_by_authority, failure } = status;
    let next_attempt_s = failure.as_ref().map(|failure| failure.retry_at_s).or(renew_at_s);
    AcmeCertificate {
        names,
        not_after: valid_until_s.map(time),
        next_attempt: next_attempt_s.map(time),
        renewal_by_authority,
        ordered_by,
        failure: failure.map(|failure| AcmeFailure {
            what: failure.what,
            refused: failure
                .refused
                .into_iter()
                .map(|(name, why)| AcmeRefusal { name, why })
                .collect(),
            count: failure.failures,
        }),
    }
}

/// Writes seconds since 1970-01-01 UTC as a time (RFC 3339).
pub(super) fn time(at_s: i64) -> String {
    let since = Duration::from_secs(u64::try_from(at_s).unwrap_or_default());
    TimestampCache::default().at(since).to_string()
}
