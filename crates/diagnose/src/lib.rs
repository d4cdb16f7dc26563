//! Facts about a host → findings: what is wrong, on what evidence, why it matters, what to do.
//!
//! Pure: the code that reads the kernel (`collect`) or counts the balancer's own work fills in
//! [`facts::Facts`]; nothing here opens a file or reads a clock, so saved facts lead to the same
//! findings anywhere.

mod backlog;
pub mod board;
mod captured;
pub mod checks;
pub mod evidence;
pub mod facts;
pub mod finding;
pub mod kinds;
mod page;
pub mod render;
pub mod rules;
mod segments;
mod servers;
mod sides;
mod spelling;
pub mod sysctl;
mod traffic;
mod view;
mod word;
pub mod words;
