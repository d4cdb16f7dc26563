//! Results of a load test: the figures as a file, as a page with charts, and compared with other runs.

pub mod charts;
pub mod compare;
mod html;
pub mod latency;
mod named;
pub mod run;

pub use html::page;
pub use latency::Summary;
pub use named::Named;
pub use run::Run;
