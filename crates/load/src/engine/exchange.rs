//! A request in flight, on any kind of connection.

use super::recorder::Moments;

/// A request under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// Which of the plan's targets.
    pub(crate) target: usize,
    pub(crate) moments: Moments,
    /// Bytes of it that were sent.
    pub(crate) sent: usize,
    /// How often a server has given it back.
    pub(crate) sent_again: u8,
}
