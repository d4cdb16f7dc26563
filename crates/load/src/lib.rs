//! Work to balance: a sample server whose cost is known, and a small steady client.
//!
//! What the program's demo and the tests run against. The load generator proper is not here.

pub mod sample;
pub mod trickle;
