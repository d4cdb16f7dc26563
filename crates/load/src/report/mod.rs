//! What a run of load came to: the figures as a file.

pub mod latency;
pub mod run;

pub use latency::Summary;
pub use run::Run;
