//! The fleet of a balancer: how its members find each other, and how they share health checks.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::{Certificate, Discover, Material, ServerTarget, Text};

/// A fleet of balancers, as one of its members is configured. The member's zone is [`crate::Snapshot::zone`].
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// The UDP address that it listens on; its port is not 0.
    pub address: SocketAddr,
    /// Where other members send datagrams: neither an unspecified nor a multicast address; its port is not 0.
    pub advertise: SocketAddr,
    /// Its name, unique in the fleet, of 1 to 64 bytes; `None`: the machine's host name.
    pub name: Option<Arc<str>>,
    /// The machine that it runs on, as other members see it, of 1 to 64 bytes; `None`: the machine's host name.
    pub host: Option<Arc<str>>,
    /// Members to join: IP addresses and names, never Unix sockets. At most 64. Any of them suffice, since they
    /// know the others.
    pub members: Vec<ServerTarget>,
    /// A source that lists members to join.
    pub discover: Option<Arc<Discover>>,
    /// One to four different secrets of 32 to 4,096 bytes, without white space around them. The first seals
    /// datagrams; all are accepted.
    pub keys: Vec<Text>,
    /// How many members of each zone run each health check: 1 to 8.
    pub probers: u8,
    /// TLS for what is never in datagrams: session ticket keys; `None`: these are not shared.
    pub tls: Option<FleetTls>,
}

/// TLS between members, over TCP on the fleet's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetTls {
    /// The certificate of this member, for server and client authentication.
    pub certificate: Certificate,
    /// The authorities that sign the certificates of members, and of members alone.
    pub ca: Material,
    /// The DNS name for which the certificates of members are valid; `None`: any name is accepted.
    pub name: Option<Arc<str>>,
}

crate::words! {
    /// What is wrong with a fleet, as one of its members sees it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FleetProblemKind {
        /// This process cannot join.
        NotJoined = "not_joined",
        /// Another process has this member's name.
        NameConflict = "name_conflict",
        /// No member answers at a listed address.
        Missing = "missing",
        /// A member's results of health checks contradict this member's own, and are ignored.
        Ignored = "ignored",
        /// A member shares neither session ticket keys nor certificates, although this one does.
        NotSharing = "not_sharing",
        /// Session ticket keys or certificates cannot be fetched from another member, or this member cannot offer its own.
        NotExchanged = "not_exchanged",
    }
}
