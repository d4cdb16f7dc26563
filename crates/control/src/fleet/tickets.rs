//! The session ticket keys that members share: what the crate `keyring` decides, with the secrets.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fleet::StartId;
use fleet::seal::PAYLOAD_MAX;
use keyring::{KeyName, Keyring, Peer, Turn};
use model::Moment;
use tls::{SharedTickets, TicketKey};
use zeroize::Zeroizing;

use super::channel::{Channel, Secret, SecretKey, Want};

// The kind and the receiver's start come before a message.
const _: () = assert!(keyring::wire::MESSAGE_MAX_BYTES < PAYLOAD_MAX - StartId::BYTES);

/// The session ticket keys that the fleet shares, for status pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TicketsState {
    /// Keys that this member has.
    pub keys: usize,
    /// The age of the key that seals new tickets; `None`: no shared key does, and this member's tickets are valid here
    /// alone.
    pub sealing_age: Option<Duration>,
    /// Members that take part and do not have the newest key.
    pub behind: Vec<Arc<str>>,
    /// Members that do not take part.
    pub silent: Vec<Arc<str>>,
    /// Why this member does not take part, or why the last fetch from another one failed. One line.
    pub error: Option<String>,
    /// Fetches of session ticket keys and of certificates that failed.
    pub failed: u64,
    /// Connections to the fleet's TCP port that ended without an answer.
    pub refused: u64,
}

/// The keys of this member.
#[derive(Debug)]
pub(super) struct FleetTickets {
    /// What the listeners use.
    listeners: Arc<SharedTickets>,
    ring: Keyring,
    secrets: HashMap<KeyName, Secret>,
    /// What the listeners were given last.
    given: (Option<KeyName>, Vec<KeyName>),
    own: StartId,
}

impl FleetTickets {
    pub(super) fn new(listeners: Arc<SharedTickets>, own: StartId, now: Moment) -> FleetTickets {
        FleetTickets {
            listeners,
            ring: Keyring::new(own.0, now),
            secrets: HashMap::new(),
            given: (None, Vec::new()),
            own,
        }
    }

    /// Forgets the keys.
    pub(super) fn forget(&mut self, live: &[Peer], now: Moment) {
        self.ring = Keyring::new(self.own.0, now);
        self.ring.set_live(live.to_vec(), now);
        self.give(None);
    }

    pub(super) fn set_live(&mut self, live: &[Peer], now: Moment) {
        self.ring.set_live(live.to_vec(), now);
    }

    /// Takes a message. Returns whether it is one.
    pub(super) fn on_message(&mut self, from: &fleet::Member, bytes: &[u8], now: Moment) -> bool {
        self.ring.on_message(from.start.0, bytes, now).is_ok()
    }

    pub(super) fn next_due(&self) -> Moment {
        self.ring.next_due()
    }

    pub(super) fn has_failed(&self, from: &[u8; 16], now: Moment) -> bool {
        self.ring.has_failed(from, now)
    }

    /// Does what is due. Returns the message for all other members, if there is one.
    pub(super) fn turn(&mut self, channel: &Channel, now: Moment) -> Option<Vec<u8>> {
        let is_due = self.ring.next_due() <= now;
        let turn = if is_due { self.ring.turn(now) } else { Turn::default() };
        if turn.must_make {
            self.make(now);
        }
        // Asks another member for the keys that this one lacks, if there are some.
        if let Some(peer) = self.ring.fetch(now)
            && !channel.ask(&peer, Want::TicketKeys)
        {
            self.ring.not_fetched(peer.start, now);
        }
        self.give(Some(channel));
        turn.message
    }

    /// Returns what status pages show, without what concerns the connections.
    pub(super) fn state(&self, now: Moment) -> TicketsState {
        let keyring::State { keys, sealing_age, behind, silent } = self.ring.state(now);
        TicketsState { keys, sealing_age, behind, silent, ..TicketsState::default() }
    }

    fn make(&mut self, now: Moment) {
        let mut secret = Zeroizing::new([0; TicketKey::SECRET_BYTES]);
        if aws_lc_rs::rand::fill(&mut *secret).is_err() {
            tracing::error!("cannot make a session ticket key: the system has no random bytes");
            return;
        }
        let name = self.ring.make(TicketKey::id(&secret), now);
        self.secrets.insert(name, Secret(secret));
        tracing::info!(generation = name.generation, "made a session ticket key");
    }

    pub(super) fn on_fetched(&mut self, from: StartId, keys: &[SecretKey], now: Moment) {
        for SecretKey { name, secret, .. } in keys {
            self.secrets.entry(*name).or_insert_with(|| secret.clone());
        }
        self.ring.fetched(from.0, keys.iter().map(SecretKey::key), now);
        self.secrets.retain(|name, _| self.ring.has(name));
    }

    pub(super) fn not_fetched(&mut self, from: StartId, now: Moment) {
        self.ring.not_fetched(from.0, now);
    }

    /// Gives the listeners and the other members the keys, if they have changed.
    fn give(&mut self, channel: Option<&Channel>) {
        let names: Vec<KeyName> = self.ring.iter().map(|key| key.name).collect();
        let seals = self.ring.seals();
        if self.given == (seals, names.clone()) {
            return;
        }
        self.secrets.retain(|name, _| names.contains(name));
        let of = |name: &KeyName| self.secrets.get(name).map(|secret| TicketKey::new(&secret.0));
        self.listeners.set(seals.as_ref().and_then(of), names.iter().filter_map(of).collect());
        if let Some(channel) = channel {
            let keys = self.ring.iter().filter_map(|key| {
                let secret = self.secrets.get(&key.name)?.clone();
                Some(SecretKey { name: key.name, age: key.age, secret })
            });
            channel.set_keys(keys.collect());
        }
        self.given = (seals, names);
    }
}

/// A process that leaves the fleet, and then may go on for hours with its connections, forgets the keys.
impl Drop for FleetTickets {
    fn drop(&mut self) {
        self.listeners.set(None, Vec::new());
    }
}
