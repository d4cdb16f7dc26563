//! Counters, histograms, the access line, and metrics exposition.
//!
//! On the request's path, metrics take no lock, allocate nothing and format nothing: a worker looks
//! up its [`ServiceCounters`] once and then only adds. Reading merges what the workers wrote. Pure:
//! times are arguments, text is appended to the caller's buffer; the I/O crates write it.

pub mod clients;
pub mod counters;
pub mod exposition;
pub mod histogram;
pub mod in_flight;
pub mod kept;
pub mod log_limit;
pub mod record;
pub mod registry;
pub mod timestamp;
pub mod truncate;

mod digits;

pub use clients::{Client, Frequent, FrequentClients};
pub use counters::{Counter, ListenerCounters, ServiceCounters, Shard};
pub use exposition::{Format, Gauges};
pub use histogram::Histogram;
pub use in_flight::{InFlight, InFlightFilter, InFlightReport, Stage};
pub use kept::{KeptExchange, KeptExchanges, KeptFor, KeptOfService};
pub use record::{
    AccessRecord, AttemptSpan, Concurrency, TcpRecord, TcpSide, TlsRecord, TraceExport, TraceRecord,
};
pub use registry::{ListenerTotals, Registry, ServiceTotals, Totals};
pub use timestamp::{Timestamp, TimestampCache};
