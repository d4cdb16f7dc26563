//! The data types that all crates share: configuration, service, server, cause.
//!
//! Nothing here reads a clock, opens a socket or decides anything; `decide` and `health` decide.
//! The only mutable state ([`ServerState`]) is atomics that outlive configurations.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod acme;
mod address;
mod admin;
mod affinity;
mod authentication;
mod byte_reader;
mod cause;
mod check;
mod client_address;
mod condition;
mod cookie_path;
mod cors;
mod differing;
mod discover;
mod endpoint;
mod error_page;
mod field_meaning;
mod filter;
mod fleet;
pub mod histogram;
mod hosts;
mod kubernetes;
mod log;
mod maintenance;
mod mix;
mod moment;
mod networks;
mod otlp;
mod outcome;
pub mod path;
mod precedence;
mod published_route;
mod registration;
mod registries;
mod scaling;
mod server_latency;
mod server_names;
mod server_state;
mod server_version;
mod service;
mod shared_certificate;
mod shared_rate;
mod snapshot;
mod status_set;
pub mod tcp_path;
mod text;
mod tls;
mod traffic;
mod trial;
pub mod units;
mod url;
mod visible;
mod words;
mod written_at;

pub use acme::{Acme, AcmeCertificate, AcmeChallenge, AcmeRenewal, ExternalAccount};
pub use address::{Address, HostPort, NotAnAddress, SocketAccess, UNIX_PREFIX, UnixPath};
pub use admin::{Admin, AutoscalerListener, Metrics, MetricsListener};
pub use affinity::{Affinity, AffinityKey, AffinityKeyFile, RouteAffinity, SessionCarrier};
pub use authentication::{
    Authentication, AuthenticationId, AuthenticationScheme, AuthenticationWord, ForwardRules,
    IdentityField, IdentityValue, KeySource, TokenRules,
};
pub use byte_reader::ByteReader;
pub use cause::{Cause, Ending, Fault, Page};
pub use check::{BodyExpectation, Check, CheckKind, CheckWord, ProbeIdentity, ProbeSpec, ProbeTls};
pub use client_address::{AddressField, AddressFound, ClientAddress};
pub use condition::{CertificateNames, CertificatePart, Condition, ConditionOn, Pattern, Test};
pub use cookie_path::cookie_path;
pub use cors::{Cors, CorsOrigin};
pub use differing::{Differing, differing};
pub use discover::{
    Discover, Hold, ListedLimits, Listing, ServerSource, ServerSourceWord, Standing,
};
pub use endpoint::{EndpointRow, EndpointSet};
pub use error_page::{ErrorPage, ErrorSet};
pub use field_meaning::{has_field_meaning, has_request_field_meaning, hyphened_field};
pub use filter::{Compression, ContentCoding, MediaRange, RequestFilter, ResponseFilter};
pub use fleet::{Fleet, FleetProblemKind, FleetTls};
pub use hosts::Hosts;
pub use kubernetes::{GATEWAY_CONTROLLER, GatewayExposure, Kubernetes};
pub use log::{
    AccessLog, Facility, Log, LogField, LogFormat, LogMember, LogSample, RedactQuery, SampleClass,
    Syslog, SyslogTarget,
};
pub use maintenance::{Maintained, Maintenance};
pub use mix::{hash_bytes, mix};
pub use moment::Moment;
pub use networks::Networks;
pub use otlp::{Otlp, TraceSample};
pub use outcome::{Attempt, Timings};
pub use precedence::Rank;
pub use published_route::PublishedRoute;
pub use registration::Registration;
pub use registries::{BlockingQueries, Consul, Etcd, Nomad, Registries, RouteTagFormat, TagRoutes};
pub use scaling::{Scaling, ScalingAction, ScalingCall, ScalingWebhook};
pub use server_latency::ServerLatency;
pub use server_names::{ServerNames, TcpBranch, TcpSplit, TlsMode};
pub use server_state::{Administrative, CauseCounts, Health, ServerState};
pub use server_version::{ServerVersion, StatedVersion};
pub use service::{
    Balance, BalanceWord, HashKey, HashOn, HashOnWord, LimitScope, PassiveHealth, QueueLimits,
    Retries, ServerSpec, ServerTarget, Service, ServiceTimeouts, WhenAllDown, ZonePolicy,
};
pub use shared_certificate::{CertificateId, CertificateOwner, CertificateVersion};
pub use shared_rate::{RateReading, RateShare, RateTerms};
pub use snapshot::{
    ClientHttp2, ClientTimeouts, Doctor, ForwardFields, Listener, ListenerId, Protocol,
    ProtocolWord, Reload, ServiceId, Snapshot,
};
pub use status_set::StatusSet;
pub use tcp_path::{TcpPath, TcpPathTotals, TcpSample};
pub use text::Text;
pub use tls::{
    AlternativeName, Certificate, ClientCertificateMode, ClientCertificates, HttpVersion,
    ListenerTls, Material, ProxyVersion, ServiceTls, TlsVersion, UnknownNames,
};
pub use traffic::{
    Action, BranchChanges, Content, Denial, DenialCause, FieldChanges, FieldMatch, Forward,
    HostPattern, MessageChanges, Mirror, Mirrored, ObjectAge, PathChange, PathMatch, RateKey,
    RateKeyWord, RateLimit, Redirect, Respond, Rewrite, Route, RouteAge, RouteMatch, RouteRetries,
    RouteTimeouts, Split, SplitTarget,
};
pub use trial::{Trial, TrialCounts, TrialOutcome, TrialRow};
pub use url::{HttpPeer, HttpUrl, UrlError};
pub use visible::visible;
pub use words::{UnknownWord, Words};
pub use written_at::WrittenAt;
