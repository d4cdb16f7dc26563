//! The harness of the whole-program tests: the built `weir` between real clients and real
//! servers, each a process of its own, all of them gone when the test ends.
//!
//! A test begins with a [`Scene`]: a folder, a private piece of loopback (or of a namespace), and
//! its turn to use the machine. It starts servers ([`App`], [`Nginx`]), a [`Weir`], and clients
//! ([`clients`]), and checks answers, logs, and the servers' counts. Nothing here depends on how Weir
//! is built, only on what is visible from outside.
//!
//! Which `weir` is tested: `WEIR_BIN` if it is set (`make test`, `make prove` and `make measure` set it), else
//! the one in the target folder, built first by `cargo build --workspace --bin weir`.
//!
//! No test sleeps until something has probably happened: [`wait::until`] waits for a
//! condition, with a bound. Where a test measures over a stretch of time, it says so with
//! [`wait::measure_for`].

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test harness fails by panicking"
)]

mod certificates;
pub mod clients;
pub mod consul;
mod counting;
mod dice;
pub mod etcd;
pub mod frames;
mod grid;
pub mod http;
mod issuer;
pub mod knot;
mod linked;
mod namespace;
pub mod nomad;
pub mod paced;
mod peers;
pub mod polling;
mod process;
mod promises;
pub mod raw;
pub mod rogue;
mod scene;
mod servers;
mod terminal;
pub mod wait;
mod weir;

pub use certificates::{Authority, Pair, speak_tls};
pub use counting::Counting;
pub use dice::{Dice, seeds};
pub use issuer::{Issuer, key_set};
pub use linked::Linked;
pub use namespace::{Zones, offloads_off};
pub use peers::{
    CONSUL, H2SPEC, KEDA_CLIENT, NAMESPACES, NOMAD, OAUTH2_PROXY, OTEL_COLLECTOR, PEBBLE,
    PEBBLE_DNS, PYTHON_PEERS, VERSITYGW, find,
};
pub use process::{Finished, Process};
pub use promises::Promises;
pub use scene::Scene;
pub use servers::{App, Haproxy, Nginx, python_server};
pub use terminal::Terminal;
pub use weir::{Admin, NewProcess, Weir, binary, run, run_by};

/// Whether the long tests are to run in their full length: `PROVE=long make prove`.
pub fn is_long() -> bool {
    std::env::var("PROVE").is_ok_and(|prove| prove == "long")
}

/// The `[[service.NAME.server]]` tables for servers at `addresses`.
pub fn server_tables<A: std::fmt::Display>(
    service: &str,
    addresses: impl IntoIterator<Item = A>,
) -> String {
    addresses
        .into_iter()
        .map(|address| format!("[[service.{service}.server]]\naddress = \"{address}\"\n"))
        .collect()
}
