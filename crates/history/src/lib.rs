//! The recent past of the balancer's traffic, in bounded memory: a row a second for 15 minutes, a row
//! every ten seconds for two hours, a row a minute for a day.
//!
//! Pure: once a second the caller passes in what was counted so far ([`Reading`]), with the time.
//! Rows are the differences: counts, largest levels, and quantiles of the durations recorded in
//! between, each exact for its own interval. [`History::rows`] returns them; [`History::window`]
//! returns the counts and whole histograms of the last seconds, for rates and for rules.

mod block;
mod columns;
mod history;
mod quantised;
mod reading;
mod ring;
mod saved;
mod series;
mod snapshot;
mod tier;
mod window;

#[cfg(test)]
mod tests;

pub use block::{CAUSES_MAX, CauseCount};
pub use columns::{Column, Kind};
pub use history::{History, Key, Rows};
pub use reading::{Mean, Reading};
pub use tier::{TIERS, Tier};
pub use window::Window;
