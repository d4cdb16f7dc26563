//! What is known of the kernel's network settings: their units and defaults, and whether a value
//! helps, harms, is dead or is fine. Of those in use, and of those that a file sets.

mod file;
mod judge;
mod machine;
mod review;
mod table;
mod unit;

pub use file::{Line, lines};
pub use judge::{Effect, Judgement};
pub use machine::{Kernel, Machine};
pub use review::{Reviewed, SetBy, Which, in_use, of_file};
pub use table::Setting;
pub use unit::Unit;
