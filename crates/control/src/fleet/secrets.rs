//! What members share by TLS, and never in datagrams: session ticket keys, and certificates with the answers to
//! challenges.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fleet::{Message, StartId};
use keyring::Peer;
use model::{FleetTls, Moment};
use tokio::sync::Notify;

use super::Parts;
use super::certificates::FleetCertificates;
use super::channel::{Channel, Contents, Fetched, SecretKind};
use super::tickets::{FleetTickets, TicketsState};

/// How long a member to which others cannot connect waits before it orders its certificates by itself.
const ALONE_AFTER: Duration = Duration::from_mins(1);
/// The pause between looks at whether others can connect.
const LISTENING_PAUSE: Duration = Duration::from_millis(250);

/// The secrets of this member, and the connections to the others.
#[derive(Debug)]
pub(super) struct Secrets {
    /// `None`: the configuration has no TLS between members.
    channel: Option<Channel>,
    tickets: FleetTickets,
    certificates: FleetCertificates,
    /// The members that live.
    live: Vec<Peer>,
    /// Where it listens: until the process ends, whatever a new configuration says.
    address: SocketAddr,
    news: Arc<Notify>,
    /// Something has changed since the last look at what others have.
    is_changed: bool,
    /// Since when there are connections, and the next look at whether others can connect, if they cannot.
    begun: Moment,
    listening_at: Moment,
    /// Why the last fetch from each of these members failed, of ticket keys and of certificates.
    errors: BTreeMap<([u8; 16], SecretKind), String>,
    /// Why there is no channel with the present settings.
    failure: Option<String>,
    failed: u64,
}

impl Secrets {
    pub(super) fn new(parts: &Parts, own: StartId, address: SocketAddr, now: Moment) -> Secrets {
        let news = Arc::clone(&parts.news);
        Secrets {
            channel: None,
            tickets: FleetTickets::new(Arc::clone(&parts.tickets), own, now),
            certificates: FleetCertificates::new(parts, own, now),
            live: Vec::new(),
            address,
            news,
            is_changed: false,
            begun: now,
            listening_at: now,
            errors: BTreeMap::new(),
            failure: None,
            failed: 0,
        }
    }

    /// Uses these settings. If they are invalid, the previous ones stay in use, and the error is logged and shown in the
    /// status. The member stays in the fleet.
    pub(super) fn set_tls(&mut self, tls: Option<&FleetTls>, now: Moment) {
        self.failure = self.try_tls(tls, now).err();
        if let Some(error) = &self.failure {
            let is_shared = self.channel.is_some();
            self.certificates.set_shared(is_shared);
            if is_shared {
                tracing::error!(%error, "the new `tls` of [fleet] cannot be used, and the previous one stays in use; fix it and reload");
            } else {
                tracing::error!(%error, "the `tls` of [fleet] cannot be used: session ticket keys and certificates are not shared, and this member orders its certificates by itself; fix it and reload");
            }
        }
    }

    fn try_tls(&mut self, tls: Option<&FleetTls>, now: Moment) -> Result<(), String> {
        let Some(tls) = tls else {
            self.channel = None;
            self.errors.clear();
            self.tickets.forget(&self.live, now);
            self.certificates.forget(&self.live, now);
            self.certificates.set_shared(false);
            return Ok(());
        };
        let tls = tls::member(tls).map_err(|mistake| mistake.to_string())?;
        if let Some(channel) = &self.channel {
            channel.set_tls(tls);
            return Ok(());
        }
        let channel = Channel::start(self.address, tls, Arc::clone(&self.news));
        let channel = channel.map_err(|error| format!("cannot start its thread: {error}"))?;
        self.set_members(&channel);
        self.channel = Some(channel);
        // What others have is not known yet, however long this member has lived without connections.
        self.tickets.forget(&self.live, now);
        self.certificates.forget(&self.live, now);
        self.certificates.set_shared(true);
        self.begun = now;
        Ok(())
    }

    pub(super) fn set_live<'a>(
        &mut self,
        live: impl Iterator<Item = &'a fleet::Member>,
        now: Moment,
    ) {
        self.live = live.map(peer).collect();
        self.tickets.set_live(&self.live, now);
        self.certificates.set_live(&self.live, now);
        if let Some(channel) = &self.channel {
            self.set_members(channel);
        }
        self.is_changed = true;
    }

    fn set_members(&self, channel: &Channel) {
        channel
            .set_members(self.live.iter().map(|peer| peer.address.ip().to_canonical()).collect());
    }

    /// Sets whether the configuration names other members.
    pub(super) fn expect_others(&mut self, does: bool) {
        self.certificates.expect_others(does);
    }

    /// Applies a message on ticket keys. Returns false if it is malformed.
    pub(super) fn on_tickets(&mut self, from: &fleet::Member, bytes: &[u8], now: Moment) -> bool {
        self.is_changed = true;
        self.tickets.on_message(from, bytes, now)
    }

    /// Applies a message on certificates. Returns false if it is malformed.
    pub(super) fn on_certificates(
        &mut self,
        from: &fleet::Member,
        bytes: &[u8],
        now: Moment,
    ) -> bool {
        self.is_changed = true;
        self.certificates.on_message(from, bytes, now)
    }

    /// Returns when [`Secrets::tick`] next has work to do; `None`: never.
    pub(super) fn next_due(&self) -> Option<Moment> {
        let channel = self.channel.as_ref()?;
        if !channel.is_listening() {
            return Some(self.listening_at);
        }
        Some(if self.is_changed { Moment::ZERO } else { self.turn_due() })
    }

    fn turn_due(&self) -> Moment {
        self.tickets.next_due().min(self.certificates.next_due())
    }

    /// Does what is due. Returns the messages for all other members, each with its kind.
    pub(super) fn tick(&mut self, now: Moment) -> Vec<(u8, Vec<u8>)> {
        let Some(channel) = &mut self.channel else { return Vec::new() };
        // A member that does not listen announces nothing: others would wait for it.
        if !channel.is_listening() {
            self.listening_at = now + LISTENING_PAUSE;
            self.certificates.set_shared(now.since(self.begun) < ALONE_AFTER);
            return Vec::new();
        }
        let answers: Vec<Fetched> = std::iter::from_fn(|| channel.answer()).collect();
        let is_changed = std::mem::take(&mut self.is_changed) || self.certificates.has_changed();
        if answers.is_empty() && !is_changed && self.turn_due() > now {
            return Vec::new();
        }
        self.certificates.set_shared(true);
        for fetched in answers {
            self.on_fetched(fetched, now);
        }
        let Some(channel) = &self.channel else { return Vec::new() };
        let mut messages = Vec::new();
        messages.extend(self.tickets.turn(channel, now).map(|message| (Message::TICKETS, message)));
        messages.extend(
            self.certificates.turn(channel, now).map(|message| (Message::CERTIFICATES, message)),
        );
        messages
    }

    /// Returns the state of what is shared; `None`: `[fleet]` has no `tls`.
    pub(super) fn state(&self, now: Moment) -> Option<TicketsState> {
        let Some(channel) = &self.channel else {
            let error = Some(self.failure.clone()?);
            return Some(TicketsState { error, ..TicketsState::default() });
        };
        let has_failed = |(from, kind): &([u8; 16], SecretKind)| match kind {
            SecretKind::TicketKeys => self.tickets.has_failed(from, now),
            SecretKind::Certificates => self.certificates.has_failed(from, now),
        };
        let failed =
            self.errors.iter().find(|(of, _)| has_failed(of)).map(|(_, error)| error.clone());
        let error = self.failure.clone().or_else(|| channel.obstacle()).or(failed);
        let (failed, refused) = (self.failed, channel.refused());
        Some(TicketsState { error, failed, refused, ..self.tickets.state(now) })
    }

    fn on_fetched(&mut self, fetched: Fetched, now: Moment) {
        let Fetched { from, address, kind, contents } = fetched;
        let of = (from.0, kind);
        let error = match contents {
            Ok(Contents::TicketKeys(keys)) => {
                self.tickets.on_fetched(from, &keys, now);
                None
            }
            Ok(Contents::Certificates(received)) => {
                self.certificates.on_fetched(from, received, now);
                let has_failed = self.certificates.has_failed(&from.0, now);
                has_failed.then(|| format!("{address} lists certificates that it does not give"))
            }
            Err(error) => {
                match kind {
                    SecretKind::TicketKeys => self.tickets.not_fetched(from, now),
                    SecretKind::Certificates => self.certificates.not_fetched(from, now),
                }
                Some(format!("cannot fetch {kind} from {address}: {error}"))
            }
        };
        let Some(error) = error else {
            self.errors.remove(&of);
            return;
        };
        self.failed += 1;
        let consequence = match kind {
            SecretKind::TicketKeys => "clients that come from there make full handshakes here",
            SecretKind::Certificates => {
                "this member does not get that member's certificates and may not answer its ACME challenges"
            }
        };
        if self.errors.get(&of) != Some(&error) {
            tracing::warn!(%error, "{consequence}; retrying");
        }
        self.errors.insert(of, error);
    }
}

fn peer(member: &fleet::Member) -> Peer {
    Peer { name: Arc::clone(&member.name), address: member.address, start: member.start.0 }
}
