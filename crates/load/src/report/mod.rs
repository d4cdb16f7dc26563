//! What a run of load came to: the figures as a file, as a page with charts, and beside other runs.

pub mod charts;
pub mod compare;
mod html;
pub mod latency;
pub mod run;

pub use html::page;
pub use latency::Summary;
pub use run::Run;

/// A run with the name it goes by beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name: a file's, or a time.
    pub name: String,
    /// Its figures.
    pub run: Run,
}
