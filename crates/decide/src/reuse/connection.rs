//! What the learner stores with each server connection, busy or idle.

use model::Moment;

/// The learner's state of a connection in use. Stored with it.
#[derive(Clone, Copy, Debug)]
pub struct Busy {
    pub(super) epoch: u32,
    /// The idle time before this exchange; `None` for the first.
    pub(super) after: Option<Reused>,
}

impl Busy {
    /// Returns whether it carried an exchange before this one.
    pub fn reused(&self) -> bool {
        self.after.is_some()
    }
}

/// The idle time before an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reused {
    pub(super) since: Moment,
    /// When a sweep last saw it open.
    pub(super) seen: Moment,
    pub(super) taken: Moment,
    pub(super) promised_us: u64,
}

/// The learner's state of a pooled connection. Stored with it.
#[derive(Debug)]
pub struct Idle {
    pub(super) since: Moment,
    pub(super) seen: Moment,
    pub(super) epoch: u32,
    /// Kept only for observation.
    pub(super) observer: bool,
    /// Was counted as having outlived the remembered closes.
    pub(super) outlived: bool,
    /// The server's promise; [`super::NEVER`]: none.
    pub(super) promised_us: u64,
}

impl Idle {
    /// Returns the end of its last response.
    pub fn since(&self) -> Moment {
        self.since
    }

    /// Returns whether it is kept only for observation, never for use.
    pub fn is_observer(&self) -> bool {
        self.observer
    }
}
