//! The secrets that the members of a fleet share: session ticket keys (TLS), and certificates obtained by ACME.
//!
//! Pure: time is an argument, messages are values, and no secret is in them. A shell keeps the secrets, fetches those
//! that a member lacks, and makes new ones when it is asked to. [`certificates`] decides who orders which certificate;
//! [`Keyring`] decides which ticket keys there are, who makes the next one, and which one seals new tickets:
//!
//! - A key seals new tickets for [`SEALS_MAX`] (half an hour longer if there is no newer one), and opens tickets for
//!   [`OPENS_MAX`] after it was made.
//! - The member with the least start makes the next key, [`LEAD`] before the newest key stops sealing. Members whose
//!   keys cannot be fetched are passed over, and if a key is overdue, any member makes it. Two members that do not see
//!   each other may both make one; all members then fetch both.
//! - Members tell each other which keys they have. **A member switches to a key only when all others have it**, so a
//!   ticket can be opened wherever the client goes next. It does not wait for members that do not take part, and for
//!   others at most [`WAIT_MAX`]: they make full handshakes then. The first key is used at once: without it, tickets
//!   would be valid at one member alone.

#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::wildcard_enum_match_arm))]

pub mod certificates;
mod key;
mod pace;
mod partner;
mod ring;
pub mod wire;

pub use key::{KEYS_MAX, Key, KeyName};
pub use partner::Peer;
pub use ring::{Keyring, State, Turn};
pub use ring::{LEAD, OPENS_MAX, SEALS_MAX, WAIT_MAX};
pub use wire::Malformed;
