//! What stands beside a connection to a server, busy or idle, so that the learner knows it again.

use model::Moment;

/// A connection while it carries an exchange, as far as the learner cares. Kept beside it.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    pub(super) epoch: u32,
    /// The idle time before this exchange; `None` for the first.
    pub(super) after: Option<Reused>,
}

impl Busy {
    /// Whether it carried an exchange before this one.
    pub fn reused(&self) -> bool {
        self.after.is_some()
    }
}

/// The idle time before an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reused {
    pub(super) since: Moment,
    /// Last seen open by a sweep.
    pub(super) seen: Moment,
    pub(super) taken: Moment,
    pub(super) promised_us: u64,
}

/// A connection that waits in a pool, as far as the learner cares. Kept beside it.
#[derive(Debug)]
pub struct Idle {
    pub(super) since: Moment,
    pub(super) seen: Moment,
    pub(super) epoch: u32,
    /// Kept only to be watched.
    pub(super) observer: bool,
    /// Was reported as having outlived the remembered closes.
    pub(super) outlived: bool,
    /// The server's promise; [`super::NEVER`]: none.
    pub(super) promised_us: u64,
}

impl Idle {
    /// Since the end of its last response.
    pub fn since(&self) -> Moment {
        self.since
    }

    /// Whether it is kept only to be watched, never to be used.
    pub fn is_observer(&self) -> bool {
        self.observer
    }
}
