//! Logs once a day which certificates expire soon. A start and a reload log it too, but a process
//! may run for longer than its certificates are valid.

use std::time::Duration;

use diagnose::facts::Certificate;
use model::{Moment, Snapshot};

use crate::certificates_in_force::certificates;

/// Interval between reminders.
const EVERY: Duration = Duration::from_hours(24);

/// When the next reminder is due.
pub(crate) struct CertificateReminder {
    next: Moment,
}

impl CertificateReminder {
    /// Starts a day after startup, which has logged it itself.
    pub(crate) fn new() -> CertificateReminder {
        CertificateReminder { next: os::clock::now() + EVERY }
    }

    /// Logs it, if it is due.
    pub(crate) fn look(&mut self, snapshot: &Snapshot) {
        let now = os::clock::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        for line in ending(snapshot, os::clock::wall().as_secs().cast_signed()) {
            tracing::warn!("{line}");
        }
    }
}

/// Returns a line for each certificate that expires soon, or has expired, at `now_s` seconds since
/// 1970-01-01.
fn ending(snapshot: &Snapshot, now_s: i64) -> Vec<String> {
    let ending = certificates(snapshot, now_s).into_iter().filter(|one| one.ends_soon);
    let lines = ending.map(|one| {
        let Certificate { listener, file, names, not_after, is_by_acme, .. } = one;
        let names = names.join(", ");
        let remedy = if is_by_acme {
            "ACME has not renewed it: `weir status` shows why"
        } else {
            "renew its file, and it comes into force by itself"
        };
        let owner = listener.map_or_else(
            || "this member of the fleet".to_owned(),
            |listener| format!("listener {listener}"),
        );
        format!("the certificate of {owner} ({file}, for {names}) ends on {not_after}; {remedy}")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: i64 = 24 * 3600;

    #[test]
    fn a_certificate_that_ends_soon_or_has_ended_is_named() {
        let made = rcgen::generate_simple_self_signed(["a.example.com".to_owned()]).unwrap();
        let chain =
            model::Material { path: "a.pem".into(), bytes: made.cert.pem().into_bytes().into() };
        let not_after = tls::facts(&chain).unwrap().not_after;
        let certificate = model::Certificate { key: chain.clone(), chain, ocsp: None, acme: None };
        let mut snapshot = Snapshot::empty();
        snapshot.listeners.push(listener(certificate));
        assert_eq!(ending(&snapshot, not_after - 22 * DAY_S).len(), 0);
        let soon = ending(&snapshot, not_after - 20 * DAY_S);
        assert_eq!(soon.len(), 1);
        let begin = "the certificate of listener public (a.pem, for a.example.com) ends on ";
        assert!(soon[0].starts_with(begin), "{soon:?}");
        assert_eq!(ending(&snapshot, not_after + DAY_S).len(), 1);
    }

    fn listener(certificate: model::Certificate) -> model::Listener {
        let text = "[[listener]]\nname = \"public\"\naddress = \"127.0.0.1:1\"\n[[route]]\nservice = \"a\"\n\
                    [service.a]\n[[service.a.server]]\naddress = \"127.0.0.1:2\"\n";
        let checked = config::check(text, "test", &()).unwrap();
        let mut listener = checked.snapshot.listeners[0].clone();
        listener.tls = Some(model::ListenerTls {
            certificates: vec![certificate],
            unknown_names: model::UnknownNames::First,
            version_min: model::TlsVersion::Tls12,
            client_certificates: None,
            ciphers: Vec::new(),
            hsts: None,
        });
        listener
    }
}
