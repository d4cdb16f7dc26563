//! A balancer as a process: start, reload, upgrade, drain and stop, in the order that keeps every
//! connection.
//!
//! It wires the shells: the data plane ([`proxy`]), what decides about servers ([`control`]), the
//! admin API ([`admin`]) and the readings of the host ([`collect`]). It is given options, and prints
//! nothing: the command line (`weir`) reads words and writes words.
//!
//! [`serve`] runs a configuration file as a service; [`Balancer`] is one without a file of its own,
//! as `weir demo` starts it.

mod affinity_key;
mod built_in_doctor;
mod certificate_reminder;
mod commands;
pub mod configuration;
mod events;
mod explain_token;
mod instance;
pub mod log;
mod management;
mod preflight;
mod preserved;
mod probe_report;
mod reload;
pub mod serve;
mod server_states;
mod service_manager;
pub mod signals;
mod sockets;
mod upgrade;

pub use instance::{Balancer, StartOptions};
pub use preflight::obstacles;
pub use sockets::OpenError;
pub use upgrade::Program;
