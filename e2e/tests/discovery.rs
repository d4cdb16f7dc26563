//! Service discovery (`discover` of a service): servers from Consul, Nomad, etcd, files and HTTP, through changes
//! and through faults of the source, under a steady client that loses no request. `prove_consul` has a real Consul,
//! `prove_nomad` a real Nomad.

#[path = "discovery/changes.rs"]
mod changes;
#[path = "discovery/datacenters.rs"]
mod datacenters;
#[path = "discovery/etcd.rs"]
mod etcd;
#[path = "discovery/etcd_access.rs"]
mod etcd_access;
#[path = "discovery/etcd_faults.rs"]
mod etcd_faults;
#[path = "discovery/faults.rs"]
mod faults;
#[path = "discovery/held.rs"]
mod held;
#[path = "discovery/named.rs"]
mod named;
#[path = "discovery/nomad.rs"]
mod nomad;
#[path = "discovery/register.rs"]
mod register;
#[path = "discovery/reload.rs"]
mod reload;
#[path = "discovery/rows.rs"]
mod rows;
#[path = "discovery/stage.rs"]
#[allow(dead_code, reason = "prove_consul uses the rest")]
mod stage;
#[path = "discovery/start.rs"]
mod start;
#[path = "discovery/tags.rs"]
mod tags;
#[path = "discovery/targets.rs"]
mod targets;
#[path = "discovery/watches.rs"]
mod watches;
