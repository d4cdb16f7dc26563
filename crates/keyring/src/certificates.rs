//! Who orders which certificate (ACME), and whom to fetch it from.
//!
//! Each member has a [`Catalogue`] of the certificates that its configuration wants, and which version of each it has.
//! Messages have the catalogue's digest only: a member fetches the catalogue of another one unless it knows it from a
//! member with the same configuration. All members use the newest version of a certificate.
//!
//! - A certificate is ordered by one of the members that want it: one that has not just failed, and of these one with an
//!   order under way, else the one with the lowest start. Members whose secrets cannot be fetched are skipped. As long as
//!   a member does not know what each other one wants, it orders nothing, until [`SILENT`] has passed or that member is
//!   skipped.
//! - The authority validates at any member, so all answer the challenges of the one that orders:
//!   [`Certificates::all_answer`]. They drop the answers when it has no pending challenges, or leaves the fleet.
//! - During a partition each side may order. When it ends, all members use the newer certificate.

pub mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::{CertificateId, CertificateOwner, CertificateVersion, Moment};

use crate::Malformed;
use crate::pace::Pace;
pub use crate::partner::SILENT;
use crate::partner::{Partner, Peer};
use wire::{ANSWERS_MAX, Message};

/// Maximum number of certificates that a member shares. Each one has a name or an address of a listener.
pub const CERTIFICATES_MAX: usize = 1024;

/// How long after its start a member orders nothing: others may have certificates. If the configuration names others and
/// none lives, for [`SILENT`].
const JOIN: Duration = Duration::from_secs(3);
/// Members that are asked at once.
const ASKED_MAX: usize = 4;
/// When so many members have failed to order lately, no further one takes their place: the cause is probably the authority,
/// DNS or a firewall.
const UNABLE_MAX: usize = 3;
/// A fetched certificate that is not in use after this time is fetched again.
const RECEIVED_KEPT: Duration = Duration::from_mins(10);

/// What a member wants, and has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    /// A digest of the entries. Two catalogues with one digest are the same. All zero: there are no entries.
    pub digest: [u8; 16],
    /// The certificates that it wants; `None`: it has no version.
    pub entries: BTreeMap<CertificateId, Option<CertificateVersion>>,
}

/// What was fetched from a member.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    /// Its catalogue.
    pub catalogue: Catalogue,
    /// The number of its challenges that this member answers now; 0: none are pending.
    pub challenges: u64,
    /// The certificates that came with it.
    pub received: Vec<(CertificateId, CertificateVersion)>,
}

/// The certificates of the fleet, as one member knows them.
#[derive(Debug)]
pub struct Certificates {
    own: [u8; 16],
    begun: Moment,
    catalogue: Arc<Catalogue>,
    /// Fetched, and when; perhaps not in use yet.
    received: BTreeMap<CertificateId, (CertificateVersion, Moment)>,
    is_ordering: bool,
    challenges: u64,
    is_unable: bool,
    expects_others: bool,
    others: BTreeMap<[u8; 16], Other>,
    pace: Pace,
}

#[derive(Debug)]
struct Other {
    partner: Partner<Message>,
    /// The last one that was fetched. It is outdated if its digest is not that of the member's last message.
    catalogue: Option<Arc<Catalogue>>,
    /// The number of its challenges that this member answers.
    answered: u64,
    is_asked: bool,
}

impl Other {
    /// Returns whether its catalogue is known, or is not waited for any more.
    fn is_known(&self, now: Moment) -> bool {
        let partner = &self.partner;
        let is_known = self.catalogue.is_some() || partner.is_skipped();
        partner.is_silent(now) || (partner.takes_part(now) && is_known)
    }

    /// Returns whether it shares, and secrets can be fetched from it.
    fn is_used(&self, now: Moment) -> bool {
        self.partner.takes_part(now) && !self.partner.is_skipped()
    }

    fn wants(&self, id: &CertificateId) -> bool {
        self.catalogue.as_ref().is_some_and(|catalogue| catalogue.entries.contains_key(id))
    }

    /// Returns whether its challenges are pending, and not those that this member answers.
    fn has_new_challenges(&self) -> bool {
        self.partner
            .message()
            .is_some_and(|said| said.challenges != 0 && said.challenges != self.answered)
    }

    fn has_new_catalogue(&self) -> bool {
        let known = self.catalogue.as_ref().map(|catalogue| catalogue.digest);
        self.partner.message().is_some_and(|said| Some(said.catalogue) != known)
    }
}

impl Certificates {
    /// Creates the state of the member whose process has this start, with an empty catalogue.
    pub fn new(own: [u8; 16], now: Moment) -> Certificates {
        Certificates {
            own,
            begun: now,
            catalogue: Arc::default(),
            received: BTreeMap::new(),
            is_ordering: false,
            challenges: 0,
            is_unable: false,
            expects_others: false,
            others: BTreeMap::new(),
            pace: Pace::new(now),
        }
    }

    /// Sets which other members live.
    pub fn set_live(&mut self, live: impl IntoIterator<Item = Peer>, now: Moment) {
        let mut before = std::mem::take(&mut self.others);
        for peer in live {
            let start = peer.start;
            let other = before.remove(&start).unwrap_or_else(|| {
                self.pace.announce(now);
                let partner = Partner::new(peer.clone(), now);
                Other { partner, catalogue: None, answered: 0, is_asked: false }
            });
            let partner = other.partner.with_peer(peer);
            self.others.insert(start, Other { partner, ..other });
        }
    }

    /// Sets whether the configuration names other members.
    pub fn expect_others(&mut self, does: bool) {
        self.expects_others = does;
    }

    /// Sets what this member wants and has: at most [`CERTIFICATES_MAX`] entries.
    pub fn set_catalogue(&mut self, catalogue: Catalogue, now: Moment) {
        if catalogue != *self.catalogue {
            self.catalogue = Arc::new(catalogue);
            self.pace.announce(now);
        }
    }

    /// Returns what this member wants and has.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Sets whether this member has an order under way, and the number of its challenges that are pending; 0: none are.
    /// Each set of challenges has its own.
    pub fn set_order(&mut self, is_ordering: bool, challenges: u64, now: Moment) {
        if (self.is_ordering, self.challenges) != (is_ordering, challenges) {
            (self.is_ordering, self.challenges) = (is_ordering, challenges);
            self.pace.announce(now);
        }
    }

    /// Sets whether this member's last order failed for a reason that others may not have.
    pub fn set_unable(&mut self, is_unable: bool, now: Moment) {
        if std::mem::replace(&mut self.is_unable, is_unable) != is_unable {
            self.pace.announce(now);
        }
    }

    /// Applies the message of another member. Those of processes that are not members are ignored.
    ///
    /// # Errors
    ///
    /// If the bytes are no message.
    pub fn on_message(
        &mut self,
        from: [u8; 16],
        bytes: &[u8],
        now: Moment,
    ) -> Result<(), Malformed> {
        let said = wire::read(bytes)?;
        let known = self.known_catalogue(&said.catalogue);
        let Some(other) = self.others.get_mut(&from) else { return Ok(()) };
        if known.is_some() {
            other.catalogue = known;
        }
        if said.challenges == 0 {
            other.answered = 0;
        }
        other.partner.set_message(said, now);
        Ok(())
    }

    /// Returns when [`Certificates::turn`] next has work to do.
    pub fn next_due(&self) -> Moment {
        self.pace.next_due()
    }

    /// Returns the message for all other members, if one is due.
    pub fn turn(&mut self, now: Moment) -> Option<Vec<u8>> {
        if !self.pace.turn(now) || self.others.is_empty() {
            return None;
        }
        let answered = self.others.iter().filter(|(_, other)| other.answered != 0);
        let answers = answered.map(|(start, other)| (*start, other.answered));
        Some(wire::write(&Message {
            is_unable: self.is_unable,
            is_ordering: self.is_ordering,
            catalogue: self.catalogue.digest,
            challenges: self.challenges,
            answers: answers.take(ANSWERS_MAX).collect(),
        }))
    }

    /// Returns a member to fetch from: its catalogue, its challenges, and the certificates of [`Certificates::lacks`].
    /// Until [`Certificates::fetched`] or [`Certificates::not_fetched`] it is not returned again.
    pub fn fetch(&mut self, now: Moment) -> Option<Peer> {
        if self.others.values().filter(|other| other.is_asked).count() >= ASKED_MAX {
            return None;
        }
        let may = |other: &&Other| {
            let partner = &other.partner;
            let has_news = other.has_new_challenges() || other.has_new_catalogue();
            // After a failure it is asked until a fetch works: that ends the failure.
            let is_useful = has_news || partner.has_failed() || self.lacks_any_of(other, now);
            !other.is_asked && partner.may_be_asked(now) && partner.takes_part(now) && is_useful
        };
        // An authority may be waiting for answers.
        let best = self.others.values().filter(may);
        let best =
            best.min_by_key(|other| (!other.has_new_challenges(), other.partner.failures()))?;
        let peer = best.partner.peer.clone();
        if let Some(other) = self.others.get_mut(&peer.start) {
            other.is_asked = true;
        }
        Some(peer)
    }

    /// Returns whether this member wants this certificate and has none as new.
    pub fn lacks(&self, id: &CertificateId, version: &CertificateVersion, now: Moment) -> bool {
        let own = self.catalogue.entries.get(id);
        own.is_some_and(|own| self.newest(id, *own, now).is_none_or(|newest| newest < *version))
    }

    /// Returns the certificates that this member wants, and the newest version of each that it has, in use or not yet.
    pub fn versions(&self, now: Moment) -> BTreeMap<CertificateId, Option<CertificateVersion>> {
        let entries = self.catalogue.entries.iter();
        entries.map(|(id, own)| (*id, self.newest(id, *own, now))).collect()
    }

    fn newest(
        &self,
        id: &CertificateId,
        own: Option<CertificateVersion>,
        now: Moment,
    ) -> Option<CertificateVersion> {
        let received = self.received.get(id);
        let received = received.filter(|(_, at)| now.since(*at) < RECEIVED_KEPT);
        own.max(received.map(|(version, _)| *version))
    }

    /// Notes what was fetched from a member.
    pub fn fetched(&mut self, from: [u8; 16], fetched: Fetched, now: Moment) {
        let Fetched { catalogue, challenges, received } = fetched;
        let is_useful = !received.is_empty();
        for (id, version) in received {
            if self.lacks(&id, &version, now) {
                self.received.insert(id, (version, now));
            }
        }
        self.received.retain(|id, _| self.catalogue.entries.contains_key(id));
        let Some(other) = self.others.get_mut(&from) else { return };
        other.is_asked = false;
        let is_answer = std::mem::replace(&mut other.answered, challenges) != challenges;
        // It is newer than the last message.
        if let Some(said) = other.partner.message_mut() {
            (said.catalogue, said.challenges) = (catalogue.digest, challenges);
        }
        other.catalogue = Some(Arc::new(catalogue));
        let lacks = self.others.get(&from).is_some_and(|other| self.lacks_any_of(other, now));
        if let Some(other) = self.others.get_mut(&from) {
            // One that does not have what it says is skipped after a while.
            if lacks && !is_useful {
                other.partner.fetch_was_useless(now);
            } else {
                other.partner.fetch_worked();
            }
            other.partner.pause(now);
        }
        if is_answer {
            self.pace.announce(now);
        }
    }

    /// Nothing could be fetched from a member.
    pub fn not_fetched(&mut self, from: [u8; 16], now: Moment) {
        if let Some(other) = self.others.get_mut(&from) {
            other.is_asked = false;
            other.partner.fetch_failed(now);
        }
    }

    /// Returns which member orders this certificate, as far as this member knows. A certificate that is not shared is always
    /// this member's own. A shared one is its own only once it knows what all others want and have.
    pub fn owner(&self, id: &CertificateId, now: Moment) -> CertificateOwner {
        if !self.catalogue.entries.contains_key(id) {
            return CertificateOwner::Own;
        }
        let candidates = || {
            let others = self.others.values().filter(|other| other.is_used(now) && other.wants(id));
            others.filter_map(|other| Some((other, other.partner.message()?)))
        };
        let unable = candidates().filter(|(_, message)| message.is_unable).count();
        let is_outage = unable + usize::from(self.is_unable) >= UNABLE_MAX;
        let rank = |(other, message): &(&Other, &Message)| {
            (message.is_unable && !is_outage, !message.is_ordering, other.partner.peer.start)
        };
        let own = (self.is_unable && !is_outage, !self.is_ordering, self.own);
        match candidates().min_by_key(rank) {
            Some(best) if rank(&best) < own => {
                CertificateOwner::Other(Arc::clone(&best.0.partner.peer.name))
            }
            _ if self.is_settled(now) => CertificateOwner::Own,
            _ => CertificateOwner::Unknown,
        }
    }

    /// Returns whether this member knows what each other one wants, and has the certificates that they have.
    fn is_settled(&self, now: Moment) -> bool {
        let wait = if self.expects_others && self.others.is_empty() { SILENT } else { JOIN };
        let has_all_of = |other: &Other| other.is_known(now) && !self.is_behind(other, now);
        now.since(self.begun) >= wait && self.others.values().all(has_all_of)
    }

    /// Returns whether another member has, or may have, certificates that this one is to fetch first.
    fn is_behind(&self, other: &Other, now: Moment) -> bool {
        other.is_used(now) && (other.has_new_catalogue() || self.lacks_any_of(other, now))
    }

    /// Returns whether all other members answer this member's challenges. Those that do not share certificates are ignored.
    pub fn all_answer(&self, now: Moment) -> bool {
        let answer = (self.own, self.challenges);
        let mut others = self.others.values().filter(|other| !other.partner.is_silent(now));
        self.challenges == 0
            || others.all(|other| {
                other.partner.message().is_some_and(|said| said.answers.contains(&answer))
            })
    }

    /// Returns whether the challenges that were fetched from this member are still to be answered.
    pub fn is_answered(&self, from: &[u8; 16], now: Moment) -> bool {
        self.others
            .get(from)
            .is_some_and(|other| other.answered != 0 && other.partner.takes_part(now))
    }

    /// Returns whether this member shares, and the last fetch from it failed.
    pub fn has_failed(&self, from: &[u8; 16], now: Moment) -> bool {
        let partner = self.others.get(from).map(|other| &other.partner);
        partner.is_some_and(|partner| partner.has_failed() && partner.takes_part(now))
    }

    fn known_catalogue(&self, digest: &[u8; 16]) -> Option<Arc<Catalogue>> {
        if *digest == Catalogue::default().digest {
            return Some(Arc::default());
        }
        let of_others = self.others.values().filter_map(|other| other.catalogue.as_ref());
        let mut all = std::iter::once(&self.catalogue).chain(of_others);
        all.find(|one| one.digest == *digest).cloned()
    }

    fn lacks_any_of(&self, other: &Other, now: Moment) -> bool {
        let entries = other.catalogue.iter().flat_map(|catalogue| &catalogue.entries);
        entries
            .filter_map(|(id, version)| Some((id, version.as_ref()?)))
            .any(|(id, version)| self.lacks(id, version, now))
    }
}

#[cfg(test)]
mod tests;
