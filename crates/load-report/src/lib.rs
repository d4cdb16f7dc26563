//! What a run of load came to: the figures as a file, as a page with charts, and beside other runs.

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
