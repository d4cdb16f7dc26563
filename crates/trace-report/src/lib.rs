//! What a capture says, for people and programs: text, tables, JSON, CSV, charts and a page, made
//! from what `trace` has counted.
//!
//! Pure, as `trace` is: the caller reads the capture and writes what comes back.

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
