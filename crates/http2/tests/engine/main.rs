//! The engine as its owner uses it: against frames written by hand, against itself, and against the
//! `h2` crate.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails its test"
)]

mod abuse;
mod frames;
mod heads;
mod peer;
mod rig;
mod scheduling;
mod simulation;
mod violations;
