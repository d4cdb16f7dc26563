//! How an exchange ended: written once per exchange by `proxy::account`, read by everyone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::Cause;

/// The end of one exchange (a request and its response), or of one tcp-mode connection.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Status sent to the client; `None` if none could be sent, and in tcp mode.
    pub status: Option<u16>,
    /// Why it ended as it did.
    pub cause: Cause,
    /// The service it was routed to.
    pub service: Option<Arc<str>>,
    /// The server of the last attempt, as configured.
    pub server: Option<Arc<str>>,
    /// That server's zone.
    pub zone: Option<Arc<str>>,
    /// Attempts before the last, oldest first.
    pub failed_attempts: Vec<Attempt>,
    /// Whether the last attempt used a kept connection.
    pub reused: bool,
    /// Bytes of request body received, and of response body sent.
    pub body_bytes: (u64, u64),
    /// Where the time went.
    pub timings: Timings,
}

/// An attempt that failed and was followed by another.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The server's address.
    pub server: SocketAddr,
    /// Why it failed.
    pub cause: Cause,
}

/// Where an exchange's time went. A stage that was not reached is zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Waiting for a free slot.
    pub queue: Duration,
    /// Establishing a connection to the server (zero when reused).
    pub connect: Duration,
    /// From the complete request head to the first byte of the response head.
    pub first_byte: Duration,
    /// From the complete request head to the end.
    pub total: Duration,
}
