//! Session tickets (RFC 5077 for TLS 1.2, RFC 8446 section 4.6.1 for TLS 1.3) whose keys several processes share, so
//! that a client resumes its session at any of them.
//!
//! A ticket is sealed under a key of its own, derived by HKDF-SHA256 (RFC 5869) from the shared secret, what the
//! listener is, and random bytes in the ticket:
//!
//! ```text
//! ticket  key's id (16)  random (32)  AES-256-GCM: session, tag (16)
//! ```
//!
//! Listeners with another private key, other certificates or another `version_min`, `ciphers` or `unknown_names` derive
//! other keys: a process without a listener's private key can neither open nor forge its tickets.
//!
//! Listeners that ask for certificates of clients share no tickets. A ticket contains the client's certificate, which
//! nothing verifies again: a process that has the keys could state any client in it.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use model::ListenerTls;
use rustls::pki_types::CertificateDer;
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

/// How long a ticket can be valid at most, in seconds: 12 hours, as for tickets that are not shared.
const LIFETIME_S: u32 = 12 * 60 * 60;

const RANDOM_BYTES: usize = 32;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
const AES_KEY_BYTES: usize = 32;

/// What the format of sessions depends on: rustls does not number it.
const SESSION_FORMAT: &str = "rustls 0.23.46";

/// A key that processes share.
#[derive(Clone)]
pub struct TicketKey {
    id: [u8; TicketKey::ID_BYTES],
    derived: Prk,
}

impl TicketKey {
    /// Length of the id, in bytes.
    pub const ID_BYTES: usize = 16;
    /// Length of the secret, in bytes.
    pub const SECRET_BYTES: usize = 32;

    /// Returns the key of this random secret.
    pub fn new(secret: &[u8; TicketKey::SECRET_BYTES]) -> TicketKey {
        let derived = Prk::new_less_safe(HKDF_SHA256, secret);
        TicketKey { id: TicketKey::id(secret), derived }
    }

    /// Returns the id of the key of this secret: the start of a digest. So no two secrets have one id. It stands in
    /// every ticket.
    pub fn id(secret: &[u8; TicketKey::SECRET_BYTES]) -> [u8; TicketKey::ID_BYTES] {
        let mut digest = Context::new(&SHA256);
        digest.update(b"weir session ticket key v1");
        digest.update(secret);
        let mut id = [0; TicketKey::ID_BYTES];
        let digest = digest.finish();
        id.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        id
    }

    /// Returns the key and the nonce of one ticket of a listener.
    fn of_ticket(
        &self,
        listener: &Binding,
        random: &[u8; RANDOM_BYTES],
    ) -> Result<(LessSafeKey, Nonce), Unspecified> {
        let info = [b"weir session ticket v1".as_slice(), &listener.0, random];
        let mut bytes = Zeroizing::new([0; AES_KEY_BYTES + NONCE_BYTES]);
        self.derived.expand(&info, Length(bytes.len()))?.fill(&mut *bytes)?;
        let (key, nonce) = bytes.split_first_chunk::<AES_KEY_BYTES>().ok_or(Unspecified)?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key)?);
        Ok((key, Nonce::try_assume_unique_for_key(nonce)?))
    }

    fn seal(&self, listener: &Binding, session: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let mut random = [0; RANDOM_BYTES];
        aws_lc_rs::rand::fill(&mut random)?;
        let (key, nonce) = self.of_ticket(listener, &random)?;
        let head = self.id.len() + random.len();
        let mut ticket = Vec::with_capacity(head + session.len() + TAG_BYTES);
        ticket.extend(self.id);
        ticket.extend(random);
        let mut sealed = session.to_vec();
        key.seal_in_place_append_tag(nonce, Aad::from(self.id), &mut sealed)?;
        ticket.extend(sealed);
        Ok(ticket)
    }

    /// Opens the rest of a ticket that begins with this key's id.
    fn open(&self, listener: &Binding, rest: &[u8]) -> Option<Vec<u8>> {
        let (random, sealed) = rest.split_first_chunk()?;
        let (key, nonce) = self.of_ticket(listener, random).ok()?;
        let mut session = sealed.to_vec();
        let len = key.open_in_place(nonce, Aad::from(self.id), &mut session).ok()?.len();
        session.truncate(len);
        Some(session)
    }
}

/// Without the secret.
impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKey(..)")
    }
}

/// A length of output for HKDF.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// The keys that are shared now, for all listeners of this process. While there are none, each listener uses keys of
/// its own.
#[derive(Debug, Default)]
pub struct SharedTickets {
    keys: ArcSwap<Keys>,
}

#[derive(Debug, Default)]
struct Keys {
    seals: Option<TicketKey>,
    accepted: Vec<TicketKey>,
}

impl SharedTickets {
    /// Seals new tickets with `seals` from now on, or, if it is `None`, with keys of this process; accepts tickets of
    /// `accepted` and of this process.
    pub fn set(&self, seals: Option<TicketKey>, accepted: Vec<TicketKey>) {
        self.keys.store(Arc::new(Keys { seals, accepted }));
    }
}

/// What tickets of a listener are bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding([u8; 32]);

impl Binding {
    /// `chains`: those of the listener's certificates.
    pub(crate) fn new<'a>(
        tls: &ListenerTls,
        chains: impl IntoIterator<Item = &'a [CertificateDer<'static>]>,
    ) -> Binding {
        // Where one part ends and the next begins must be clear: each has its length before it.
        let mut digest = Context::new(&SHA256);
        let mut put = |part: &[u8]| {
            digest.update(&(part.len() as u64).to_le_bytes());
            digest.update(part);
        };
        put(SESSION_FORMAT.as_bytes());
        for (chain, certificate) in chains.into_iter().zip(&tls.certificates) {
            put(&certificate.key.bytes);
            put(&(chain.len() as u64).to_le_bytes());
            for certificate in chain {
                put(certificate);
            }
        }
        // As these are called in the program: a process of another version may derive other keys, no more.
        put(format!("{:?} {:?} {:?}", tls.version_min, tls.ciphers, tls.unknown_names).as_bytes());
        let mut binding = [0; 32];
        binding.copy_from_slice(digest.finish().as_ref());
        Binding(binding)
    }
}

/// Seals and opens the tickets of one listener.
#[derive(Debug)]
pub(crate) struct ListenerTickets {
    shared: Arc<SharedTickets>,
    listener: Binding,
    /// With keys of this process and this listener.
    own: Arc<dyn ProducesTickets>,
}

impl ListenerTickets {
    pub(crate) fn new(
        shared: Arc<SharedTickets>,
        listener: Binding,
        own: Arc<dyn ProducesTickets>,
    ) -> ListenerTickets {
        ListenerTickets { shared, listener, own }
    }
}

impl ProducesTickets for ListenerTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        match &self.shared.keys.load().seals {
            Some(key) => key.seal(&self.listener, session).ok(),
            None => self.own.encrypt(session),
        }
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (id, rest) = ticket.split_first_chunk::<{ TicketKey::ID_BYTES }>()?;
        // Ids are no secrets: they stand in every ticket.
        match self.shared.keys.load().accepted.iter().find(|key| key.id == *id) {
            Some(key) => key.open(&self.listener, rest),
            None => self.own.decrypt(ticket),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(byte: u8) -> Binding {
        Binding([byte; 32])
    }

    fn tickets(shared: &Arc<SharedTickets>, listener: Binding) -> ListenerTickets {
        let own = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
        ListenerTickets::new(Arc::clone(shared), listener, own)
    }

    fn key(byte: u8) -> TicketKey {
        TicketKey::new(&[byte; 32])
    }

    #[test]
    fn the_format_of_sessions_is_that_of_the_rustls_in_use() {
        let lock = include_str!("../../../Cargo.lock");
        let (name, version) = SESSION_FORMAT.split_once(' ').unwrap();
        let package = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&package), "write the new version: sessions may have changed");
    }

    #[test]
    fn a_ticket_of_one_process_is_opened_by_another_of_the_same_listener_alone() {
        let (one, other) = (Arc::<SharedTickets>::default(), Arc::<SharedTickets>::default());
        one.set(Some(key(1)), vec![key(1)]);
        other.set(Some(key(2)), vec![key(2), key(1)]);
        let ticket = tickets(&one, binding(1)).encrypt(b"session").unwrap();
        assert_eq!(tickets(&other, binding(1)).decrypt(&ticket).unwrap(), b"session");
        assert_eq!(tickets(&other, binding(2)).decrypt(&ticket), None);
        other.set(Some(key(2)), vec![key(2)]);
        assert_eq!(tickets(&other, binding(1)).decrypt(&ticket), None);
    }

    #[test]
    fn without_shared_keys_and_when_they_come_own_tickets_are_valid() {
        let shared = Arc::<SharedTickets>::default();
        let listener = tickets(&shared, binding(1));
        let own = listener.encrypt(b"own").unwrap();
        assert_eq!(listener.decrypt(&own).unwrap(), b"own");
        shared.set(Some(key(1)), vec![key(1)]);
        let of_all = listener.encrypt(b"all").unwrap();
        assert_eq!(listener.decrypt(&own).unwrap(), b"own");
        assert_eq!(listener.decrypt(&of_all).unwrap(), b"all");
        assert_eq!(of_all[..16], TicketKey::id(&[1; 32]));
    }

    #[test]
    fn no_two_tickets_are_alike_and_a_changed_one_is_refused() {
        let shared = Arc::<SharedTickets>::default();
        shared.set(Some(key(1)), vec![key(1)]);
        let listener = tickets(&shared, binding(1));
        let ticket = listener.encrypt(b"session").unwrap();
        assert_ne!(ticket, listener.encrypt(b"session").unwrap());
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(listener.decrypt(&changed), None, "byte {at}");
            assert_eq!(listener.decrypt(&ticket[..at]), None, "{at} bytes");
        }
    }
}
