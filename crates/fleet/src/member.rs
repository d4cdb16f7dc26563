//! A member of the fleet, and its identity in the protocol.

use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};

use crate::start::StartId;

/// The longest name, zone or host of a member, in bytes.
pub const TEXT_BYTES_MAX: usize = 64;

/// Generations are below this, so that the next one always exists.
pub(crate) const GENERATION_END: u64 = 1 << 63;

/// A process that belongs to the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Unique in the fleet; the host's name unless configured. 1 to [`TEXT_BYTES_MAX`] bytes.
    pub name: Arc<str>,
    /// Where its datagrams go.
    pub address: SocketAddr,
    /// Its zone, if it has one.
    pub zone: Option<Arc<str>>,
    /// The machine it runs on: members of one host fail together.
    pub host: Arc<str>,
    /// Which start of its process this is.
    pub start: StartId,
    /// The newest version of the fleet's messages that it knows.
    pub version: u8,
}

impl Member {
    /// Returns whether other members accept its texts.
    pub(crate) fn has_valid_texts(&self) -> bool {
        let zone = self.zone.as_deref().unwrap_or("none");
        [&*self.name, &*self.host, zone]
            .into_iter()
            .all(|text| !text.is_empty() && is_valid_text(text))
    }
}

/// Returns whether a text may be a member's name, zone or host, if it may be empty: it is shown in logs.
pub(crate) fn is_valid_text(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control)
}

/// What names a member uniquely: the first half of the SHA-256 digest of its name. Compared far more often than
/// anything else, so it is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameKey(u128);

impl NameKey {
    pub(crate) fn of(name: &str) -> NameKey {
        let digest = digest(&SHA256, name.as_bytes());
        NameKey(digest.as_ref().first_chunk().map_or(0, |half| u128::from_be_bytes(*half)))
    }

    /// Mixes the key with a number, for sums over many members.
    pub(crate) fn mixed_with(self, number: u64) -> u64 {
        let spread = (self.0 as u64 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread ^ (spread >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

/// A member as the protocol knows it. Of two identities with one name, the greater generation is valid; a member
/// takes a greater one when it restarts and when it was declared down while it lives.
#[derive(Clone, Debug)]
pub(crate) struct Id {
    /// Beside the rest, since foca searches its list for it with each update.
    key: NameKey,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    generation: u64,
    member: Member,
}

impl Id {
    pub(crate) fn new(member: Member, generation: u64) -> Id {
        Id { key: NameKey::of(&member.name), inner: Arc::new(Inner { generation, member }) }
    }

    /// Returns the identity of whatever member has this address: for a first message to a member of which only
    /// the address is known. It has no name.
    pub(crate) fn of_address(address: SocketAddr) -> Id {
        let (name, start) = (Arc::<str>::from(""), StartId([0; StartId::BYTES]));
        let member = Member { host: name.clone(), name, address, zone: None, start, version: 0 };
        Id::new(member, 0)
    }

    pub(crate) fn member(&self) -> &Member {
        &self.inner.member
    }

    pub(crate) fn key(&self) -> NameKey {
        self.key
    }

    pub(crate) fn generation(&self) -> u64 {
        self.inner.generation
    }

    /// What decides between two identities of one name; the start decides if clocks gave both one generation.
    pub(crate) fn rank(&self) -> (u64, StartId) {
        (self.inner.generation, self.inner.member.start)
    }

    /// Returns the same member with another generation.
    pub(crate) fn with_generation(&self, generation: u64) -> Id {
        Id {
            key: self.key,
            inner: Arc::new(Inner { generation, member: self.inner.member.clone() }),
        }
    }

    /// Returns whether nothing else keeps this identity.
    pub(crate) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.key() == other.key() && self.rank() == other.rank()
    }
}

impl Eq for Id {}

impl foca::Identity for Id {
    type Addr = NameKey;

    /// Never renews by itself: [`crate::Membership`] does, after a delay, so that two processes with one name
    /// cannot flood the fleet by replacing each other.
    fn renew(&self) -> Option<Id> {
        None
    }

    fn addr(&self) -> NameKey {
        self.key()
    }

    fn win_addr_conflict(&self, other: &Id) -> bool {
        self.rank() > other.rank()
    }
}
