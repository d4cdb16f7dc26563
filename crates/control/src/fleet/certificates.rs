//! The certificates (ACME) that members share: what `keyring::certificates` decides, with the secrets.

use std::collections::HashMap;
use std::sync::Arc;

use fleet::StartId;
use fleet::seal::PAYLOAD_MAX;
use keyring::Peer;
use keyring::certificates::{self, Certificates};
use model::Moment;
use tls::{Answer, Challenges, Pending, SharedCertificates, WantedCertificate};
use tokio::sync::Notify;

use super::Parts;
use super::channel::{Channel, Offer, Pem, Received, Versions, Want, catalogue};

// The kind and the receiver's start come before a message.
const _: () = assert!(certificates::wire::MESSAGE_MAX_BYTES < PAYLOAD_MAX - StartId::BYTES);

/// Maximum number of challenges of other members that are answered at once: own ones have room beside them.
const ANSWERS_OF_OTHERS_MAX: usize = tls::CHALLENGES_PENDING_MAX / 2;

/// The certificates of this member.
#[derive(Debug)]
pub(super) struct FleetCertificates {
    /// What the thread that obtains certificates uses.
    process: Arc<SharedCertificates>,
    /// What the listeners answer.
    challenges: Arc<Challenges>,
    fleet: Certificates,
    own: StartId,
    /// The answers to challenges of other members' orders, with the number of each one's challenges.
    answers: HashMap<StartId, (u64, Vec<Pending>)>,
    /// The certificates, the number of own challenges, and whether an order is under way, as published last.
    published: (Arc<Vec<WantedCertificate>>, u64, bool),
    expects_others: bool,
}

impl FleetCertificates {
    pub(super) fn new(parts: &Parts, own: StartId, now: Moment) -> FleetCertificates {
        let process = Arc::clone(&parts.certificates);
        let news: Arc<Notify> = Arc::clone(&parts.news);
        let of_challenges = Arc::clone(&news);
        process.set_fleet_waker(move || news.notify_one());
        parts.challenges.set_waker(move || of_challenges.notify_one());
        FleetCertificates {
            process,
            challenges: Arc::clone(&parts.challenges),
            fleet: Certificates::new(own.0, now),
            own,
            answers: HashMap::new(),
            published: Default::default(),
            expects_others: false,
        }
    }

    /// Shares certificates, or not: then this process orders every certificate that it needs.
    pub(super) fn set_shared(&self, is_shared: bool) {
        self.process.set_shared(is_shared);
    }

    /// Forgets what is known of others.
    pub(super) fn forget(&mut self, live: &[Peer], now: Moment) {
        self.answers.clear();
        self.published = Default::default();
        self.fleet = Certificates::new(self.own.0, now);
        self.fleet.expect_others(self.expects_others);
        self.fleet.set_live(live.to_vec(), now);
    }

    /// Sets whether the configuration names other members.
    pub(super) fn expect_others(&mut self, does: bool) {
        self.expects_others = does;
        self.fleet.expect_others(does);
    }

    pub(super) fn set_live(&mut self, live: &[Peer], now: Moment) {
        self.fleet.set_live(live.to_vec(), now);
    }

    pub(super) fn on_message(&mut self, from: &fleet::Member, bytes: &[u8], now: Moment) -> bool {
        self.fleet.on_message(from.start.0, bytes, now).is_ok()
    }

    pub(super) fn next_due(&self) -> Moment {
        self.fleet.next_due()
    }

    pub(super) fn has_failed(&self, from: &[u8; 16], now: Moment) -> bool {
        self.fleet.has_failed(from, now)
    }

    /// Does what is due. Returns the message for all other members, if there is one.
    pub(super) fn turn(&mut self, channel: &Channel, now: Moment) -> Option<Vec<u8>> {
        self.publish_changes(channel, now);
        self.answers.retain(|from, _| self.fleet.is_answered(&from.0, now));
        while let Some(peer) = self.fleet.fetch(now) {
            let wanted = self.fleet.versions(now);
            if !channel.ask(&peer, Want::Certificates(Arc::new(wanted))) {
                self.fleet.not_fetched(peer.start, now);
            }
        }
        let message = if self.fleet.next_due() <= now { self.fleet.turn(now) } else { None };
        self.set_owners(now);
        message
    }

    pub(super) fn on_fetched(&mut self, from: StartId, received: Received, now: Moment) {
        let Received { catalogue, challenges: (number, answers), certificates } = received;
        let mut given = Vec::with_capacity(certificates.len());
        for (id, version, pem) in certificates {
            if self.fleet.lacks(&id, &version, now) {
                self.process.add_received(id, pem.0);
                given.push((id, version));
            }
        }
        if self.answers.get(&from).is_none_or(|(known, _)| *known != number) {
            let others: usize = self
                .answers
                .iter()
                .filter(|(of, _)| **of != from)
                .map(|(_, (_, all))| all.len())
                .sum();
            let room = ANSWERS_OF_OTHERS_MAX.saturating_sub(others);
            let answers =
                answers.iter().take(room).map_while(|answer| self.answer(answer)).collect();
            self.answers.insert(from, (number, answers));
        }
        let fetched = certificates::Fetched { catalogue, challenges: number, received: given };
        self.fleet.fetched(from.0, fetched, now);
    }

    pub(super) fn not_fetched(&mut self, from: StartId, now: Moment) {
        self.fleet.not_fetched(from.0, now);
    }

    /// Answers a challenge of another member's order. If it cannot be answered, that member still stops waiting for this
    /// one: the authority may connect to another member.
    fn answer(&self, answer: &Answer) -> Option<Pending> {
        let answered = self.challenges.answer(answer);
        let logged = answered.inspect_err(|error| {
            tracing::warn!(%error, "cannot answer an ACME challenge of another fleet member; its order fails if the authority connects here");
        });
        logged.ok()
    }

    /// Returns whether the certificates, challenges or orders of this process are not those that were published last.
    pub(super) fn has_changed(&self) -> bool {
        let (wanted, number, is_ordering) = &self.published;
        !Arc::ptr_eq(&self.process.wanted(), wanted)
            || self.challenges.own_number() != *number
            || self.process.is_ordering() != *is_ordering
    }

    /// Publishes the certificates and challenges of this process, if they have changed.
    fn publish_changes(&mut self, channel: &Channel, now: Moment) {
        self.fleet.set_unable(self.process.is_unable(now), now);
        if !self.has_changed() {
            return;
        }
        let (wanted, challenges) = (self.process.wanted(), self.challenges.own());
        let is_ordering = self.process.is_ordering();
        let version =
            |(id, issued): &WantedCertificate| (*id, issued.as_ref().map(|issued| issued.version));
        let mut versions: Versions = wanted.iter().map(version).collect();
        while versions.len() > certificates::CERTIFICATES_MAX {
            versions.pop_last();
        }
        self.fleet.set_catalogue(catalogue(versions), now);
        self.fleet.set_order(is_ordering || challenges.0 != 0, challenges.0, now);
        let pem =
            |(id, issued): &WantedCertificate| Some((*id, Pem(Arc::clone(&issued.as_ref()?.pem))));
        let pems = wanted.iter().filter_map(pem).collect();
        self.published = (wanted, challenges.0, is_ordering);
        let catalogue = self.fleet.catalogue().clone();
        channel.set_certificates(Offer { catalogue, challenges, pems });
    }

    /// Tells the ACME thread who orders each certificate.
    fn set_owners(&self, now: Moment) {
        let owner = |(id, _): &WantedCertificate| (*id, self.fleet.owner(id, now));
        let answered = if self.fleet.all_answer(now) { self.published.1 } else { 0 };
        self.process.set_owners(self.published.0.iter().map(owner).collect(), answered);
    }
}

/// A process that leaves the fleet may go on for hours with its connections. It must order nothing any more.
impl Drop for FleetCertificates {
    fn drop(&mut self) {
        self.process.set_owners(HashMap::new(), 0);
    }
}
