//! Tokens and key sets: other libraries' tokens, the specifications' examples, attacks, mutations.
#![allow(clippy::unwrap_used, clippy::panic)]

mod attacks;
mod claims;
mod examples;
mod key_sets;
mod mutations;
mod signing;
