//! Service discovery (`discover` of a service): servers from Consul, files and HTTP, through changes and through
//! faults of the source, under a steady client that loses no request. `prove_consul` has a real Consul.

#[path = "discovery/changes.rs"]
mod changes;
#[path = "discovery/datacenters.rs"]
mod datacenters;
#[path = "discovery/faults.rs"]
mod faults;
#[path = "discovery/held.rs"]
mod held;
#[path = "discovery/named.rs"]
mod named;
#[path = "discovery/reload.rs"]
mod reload;
#[path = "discovery/stage.rs"]
#[allow(dead_code, reason = "prove_consul uses the rest")]
mod stage;
#[path = "discovery/start.rs"]
mod start;
#[path = "discovery/targets.rs"]
mod targets;
#[path = "discovery/watches.rs"]
mod watches;
