//! Tests of the engine through its interface: with hand-written frames, with itself as the peer,
//! and with the `h2` crate as the peer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod abuse;
mod bounds;
mod frames;
mod heads;
mod peer;
mod rig;
mod scheduling;
mod simulation;
mod violations;
