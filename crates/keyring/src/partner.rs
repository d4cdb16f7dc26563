//! Another member: whether it takes part, and when it may be asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::Moment;

/// A member that has sent no message for this long after it joined counts as one that does not share.
pub const SILENT: Duration = Duration::from_secs(16);
/// A member counts as one that shares for so long after its last message: messages may be lost.
const HEARD: Duration = Duration::from_mins(1);
/// The pause after a fetch that failed, doubled with each further one.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// After this many failed fetches in a row, a member is skipped: after 15 s, or 40 s if each one times out. It is then asked
/// every 30 s.
const FAILURES_MAX: u32 = 5;

/// The least pause between two fetches from one member: it costs CPU time at both.
const ASK_PAUSE: Duration = Duration::from_millis(100);

/// Another member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: Arc<str>,
    /// Where secrets are fetched from it.
    pub address: SocketAddr,
    /// The start of its process.
    pub start: [u8; 16],
}

/// Another member, and its last message.
#[derive(Debug)]
pub(crate) struct Partner<S> {
    pub(crate) peer: Peer,
    /// Since when it lives, as far as this member knows.
    since: Moment,
    message: Option<(Moment, S)>,
    /// Fetches from it that failed in a row, and until when it is not asked again.
    failures: u32,
    ask_from: Moment,
}

impl<S> Partner<S> {
    pub(crate) fn new(peer: Peer, now: Moment) -> Partner<S> {
        Partner { peer, since: now, message: None, failures: 0, ask_from: now }
    }

    /// Returns it with what is known of the member now.
    pub(crate) fn with_peer(self, peer: Peer) -> Partner<S> {
        Partner { peer, ..self }
    }

    pub(crate) fn set_message(&mut self, message: S, now: Moment) {
        self.message = Some((now, message));
    }

    /// Returns its last message, if it has sent one.
    pub(crate) fn message(&self) -> Option<&S> {
        self.message.as_ref().map(|(_, message)| message)
    }

    pub(crate) fn message_mut(&mut self) -> Option<&mut S> {
        self.message.as_mut().map(|(_, message)| message)
    }

    /// Returns whether it shares: it has sent a message lately.
    pub(crate) fn takes_part(&self, now: Moment) -> bool {
        self.message.as_ref().is_some_and(|(at, _)| now.since(*at) < HEARD)
    }

    /// Returns whether it does not share. Neither this nor [`Partner::takes_part`]: it is not known yet.
    pub(crate) fn is_silent(&self, now: Moment) -> bool {
        !self.takes_part(now) && now.since(self.since) >= SILENT
    }

    /// Returns how many fetches from it failed in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Returns whether fetches from it have failed so often that this member no longer waits for it.
    pub(crate) fn is_skipped(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    pub(crate) fn may_be_asked(&self, now: Moment) -> bool {
        self.ask_from <= now
    }

    pub(crate) fn fetch_failed(&mut self, now: Moment) {
        let pause = RETRY_MIN.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
        self.ask_from = now + pause;
        self.failures = self.failures.saturating_add(1);
    }

    /// Counts a fetch that was answered without what the member says it has. It is asked again soon, for what is new there,
    /// unless it is skipped.
    pub(crate) fn fetch_was_useless(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        self.ask_from = now + if self.is_skipped() { RETRY_MAX } else { RETRY_MIN };
    }

    pub(crate) fn fetch_worked(&mut self) {
        self.failures = 0;
    }

    /// Waits a little before it is asked again.
    pub(crate) fn pause(&mut self, now: Moment) {
        self.ask_from = self.ask_from.max(now + ASK_PAUSE);
    }
}
