//! Results of a load test: the figures as a file, as a page with charts, and compared with other runs.

mod answer;
pub mod charts;
pub mod compare;
mod html;
pub mod latency;
mod limit;
mod named;
pub mod run;
mod trials;
mod words;

pub use answer::answer;
pub use html::{page, shown_of_search};
pub use latency::Summary;
pub use named::Named;
pub use run::Run;
pub use words::{per_second, resource};
