//! Work to balance: a sample server whose cost is known, and a small steady client. What a run of
//! load came to, as a file and as a page. Uploads in parts, timed.

mod pattern;
pub mod report;
pub mod sample;
pub mod trickle;
pub mod upload;
