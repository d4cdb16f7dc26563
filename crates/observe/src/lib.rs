//! What is counted and recorded: per-worker counters and histograms, the access line, and the text
//! that a metrics scraper reads.
//!
//! On the request's path nothing here locks, allocates or formats for metrics: a worker looks up
//! its [`ServiceCounters`] once and then only adds. Reading merges what the workers wrote. Pure:
//! times are arguments, text is appended to the caller's buffer; who writes it where and when is
//! the shells' affair.

pub mod counters;
pub mod exposition;
pub mod histogram;
pub mod in_flight;
pub mod log_limit;
pub mod record;
pub mod registry;
pub mod timestamp;

mod digits;

pub use counters::{Counter, ListenerCounters, ServiceCounters, Shard};
pub use exposition::{Format, Gauges};
pub use histogram::{Histogram, HistogramTotals};
pub use in_flight::{InFlight, InFlightTold, InFlightWanted, Stage};
pub use record::{AccessRecord, TcpRecord, TcpSide, TlsRecord};
pub use registry::{ListenerTotals, Registry, ServiceTotals, Totals};
pub use timestamp::{Timestamp, TimestampCache};
