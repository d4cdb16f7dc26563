//! Links: two TUN devices in two namespaces, and a thread between them that treats packets as real
//! networks do.
//!
//! [`Path`], a pure state machine for each direction, decides: facts about the packet and the time go in, a
//! [`Verdict`] comes out. The same seed and the same packets give the same decisions. [`Forwarder`] reads,
//! waits and writes.

mod counters;
mod facts;
mod forwarder;
mod line;
mod loss;
mod path;
mod throttle;
mod turn;
mod way;

pub use counters::{Counts, Lateness};
pub use facts::Facts;
pub use forwarder::{End, Forwarder, open};
pub use path::{Passage, Path, Reason, Verdict};
pub use throttle::{Bucket, Pool, Sheds, Throttle, ThrottleState};
pub use way::{Bursts, Reorder, Way, Ways};
