//! Orders for the whole fleet, as other threads make them and other processes pass them on.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use orders::{Order, ServerKey};

use crate::Unavailable;

/// Which members have confirmed an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// The members that lived when it was made or live now, this one included.
    pub members: usize,
    /// Names and addresses of those that have not confirmed it; the names of listed members that do not answer are
    /// empty.
    pub unconfirmed: Vec<(Arc<str>, SocketAddr)>,
}

/// Why an order was not made or is not in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOrdered {
    /// This process is not a member of a fleet at present.
    NotMember,
    /// There are too many orders already.
    Full,
    /// The service or the server has no form that other members accept.
    Invalid,
    /// Another order about the server replaced it before all members had confirmed it.
    Replaced,
    /// The control thread has too much to do. Nothing has changed.
    Busy,
    /// A new process is taking over.
    Upgrading,
    /// The control thread does not answer.
    Unavailable,
}

impl fmt::Display for NotOrdered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOrdered::NotMember => {
                f.write_str("this balancer is not a member of a fleet at present")
            }
            NotOrdered::Full => write!(
                f,
                "the states of {} servers are already set for the whole fleet, which is the maximum; end some with \
                 `weir ready SERVICE SERVER --fleet`",
                orders::ORDERS_MAX
            ),
            NotOrdered::Invalid => write!(
                f,
                "the service's name is longer than {} bytes, or the address is not one that all members share",
                orders::SERVICE_BYTES_MAX
            ),
            NotOrdered::Replaced => f.write_str(
                "another member set another state of this server at the same time, which counts",
            ),
            NotOrdered::Busy => f.write_str("the control thread is busy"),
            NotOrdered::Upgrading => f.write_str("a new process is taking over"),
            NotOrdered::Unavailable => Unavailable.fmt(f),
        }
    }
}

impl std::error::Error for NotOrdered {}

/// An order that a process passes to the one that takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedOrder {
    /// The server.
    pub key: ServerKey,
    /// The order.
    pub order: Order,
    /// It has taken effect in the process that passes it on.
    pub is_applied: bool,
}
