//! Datagrams sealed with a key that all members of a fleet share: secret, authentic, each accepted once.
//!
//! Layout of a datagram, at most [`DATAGRAM_MAX`] bytes:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | version, 1 |
//! | 4 | id of the key, [`KeyId`] |
//! | 16 | the sender's [`crate::StartId`] |
//! | 8 | counter, big endian, from 1 |
//! | n | ciphertext of the payload, at most [`PAYLOAD_MAX`] |
//! | 16 | tag of AES-256-GCM |
//!
//! The first 29 bytes are the associated data. Each start of each member seals with a key of its own:
//! HKDF-SHA256 (RFC 5869) of the shared key with the label "weir fleet datagram v1" and the start id. The
//! nonce is the counter, which only grows within a start. So no pair of key and nonce is used twice, whatever
//! the members' clocks say and however often they restart.
//!
//! What this does not do: it does not tell one member from another. Every holder of the key is trusted.
//!
//! A datagram of a start that has ended is still authentic. An [`Opener`] that has seen it refuses it as a
//! replay, but one that itself started later cannot. [`crate::Membership`] handles these: see there.

mod key;
mod opener;
mod sealer;
#[cfg(test)]
mod tests;
mod window;

pub use key::{Key, KeyId, KeyRefused, SECRET_BYTES_MAX, SECRET_BYTES_MIN};
pub use opener::{KEYS_MAX, KeysRefused, Opener, Refusal, SENDERS_MAX};
pub use sealer::{SealRefused, Sealer};

/// The largest datagram: fits the smallest MTU of IPv6 (1,280 bytes, RFC 8200 section 5) with room for the
/// headers of IPv6, UDP and a tunnel.
pub const DATAGRAM_MAX: usize = 1_200;

/// The largest payload of a datagram.
pub const PAYLOAD_MAX: usize = DATAGRAM_MAX - key::HEADER_BYTES - key::TAG_BYTES;
