//! What is known of the kernel's network settings, and what it says of those in use and of those that
//! a file sets.

mod file;

pub use file::{Line, lines};
