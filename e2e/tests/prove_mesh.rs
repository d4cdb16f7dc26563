//! Eight balancers in four zones, with servers from a real Consul 1.14.11: a zone is cut off, with Consul inside
//! and outside of it, and zones lose their servers. The lab's incident `zone-mesh`, shortened unless `PROVE=long`.
//! Part of `make prove`; `scripts/install-consul` builds Consul.

#[path = "scenarios/incident.rs"]
mod scenario;

use std::time::Duration;

use e2e::CONSUL;

#[test]
#[ignore = "needs Consul, which `make prove` builds"]
fn zones_of_a_mesh_lose_their_links_and_their_servers_and_no_request_is_lost() {
    // Two variants of 80 s, or 140 s in full length.
    let within = Duration::from_mins(if e2e::is_long() { 8 } else { 5 });
    scenario::incident("zone-mesh", &[CONSUL, "curl", "python3"], !e2e::is_long(), within);
}
