//! A balancer as a process: start, reload, upgrade, drain and stop, in the order that keeps every
//! connection.
//!
//! It connects the I/O crates: the data plane ([`proxy`]), the control loop ([`control`]), the
//! admin API ([`admin`]), host metrics ([`collect`]) and certificates by ACME ([`acme`]). It takes
//! options and prints nothing: the command line (`weir`) parses arguments and writes output.
//!
//! [`serve`] runs a configuration file as a service; [`Balancer`] runs without a configuration
//! file, as `weir demo` starts it.

mod affinity_key;
mod background;
mod built_in_doctor;
mod certificate_reminder;
mod certificates;
mod certificates_in_force;
mod changes;
mod cluster;
mod commands;
pub mod configuration;
mod departing;
mod events;
mod explain_token;
mod exporter;
mod findings;
mod fixed_settings;
mod fleet_orders;
mod fleet_report;
mod garbage;
mod instance;
pub mod log;
mod maintenance;
mod management;
mod not_admitted;
mod preflight;
mod preserved;
mod probe_report;
mod reload;
mod scaler;
pub mod serve;
mod server_states;
mod service_manager;
pub mod signals;
mod sockets;
mod source_report;
mod state_directory;
mod traffic_history;
mod traffic_rules;
mod upgrade;

pub use instance::{Balancer, StartOptions};
pub use preflight::obstacles;
pub use sockets::OpenError;
pub use upgrade::Program;
