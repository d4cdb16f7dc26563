//! The session ticket keys that members share: what the crate `keyring` decides, with the secrets.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fleet::StartId;
use fleet::seal::PAYLOAD_MAX;
use keyring::{KeyName, Keyring, Peer, Turn};
use model::{FleetTls, Moment};
use tls::{SharedTickets, TicketKey};
use tokio::sync::Notify;
use zeroize::Zeroizing;

use super::channel::{Channel, Fetched, Secret, SecretKey};

// The kind and the receiver's start come before a message.
const _: () = assert!(keyring::wire::MESSAGE_MAX_BYTES < PAYLOAD_MAX - StartId::BYTES);

/// The pause between looks at whether others can connect.
const LISTENING_PAUSE: Duration = Duration::from_millis(250);

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
    /// Fetches of keys that failed.
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
    /// The connections to the others; `None`: the configuration has no TLS for them.
    channel: Option<Channel>,
    /// What the listeners were given last.
    given: (Option<KeyName>, Vec<KeyName>),
    /// The members that live.
    live: Vec<Peer>,
    own: StartId,
    /// Where it listens: until the process ends, whatever a new configuration says.
    address: SocketAddr,
    news: Arc<Notify>,
    /// Something has changed since the last look at what others have.
    is_changed: bool,
    /// The next look at whether others can connect, if they cannot.
    listening_at: Moment,
    /// Why the last fetch from each of these members failed.
    errors: BTreeMap<[u8; 16], String>,
    /// Why there is no channel with the present settings.
    failure: Option<String>,
    failed: u64,
}

impl FleetTickets {
    pub(super) fn new(
        listeners: Arc<SharedTickets>,
        news: Arc<Notify>,
        own: StartId,
        address: SocketAddr,
        now: Moment,
    ) -> FleetTickets {
        FleetTickets {
            listeners,
            ring: Keyring::new(own.0, now),
            secrets: HashMap::new(),
            channel: None,
            given: (None, Vec::new()),
            live: Vec::new(),
            own,
            address,
            news,
            is_changed: false,
            listening_at: now,
            errors: BTreeMap::new(),
            failure: None,
            failed: 0,
        }
    }

    /// Uses these settings. If they cannot be used, those before stay in use, and the log and the state say why: the rest
    /// of the fleet does not depend on it.
    pub(super) fn set_tls(&mut self, tls: Option<&FleetTls>, now: Moment) {
        self.failure = self.try_tls(tls, now).err();
        if let Some(error) = &self.failure {
            tracing::error!(%error, "TLS between members is not set up; session ticket keys are not shared");
        }
    }

    fn try_tls(&mut self, tls: Option<&FleetTls>, now: Moment) -> Result<(), String> {
        let Some(tls) = tls else {
            self.channel = None;
            self.errors.clear();
            self.ring = Keyring::new(self.own.0, now);
            self.ring.set_live(self.live.clone(), now);
            self.give();
            return Ok(());
        };
        let tls = tls::member(tls).map_err(|mistake| mistake.to_string())?;
        if let Some(channel) = &self.channel {
            channel.set_tls(tls);
            return Ok(());
        }
        let channel = Channel::start(self.address, tls, Arc::clone(&self.news));
        self.channel = Some(channel.map_err(|error| format!("cannot start its thread: {error}"))?);
        Ok(())
    }

    pub(super) fn set_live<'a>(
        &mut self,
        live: impl Iterator<Item = &'a fleet::Member>,
        now: Moment,
    ) {
        self.live = live.map(peer).collect();
        self.ring.set_live(self.live.clone(), now);
        if let Some(channel) = &self.channel {
            channel.set_members(
                self.live.iter().map(|peer| peer.address.ip().to_canonical()).collect(),
            );
        }
        self.is_changed = true;
    }

    /// Takes a message. Returns whether it is one.
    pub(super) fn on_message(&mut self, from: &fleet::Member, bytes: &[u8], now: Moment) -> bool {
        self.is_changed = true;
        self.ring.on_message(from.start.0, bytes, now).is_ok()
    }

    /// Returns when [`FleetTickets::tick`] next has work to do; `None`: never.
    pub(super) fn next_due(&self) -> Option<Moment> {
        let channel = self.channel.as_ref()?;
        if !channel.is_listening() {
            return Some(self.listening_at);
        }
        Some(if self.is_changed { Moment::ZERO } else { self.ring.next_due() })
    }

    /// Does what is due. Returns the message for all other members, if there is one.
    pub(super) fn tick(&mut self, now: Moment) -> Option<Vec<u8>> {
        let channel = self.channel.as_mut()?;
        // A member that does not listen announces no keys: others would wait for them.
        if !channel.is_listening() {
            self.listening_at = now + LISTENING_PAUSE;
            return None;
        }
        let answers: Vec<Fetched> = std::iter::from_fn(|| channel.answer()).collect();
        let is_due = self.ring.next_due() <= now;
        if answers.is_empty() && !is_due && !std::mem::take(&mut self.is_changed) {
            return None;
        }
        self.is_changed = false;
        for fetched in answers {
            self.on_fetched(fetched, now);
        }
        let turn = if is_due { self.ring.turn(now) } else { Turn::default() };
        if turn.must_make {
            self.make(now);
        }
        self.fetch(now);
        self.give();
        turn.message
    }

    /// Asks another member for the keys that this one lacks, if there are some.
    fn fetch(&mut self, now: Moment) {
        let Some(channel) = &self.channel else { return };
        if let Some(peer) = self.ring.fetch(now)
            && !channel.ask(StartId(peer.start), peer.address)
        {
            self.ring.not_fetched(peer.start, now);
        }
    }

    pub(super) fn state(&self, now: Moment) -> Option<TicketsState> {
        let channel = self.channel.as_ref()?;
        let keyring::State { keys, sealing_age, behind, silent } = self.ring.state(now);
        let obstacle = || (!channel.is_listening()).then(|| channel.obstacle());
        let failed = self.errors.iter().find(|(from, _)| self.ring.has_failed(from));
        let error = self.failure.clone().or_else(obstacle);
        let error = error.or_else(|| failed.map(|(_, error)| error.clone()));
        let (failed, refused) = (self.failed, channel.refused());
        Some(TicketsState { keys, sealing_age, behind, silent, error, failed, refused })
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

    fn on_fetched(&mut self, fetched: Fetched, now: Moment) {
        let Fetched { from, address, keys } = fetched;
        match keys {
            Ok(keys) => {
                self.errors.remove(&from.0);
                for SecretKey { name, secret, .. } in &keys {
                    self.secrets.entry(*name).or_insert_with(|| secret.clone());
                }
                self.ring.fetched(from.0, keys.iter().map(SecretKey::key), now);
                self.secrets.retain(|name, _| self.ring.has(name));
            }
            Err(error) => {
                self.failed += 1;
                let error = format!("cannot fetch session ticket keys from {address}: {error}");
                if self.errors.get(&from.0) != Some(&error) {
                    tracing::warn!(%error, "clients that come from there make full handshakes here; retrying");
                }
                self.errors.insert(from.0, error);
                self.ring.not_fetched(from.0, now);
            }
        }
    }

    /// Gives the listeners and the other members the keys, if they have changed.
    fn give(&mut self) {
        let names: Vec<KeyName> = self.ring.iter().map(|key| key.name).collect();
        let seals = self.ring.seals();
        if self.given == (seals, names.clone()) {
            return;
        }
        self.secrets.retain(|name, _| names.contains(name));
        let of = |name: &KeyName| self.secrets.get(name).map(|secret| TicketKey::new(&secret.0));
        self.listeners.set(seals.as_ref().and_then(of), names.iter().filter_map(of).collect());
        if let Some(channel) = &self.channel {
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

fn peer(member: &fleet::Member) -> Peer {
    Peer { name: Arc::clone(&member.name), address: member.address, start: member.start.0 }
}
