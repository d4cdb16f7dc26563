//! What is recorded about an exchange besides its cause: failed attempts, and where the time went.
//! `proxy::account` fills it in once per exchange, `observe` counts and records it.

use std::time::Duration;

use crate::{Address, Cause};

/// An attempt that failed and was followed by another.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The server's address.
    pub server: Address,
    /// Why it failed.
    pub cause: Cause,
    /// The status of its response, if the client was not to get that.
    pub status: Option<u16>,
    /// From the beginning of the exchange to that of the attempt.
    pub after: Duration,
    /// From there to its failure.
    pub took: Duration,
}

/// The durations of an exchange's stages. A stage that was not reached is zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Waiting for the verdict of an authentication server.
    pub authentication: Duration,
    /// Waiting for a free slot.
    pub queue: Duration,
    /// Establishing a connection to the server (zero when reused).
    pub connect: Duration,
    /// From the complete request head to the first byte of the response head.
    pub first_byte: Duration,
    /// From the complete request head to the end.
    pub total: Duration,
    /// Holding slots at servers, over all attempts; zero if no server has seen anything of it.
    pub worked: Duration,
}
