//! Answers to the challenges of a certificate authority (ACME) that are pending now: key
//! authorizations for HTTP-01 (RFC 8555 section 8.3) and certificates for TLS-ALPN-01 (RFC 8737).
//!
//! Listeners look here for requests and handshakes of an authority. Both tables are empty except
//! for seconds at a time, and then a lookup costs one atomic load.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::{Mistake, Part, provider};

/// What the path of an HTTP-01 request begins with; the token follows (RFC 8555 section 8.3).
pub const HTTP_01_PREFIX: &str = "/.well-known/acme-challenge/";

/// The ALPN protocol of TLS-ALPN-01 (RFC 8737 section 6.2).
pub const ACME_TLS_1: &[u8] = b"acme-tls/1";

/// Maximum number of pending challenges of each kind. An authority accepts at most 100 names in
/// an order, and orders are made one after the other.
pub const CHALLENGES_PENDING_MAX: usize = 1024;

/// The digest in the certificate of TLS-ALPN-01: SHA-256.
const DIGEST_BYTES: usize = 32;

/// The pending challenges, shared between the ACME client, which adds and removes them, and
/// listeners, which answer them.
#[derive(Default)]
pub struct Challenges {
    http: Table<Arc<str>>,
    tls: Arc<Table<Arc<CertifiedKey>>>,
    own: Mutex<Own>,
}

/// Answers for this process's own orders.
#[derive(Default)]
struct Own {
    /// Incremented with each change; also the key of `pending`.
    changes: u64,
    pending: BTreeMap<u64, Answer>,
    /// Called after a change.
    waker: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Own {
    fn number(&self) -> u64 {
        if self.pending.is_empty() { 0 } else { self.changes }
    }
}

/// Whose order an answer is for.
#[derive(Clone, Copy)]
enum OrderOf {
    Own,
    Other,
}

/// An answer to a challenge. Secret: a host that gives this answer can obtain a certificate for the name.
#[derive(Clone, PartialEq, Eq)]
pub enum Answer {
    /// To HTTP-01.
    Http {
        /// The challenge's token.
        token: String,
        /// The key authorization.
        key_authorization: String,
    },
    /// To TLS-ALPN-01.
    Tls {
        /// A DNS name or an IP address.
        name: String,
        /// The SHA-256 digest of the key authorization.
        digest: Vec<u8>,
    },
}

/// Answers by token or name. `count` is the table's size, so that looking into an empty table takes
/// no lock.
struct Table<V> {
    count: AtomicUsize,
    answers: Mutex<Answers<V>>,
}

struct Answers<V> {
    /// Each with its number. The last one for a key is given; those of own orders come after those of others.
    by_key: HashMap<String, Vec<(u64, V)>>,
    count: usize,
    /// The number of the next answer.
    next: u64,
}

/// A pending challenge. Dropping it ends the answers.
#[must_use = "the challenge is answered as long as this exists"]
pub struct Pending {
    end: Option<Box<dyn FnOnce() + Send>>,
}

impl Challenges {
    /// Returns the body for a request whose path is `path`: the key authorization, if the path is
    /// that of a pending HTTP-01 challenge. The request may come in clear text, for any host; the
    /// token is random and identifies the challenge. The response's media type is
    /// `application/octet-stream`.
    ///
    /// Takes a lock only if the path begins with [`HTTP_01_PREFIX`] and a challenge is pending.
    pub fn http(&self, path: &str) -> Option<Arc<str>> {
        self.http.get(path.strip_prefix(HTTP_01_PREFIX)?)
    }

    /// Answers a challenge of this process's own order until the result is dropped. [`Challenges::own`] contains it.
    ///
    /// # Errors
    /// Those of [`Challenges::answer`].
    pub fn answer_own(self: &Arc<Self>, answer: Answer) -> Result<Pending, Mistake> {
        let mut answered = self.answer_for(&answer, OrderOf::Own)?;
        let number = self.change_own(|own| {
            own.pending.insert(own.changes, answer);
        });
        let challenges = Arc::clone(self);
        let end = answered.end.take();
        Ok(Pending {
            end: Some(Box::new(move || {
                challenges.change_own(|own| {
                    own.pending.remove(&number);
                });
                if let Some(end) = end {
                    end();
                }
            })),
        })
    }

    /// Returns the answers of this process's own orders, and a number that changes with them; 0: there are none.
    pub fn own(&self) -> (u64, Vec<Answer>) {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        (own.number(), own.pending.values().cloned().collect())
    }

    /// Returns the number of [`Challenges::own`].
    pub fn own_number(&self) -> u64 {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).number()
    }

    /// Sets what is called after the answers of own orders have changed. It must not block.
    pub fn set_waker(&self, waker: impl Fn() + Send + Sync + 'static) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).waker = Some(Arc::new(waker));
    }

    /// Changes the list of own answers; returns the number of the change.
    fn change_own(&self, change: impl FnOnce(&mut Own)) -> u64 {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.changes += 1;
        change(&mut own);
        let (changes, waker) = (own.changes, own.waker.clone());
        drop(own);
        if let Some(waker) = waker {
            waker();
        }
        changes
    }

    /// Answers a challenge of another process's order until the result is dropped.
    ///
    /// # Errors
    /// The token is not base64url (RFC 8555 section 8.3), no certificate can be built for the name, or too many
    /// challenges are pending.
    pub fn answer(self: &Arc<Self>, answer: &Answer) -> Result<Pending, Mistake> {
        self.answer_for(answer, OrderOf::Other)
    }

    fn answer_for(self: &Arc<Self>, answer: &Answer, of: OrderOf) -> Result<Pending, Mistake> {
        match answer {
            Answer::Http { token, key_authorization } => {
                self.answer_http(token, key_authorization, of)
            }
            Answer::Tls { name, digest } => self.answer_tls(name, digest, of),
        }
    }

    fn answer_http(
        self: &Arc<Self>,
        token: &str,
        key_authorization: &str,
        of: OrderOf,
    ) -> Result<Pending, Mistake> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        if token.is_empty() || !token.bytes().all(is_token) {
            return Err(Mistake::new(Part::Chain, "the authority's token is not base64url"));
        }
        let number = self.http.add(token.to_owned(), key_authorization.into(), of)?;
        let (challenges, token) = (Arc::clone(self), token.to_owned());
        Ok(Pending { end: Some(Box::new(move || challenges.http.remove(&token, number))) })
    }

    fn answer_tls(
        self: &Arc<Self>,
        name: &str,
        digest: &[u8],
        of: OrderOf,
    ) -> Result<Pending, Mistake> {
        let key = server_name(name);
        let number = self.tls.add(key.clone(), Arc::new(certificate(name, digest)?), of)?;
        let tls = Arc::clone(&self.tls);
        Ok(Pending { end: Some(Box::new(move || tls.remove(&key, number))) })
    }

    /// Returns whether a TLS-ALPN-01 challenge is pending: one atomic load. Only then need a
    /// listener look at a `ClientHello` before the handshake.
    pub fn tls_pending(&self) -> bool {
        !self.tls.is_empty()
    }

    /// Returns the configuration for the handshake with a client that offers the protocols `alpn`:
    /// the one of [`Challenges::server`] if it is an authority that validates a pending challenge,
    /// `normal` otherwise. An authority offers `acme-tls/1` and nothing else (RFC 8737 section 3).
    ///
    /// After a handshake with the first, the connection is closed; it carries no data.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn config_for<'a>(
        &self,
        mut alpn: impl Iterator<Item = &'a [u8]>,
        normal: &Arc<ServerConfig>,
    ) -> Result<Arc<ServerConfig>, Mistake> {
        let validates = alpn.next() == Some(ACME_TLS_1) && alpn.next().is_none();
        if validates && self.tls_pending() { self.server() } else { Ok(Arc::clone(normal)) }
    }

    /// Returns a configuration that negotiates `acme-tls/1` only, and presents only certificates of
    /// pending challenges: a handshake for another name fails. It requests no client certificate
    /// and resumes no session, whatever the listener does.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn server(&self) -> Result<Arc<ServerConfig>, Mistake> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .map_err(|error| Mistake::new(Part::Chain, format!("TLS cannot be set up: {error}")))?;
        let resolver = Arc::new(ByChallenge(Arc::clone(&self.tls)));
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![ACME_TLS_1.to_vec()];
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// Returns the server name (SNI) with which `name` is validated, in lower case: for an address,
/// that of its reverse mapping (RFC 8738 section 6).
fn server_name(name: &str) -> String {
    match name.parse() {
        Ok(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(address)) => {
            let nibbles =
                address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            let digits = nibbles.filter_map(|nibble| char::from_digit(nibble.into(), 16));
            let labels: String = digits.flat_map(|digit| [digit, '.']).collect();
            format!("{labels}ip6.arpa")
        }
        Err(_) => name.to_ascii_lowercase(),
    }
}

/// Builds the certificate of RFC 8737 section 3: self-signed, for exactly this name, with the
/// digest in the critical extension `acmeIdentifier`.
fn certificate(name: &str, digest: &[u8]) -> Result<CertifiedKey, Mistake> {
    let unusable = |why: &dyn fmt::Display| {
        Mistake::new(Part::Chain, format!("no challenge certificate for {name}: {why}"))
    };
    if digest.len() != DIGEST_BYTES {
        return Err(unusable(&"the digest is not that of SHA-256"));
    }
    let mut params = CertificateParams::new([name.to_owned()]).map_err(|error| unusable(&error))?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let key = KeyPair::generate().map_err(|error| unusable(&error))?;
    let certificate = params.self_signed(&key).map_err(|error| unusable(&error))?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let signing = provider().key_provider.load_private_key(key).map_err(|e| unusable(&e))?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], signing))
}

impl<V: Clone> Table<V> {
    fn is_empty(&self) -> bool {
        // Relaxed: an authority asks for an answer long after it was added.
        self.count.load(Ordering::Relaxed) == 0
    }

    fn get(&self, key: &str) -> Option<V> {
        if self.is_empty() {
            return None;
        }
        self.lock().by_key.get(key)?.last().map(|(_, answer)| answer.clone())
    }

    /// Adds an answer, and returns its number.
    fn add(&self, key: String, answer: V, of: OrderOf) -> Result<u64, Mistake> {
        let mut answers = self.lock();
        let Answers { by_key, count, next } = &mut *answers;
        if *count >= CHALLENGES_PENDING_MAX {
            return Err(Mistake::new(Part::Chain, "too many ACME challenges are pending"));
        }
        let number = *next;
        *next += 1;
        *count += 1;
        let of_key = by_key.entry(key).or_default();
        match of {
            OrderOf::Own => of_key.push((number, answer)),
            OrderOf::Other => of_key.insert(0, (number, answer)),
        }
        self.count.store(*count, Ordering::Relaxed);
        Ok(number)
    }

    /// Removes the answer with this number.
    fn remove(&self, key: &str, number: u64) {
        let mut answers = self.lock();
        let Answers { by_key, count, .. } = &mut *answers;
        if let Some(of_key) = by_key.get_mut(key) {
            let before = of_key.len();
            of_key.retain(|(of, _)| *of != number);
            *count -= before - of_key.len();
            if of_key.is_empty() {
                by_key.remove(key);
            }
        }
        self.count.store(*count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Answers<V>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> Default for Table<V> {
    fn default() -> Table<V> {
        let answers = Mutex::new(Answers { by_key: HashMap::new(), count: 0, next: 0 });
        Table { count: AtomicUsize::new(0), answers }
    }
}

/// Presents the certificates of pending challenges.
struct ByChallenge(Arc<Table<Arc<CertifiedKey>>>);

impl ResolvesServerCert for ByChallenge {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // RFC 8737 section 3: exactly this protocol is offered.
        let mut offered = hello.alpn()?;
        if offered.next() != Some(ACME_TLS_1) || offered.next().is_some() {
            return None;
        }
        self.0.get(&hello.server_name()?.to_ascii_lowercase())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pending")
    }
}

/// Without what is secret.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer(..)")
    }
}

/// Counts only: tokens and key authorizations belong in no log.
impl fmt::Debug for Challenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        f.debug_struct("Challenges")
            .field("http", &count(&self.http.count))
            .field("tls", &count(&self.tls.count))
            .field("own", &self.own().1.len())
            .finish()
    }
}

impl fmt::Debug for ByChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByChallenge")
    }
}

#[cfg(test)]
mod tests;
