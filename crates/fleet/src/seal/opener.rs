//! Opens the datagrams of all members.

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::aead::{Aad, LessSafeKey};

use super::DATAGRAM_MAX;
use super::key::{COUNTER_END, HEADER_BYTES, Key, KeyId, TAG_BYTES, VERSION, nonce};
use super::window::{Seen, Window};
use crate::start::StartId;

/// How many keys are accepted at once.
pub const KEYS_MAX: usize = 4;
/// How many starts of members are remembered, each with its key and its window (250 bytes and the key's
/// schedule). If there are more, the one that was heard least recently is forgotten.
pub const SENDERS_MAX: usize = 2_048;

model::words! {
    /// Why a datagram was refused.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Refusal {
        /// Shorter than the header and the tag.
        TooShort = "too_short",
        /// Longer than [`DATAGRAM_MAX`].
        TooLong = "too_long",
        /// The version of the layout is not 1.
        UnknownVersion = "unknown_version",
        /// No accepted key has this id.
        UnknownKey = "unknown_key",
        /// Not sealed by a holder of the key, or changed on the way.
        Forged = "forged",
        /// Accepted before.
        Replayed = "replayed",
        /// More than 1,024 datagrams behind the sender's newest.
        TooOld = "too_old",
    }
}

/// Why a list of keys is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysRefused {
    /// There is none.
    None,
    /// There are more than [`KEYS_MAX`]: how many.
    Many(usize),
    /// Two of them are the same, or have the same id.
    Same(KeyId),
}

impl fmt::Display for KeysRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysRefused::None => f.write_str("a fleet needs a key"),
            KeysRefused::Many(count) => {
                write!(f, "{count} keys; at most {KEYS_MAX} are accepted at once")
            }
            KeysRefused::Same(id) => {
                write!(f, "two of the keys are the same (id {id}); remove one")
            }
        }
    }
}

impl std::error::Error for KeysRefused {}

struct Sender {
    subkey: LessSafeKey,
    window: Window,
    /// The number of the last datagram that was accepted from it, of all accepted ones.
    heard: u64,
}

/// Opens datagrams. Until one authenticates, it costs a bounded amount of work and leaves nothing behind.
///
/// To change a fleet's key without interruption, first let all members accept the new one besides the old
/// one, then let each seal with it ([`super::Sealer::set_key`]), then remove the old one.
pub struct Opener {
    keys: Vec<Key>,
    senders: BTreeMap<(KeyId, StartId), Sender>,
    opened: u64,
}

impl Opener {
    /// Accepts datagrams sealed with any of these keys.
    ///
    /// # Errors
    /// If there is no key, there are more than [`KEYS_MAX`], or two have the same id.
    pub fn new(keys: &[Key]) -> Result<Opener, KeysRefused> {
        check(keys)?;
        Ok(Opener { keys: keys.to_vec(), senders: BTreeMap::new(), opened: 0 })
    }

    /// Accepts these keys from now on. What is known of senders stays for keys that stay.
    ///
    /// # Errors
    /// As [`Opener::new`]; the old keys then stay.
    pub fn set_keys(&mut self, keys: &[Key]) -> Result<(), KeysRefused> {
        check(keys)?;
        self.keys = keys.to_vec();
        self.senders.retain(|(id, _), _| keys.iter().any(|key| key.id() == *id));
        Ok(())
    }

    /// Writes the payload of a datagram into `into`, whose content is replaced, and returns which start of a
    /// member sealed it.
    ///
    /// # Errors
    /// The reason why the datagram is refused. `into` is then empty.
    pub fn open(&mut self, datagram: &[u8], into: &mut Vec<u8>) -> Result<StartId, Refusal> {
        into.clear();
        if datagram.len() > DATAGRAM_MAX {
            return Err(Refusal::TooLong);
        }
        let header = Header::read(datagram)?;
        let Some(key) = self.keys.iter().find(|key| key.id() == header.key) else {
            return Err(Refusal::UnknownKey);
        };
        // Senders never use these counters, so no key needs to be derived.
        if header.counter == 0 || header.counter >= COUNTER_END {
            return Err(Refusal::Forged);
        }
        let id = (header.key, header.start);
        if let Some(sender) = self.senders.get_mut(&id) {
            decrypt(&sender.subkey, &header, into)?;
            if let Err(seen) = sender.window.accept(header.counter) {
                into.clear();
                return Err(refusal(seen));
            }
            self.opened += 1;
            sender.heard = self.opened;
            return Ok(header.start);
        }
        let subkey = key.of_start(header.start).map_err(|_| Refusal::Forged)?;
        decrypt(&subkey, &header, into)?;
        let mut window = Window::new();
        window.accept(header.counter).map_err(refusal)?;
        self.forget_one_if_full();
        self.opened += 1;
        self.senders.insert(id, Sender { subkey, window, heard: self.opened });
        Ok(header.start)
    }

    /// Returns how many starts of members are remembered.
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    fn forget_one_if_full(&mut self) {
        if self.senders.len() < SENDERS_MAX {
            return;
        }
        let oldest = self.senders.iter().min_by_key(|(_, sender)| sender.heard).map(|(id, _)| *id);
        if let Some(oldest) = oldest {
            self.senders.remove(&oldest);
        }
    }
}

/// Shows no key.
impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opener({:?}, {} senders)", self.keys, self.senders.len())
    }
}

fn check(keys: &[Key]) -> Result<(), KeysRefused> {
    if keys.is_empty() {
        return Err(KeysRefused::None);
    }
    if keys.len() > KEYS_MAX {
        return Err(KeysRefused::Many(keys.len()));
    }
    let mut ids = std::collections::BTreeSet::new();
    match keys.iter().find(|key| !ids.insert(key.id())) {
        Some(key) => Err(KeysRefused::Same(key.id())),
        None => Ok(()),
    }
}

fn refusal(seen: Seen) -> Refusal {
    match seen {
        Seen::Replayed => Refusal::Replayed,
        Seen::TooOld => Refusal::TooOld,
    }
}

struct Header<'a> {
    key: KeyId,
    start: StartId,
    counter: u64,
    /// The bytes of all these, which are authenticated.
    bytes: &'a [u8],
    /// Ciphertext and tag.
    sealed: &'a [u8],
}

impl Header<'_> {
    fn read(datagram: &[u8]) -> Result<Header<'_>, Refusal> {
        let (bytes, sealed) = datagram.split_at_checked(HEADER_BYTES).ok_or(Refusal::TooShort)?;
        if sealed.len() < TAG_BYTES {
            return Err(Refusal::TooShort);
        }
        let (version, rest) = bytes.split_first().ok_or(Refusal::TooShort)?;
        if *version != VERSION {
            return Err(Refusal::UnknownVersion);
        }
        let (key, rest) = rest.split_first_chunk().ok_or(Refusal::TooShort)?;
        let (start, rest) = rest.split_first_chunk().ok_or(Refusal::TooShort)?;
        let counter = rest.first_chunk().ok_or(Refusal::TooShort)?;
        Ok(Header {
            key: KeyId(*key),
            start: StartId(*start),
            counter: u64::from_be_bytes(*counter),
            bytes,
            sealed,
        })
    }
}

fn decrypt(subkey: &LessSafeKey, header: &Header<'_>, into: &mut Vec<u8>) -> Result<(), Refusal> {
    into.extend_from_slice(header.sealed);
    let opened = subkey.open_in_place(nonce(header.counter), Aad::from(header.bytes), into);
    let Ok(len) = opened.map(|payload| payload.len()) else {
        into.clear();
        return Err(Refusal::Forged);
    };
    into.truncate(len);
    Ok(())
}
