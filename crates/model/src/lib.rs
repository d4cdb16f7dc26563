//! The nouns everyone shares: what a configuration, a service, a server and a cause *are*.
//!
//! Nothing here reads a clock, opens a socket or decides anything; decisions are `decide`'s and
//! `health`'s. What is mutable here ([`ServerState`]) is atomics that outlive configurations.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod admin;
mod affinity;
mod cause;
mod check;
mod endpoint;
mod filter;
mod moment;
mod outcome;
pub mod path;
mod server_state;
mod service;
mod snapshot;
pub mod tcp_path;
mod tls;
mod traffic;
mod trial;
pub mod units;
mod words;

pub use admin::{Admin, AdminAddress, Metrics};
pub use affinity::{Affinity, AffinityKey, AffinityKeyFile};
pub use cause::{Cause, Fault, Page};
pub use check::{Check, CheckKind, CheckWord, ExpectStatus, ProbeIdentity, ProbeSpec, ProbeTls};
pub use endpoint::{EndpointRow, EndpointSet};
pub use filter::{Compression, ContentCoding, MediaRange, RequestFilter, ResponseFilter};
pub use moment::Moment;
pub use outcome::{Attempt, Timings};
pub use server_state::{Administrative, CauseCounts, Health, ServerState};
pub use service::{
    Balance, BalanceWord, HashKey, HashOn, HashOnWord, PassiveHealth, QueueLimits, Retries,
    ServerSpec, ServerTarget, Service, ServiceTimeouts, WhenAllDown, ZonePolicy,
};
pub use snapshot::{
    AccessLog, ClientHttp2, ClientTimeouts, Doctor, ForwardFields, Listener, ListenerId, Log,
    LogFormat, Protocol, ProtocolWord, Reload, ServiceId, Snapshot,
};
pub use tcp_path::{TcpPath, TcpPathTotals, TcpSample};
pub use tls::{
    Certificate, ClientCertificates, HttpVersion, ListenerTls, Material, ProxyVersion, ServiceTls,
    TlsVersion,
};
pub use traffic::{
    Action, FieldChanges, FieldMatch, Forward, HostPattern, PathMatch, RateKey, RateLimit,
    Redirect, Rewrite, Route, RouteMatch, Split,
};
pub use trial::{Trial, TrialCounts, TrialOutcome, TrialRow};
pub use words::UnknownWord;
