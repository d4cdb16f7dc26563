//! Certificates that processes share: one of them orders each by ACME, and gives it to the others.
//!
//! Connects two threads of this process. The ACME thread publishes which certificates the configuration needs, and which
//! it has. The control thread sets which process orders each, and adds certificates that other processes have. Neither
//! waits for the other.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};
use model::{CertificateId, CertificateOwner, CertificateVersion, Moment};

/// Returns the ID of the certificate that an authority issues for these names, in any order.
pub fn certificate_id(directory: &str, names: &[String]) -> CertificateId {
    let mut names: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    let mut digest = Context::new(&SHA256);
    digest.update(b"weir certificate v1");
    for part in std::iter::once(directory).chain(names.iter().map(String::as_str)) {
        digest.update(&(part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    CertificateId(first_bytes(digest))
}

/// Returns the first bytes of a digest.
fn first_bytes(digest: Context) -> [u8; 16] {
    digest.finish().as_ref().first_chunk().copied().unwrap_or_default()
}

/// An issued certificate with its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// Which one it is.
    pub version: CertificateVersion,
    /// Private key and chain, PEM.
    pub pem: Arc<[u8]>,
}

impl Issued {
    /// Returns the certificate with this text: private key and chain, PEM. `validity`: first and last second.
    pub fn new((not_before_s, not_after_s): (i64, i64), pem: Arc<[u8]>) -> Issued {
        let mut digest = Context::new(&SHA256);
        digest.update(b"weir issued certificate v1");
        digest.update(&pem);
        let version = CertificateVersion { not_before_s, not_after_s, digest: first_bytes(digest) };
        Issued { version, pem }
    }
}

/// Without the private key.
impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("version", &self.version).finish_non_exhaustive()
    }
}

/// A certificate that the configuration needs; `None`: this process has none.
pub type WantedCertificate = (CertificateId, Option<Issued>);

type Waker = Arc<dyn Fn() + Send + Sync>;

/// The certificates that this process shares with others, and theirs. While it is not shared
/// ([`SharedCertificates::set_shared`]), this process orders every certificate that it needs.
#[derive(Default)]
pub struct SharedCertificates {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_shared: bool,
    wanted: Arc<Vec<WantedCertificate>>,
    unable_until: Option<Moment>,
    is_ordering: bool,
    owners: HashMap<CertificateId, CertificateOwner>,
    received: HashMap<CertificateId, Arc<[u8]>>,
    answered: u64,
    acme_waker: Option<Waker>,
    fleet_waker: Option<Waker>,
}

/// For the ACME thread.
impl SharedCertificates {
    /// Sets what is called when [`SharedCertificates::owner`], [`SharedCertificates::take_received`] or
    /// [`SharedCertificates::all_answer`] may return something else. It must not block.
    pub fn set_acme_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        self.lock().acme_waker = Some(Arc::new(waker));
    }

    /// Sets the certificates that the configuration needs, with those that this process has.
    pub fn set_wanted(&self, wanted: Vec<WantedCertificate>) {
        let mut state = self.lock();
        state.wanted = Arc::new(wanted);
        wake_fleet(state);
    }

    /// Publishes that this process needs no certificate, and orders none: others must not wait for it.
    pub fn withdraw(&self) {
        let mut state = self.lock();
        (state.wanted, state.is_ordering) = (Arc::default(), false);
        wake_fleet(state);
    }

    /// Sets whether this process has an order under way.
    pub fn set_ordering(&self, is_ordering: bool) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_ordering, is_ordering) != is_ordering {
            wake_fleet(state);
        }
    }

    /// Sets until when others order in place of this process, since its last attempt failed for a reason that they may
    /// not have.
    pub fn set_unable(&self, until: Option<Moment>) {
        self.lock().unable_until = until;
    }

    /// Returns who orders this certificate.
    pub fn owner(&self, id: &CertificateId) -> CertificateOwner {
        let state = self.lock();
        let owner = state.owners.get(id).cloned();
        if state.is_shared {
            owner.unwrap_or(CertificateOwner::Unknown)
        } else {
            CertificateOwner::Own
        }
    }

    /// Takes the text of a certificate that was received from another process, if there is one.
    pub fn take_received(&self, id: &CertificateId) -> Option<Arc<[u8]>> {
        self.lock().received.remove(id)
    }

    /// Returns whether all other processes answer the challenges with this number ([`crate::Challenges::own`]).
    pub fn all_answer(&self, number: u64) -> bool {
        let state = self.lock();
        !state.is_shared || state.answered == number
    }
}

/// For the control thread.
impl SharedCertificates {
    /// Sets what is called after [`SharedCertificates::set_wanted`] and [`SharedCertificates::set_ordering`]. It must not
    /// block.
    pub fn set_fleet_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        self.lock().fleet_waker = Some(Arc::new(waker));
    }

    /// Shares certificates from now on, or no longer.
    pub fn set_shared(&self, is_shared: bool) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.is_shared, is_shared) == is_shared {
            return;
        }
        state.owners.clear();
        state.received.clear();
        state.answered = 0;
        wake_acme(state);
    }

    /// Returns the certificates that the configuration needs, with those that this process has.
    pub fn wanted(&self) -> Arc<Vec<WantedCertificate>> {
        Arc::clone(&self.lock().wanted)
    }

    /// Returns whether this process has an order under way.
    pub fn is_ordering(&self) -> bool {
        self.lock().is_ordering
    }

    /// Returns whether others are to order in place of this process.
    pub fn is_unable(&self, now: Moment) -> bool {
        self.lock().unable_until.is_some_and(|until| now < until)
    }

    /// Sets who orders each certificate, and the number of this process's challenges that all others answer.
    pub fn set_owners(&self, owners: HashMap<CertificateId, CertificateOwner>, answered: u64) {
        let mut state = self.lock();
        if state.is_shared && (state.answered != answered || state.owners != owners) {
            (state.owners, state.answered) = (owners, answered);
            wake_acme(state);
        }
    }

    /// Adds a certificate that was received from another process.
    pub fn add_received(&self, id: CertificateId, pem: Arc<[u8]>) {
        let mut state = self.lock();
        if state.is_shared {
            state.received.insert(id, pem);
            wake_acme(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the ACME thread, without the lock, which it takes.
fn wake_acme(state: MutexGuard<'_, State>) {
    let waker = state.acme_waker.clone();
    drop(state);
    if let Some(waker) = waker {
        waker();
    }
}

/// As [`wake_acme`], for the control thread.
fn wake_fleet(state: MutexGuard<'_, State>) {
    let waker = state.fleet_waker.clone();
    drop(state);
    if let Some(waker) = waker {
        waker();
    }
}

/// Counts only.
impl fmt::Debug for SharedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("SharedCertificates")
            .field("is_shared", &state.is_shared)
            .field("wanted", &state.wanted.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn a_certificate_is_known_by_its_authority_and_its_names() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let one = certificate_id("https://ca/dir", &names(&["a.example", "b.example"]));
        assert_eq!(
            one,
            certificate_id("https://ca/dir", &names(&["B.example", "a.example", "a.example"]))
        );
        assert_ne!(one, certificate_id("https://ca/di", &names(&["ra.example", "b.example"])));
        assert_ne!(one, certificate_id("https://ca/dir", &names(&["a.exampleb.example"])));
    }

    #[test]
    fn received_certificates_and_owners_count_only_while_they_are_shared() {
        let shared = SharedCertificates::default();
        let woken = Arc::new(AtomicUsize::new(0));
        let by_others = Arc::clone(&woken);
        shared.set_acme_waker(move || {
            by_others.fetch_add(1, Relaxed);
        });
        let id = certificate_id("https://ca/dir", &["a.example".to_owned()]);
        assert_eq!(shared.owner(&id), CertificateOwner::Own);
        assert!(shared.all_answer(7));
        shared.add_received(id, Arc::from(*b"pem"));
        assert_eq!(shared.take_received(&id), None);
        assert_eq!(woken.load(Relaxed), 0);

        shared.set_shared(true);
        assert_eq!(shared.owner(&id), CertificateOwner::Unknown);
        assert!(!shared.all_answer(7));
        let other = CertificateOwner::Other("b2".into());
        shared.set_owners(HashMap::from([(id, other.clone())]), 7);
        assert_eq!(shared.owner(&id), other);
        assert!(shared.all_answer(7));
        shared.set_owners(HashMap::from([(id, other)]), 7);
        shared.add_received(id, Arc::from(*b"pem"));
        assert_eq!(woken.load(Relaxed), 3, "sharing, the orders, the certificate");
        assert_eq!(shared.take_received(&id).as_deref(), Some(&b"pem"[..]));
        assert_eq!(shared.take_received(&id), None);

        shared.set_shared(false);
        assert_eq!(shared.owner(&id), CertificateOwner::Own);
    }

    #[test]
    fn others_order_while_this_process_cannot() {
        let shared = SharedCertificates::default();
        let at = Moment::from_millis;
        assert!(!shared.is_unable(at(0)));
        shared.set_unable(Some(at(10)));
        assert!(shared.is_unable(at(9)) && !shared.is_unable(at(10)));
        let issued = Issued::new((1, 2), Arc::from(*b"SECRET"));
        assert!(!format!("{issued:?}").contains("SECRET"));
        assert_ne!(issued.version, Issued::new((1, 2), Arc::from(*b"OTHER")).version);
    }
}
