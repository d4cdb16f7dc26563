//! Reports on captures: text, tables, JSON, CSV, charts and a page from the counts of `trace`.
//!
//! No I/O: the caller reads the capture and writes the results.

mod answer;
mod chart;
pub mod csv;
mod events;
mod facts;
mod figures;
pub mod json;
pub mod page;
pub mod picture;
mod reading;
pub mod tables;
pub mod text;

pub use events::Events;
pub use figures::Figures;
pub use reading::{Reading, Selection, worst};
