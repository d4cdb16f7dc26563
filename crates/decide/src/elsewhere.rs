//! A place for a request whose server could not be reached: not where it would be sent next, but
//! where the same trouble is least likely.

use std::net::SocketAddr;

use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::live::LiveService;
use crate::pick::{Candidate, hash};
use crate::slot::Slot;

impl LiveService {
    /// Whether every server that balancing would choose is one of these.
    pub fn has_only(&self, servers: &[SocketAddr]) -> bool {
        self.endpoints().are_all(servers)
    }

    /// A slot on a ready server, none of `avoid` and not in the zone `outside` if one is given, if
    /// one has room: one that is eligible, else any other, a backup last. Which of equals is drawn;
    /// with a `key`, which only requests to services with `balance = "hash"` have, it is the first
    /// in the order in which the key prefers servers.
    ///
    /// When a zone is cut off, its servers fail together, but their checks notice one by one:
    /// until then the next server that balancing would choose is as dead as the last. A request
    /// that has lost its server this way has waited already, and does not wait in the queue again.
    pub fn elsewhere(
        &self,
        avoid: &[SocketAddr],
        outside: Option<&str>,
        key: Option<u64>,
        rng: &mut fastrand::Rng,
    ) -> Option<Slot> {
        let endpoints = self.endpoints();
        let mut order: Vec<_> = endpoints.all.iter().collect();
        match key {
            Some(key) => order.sort_by(|a, b| preference(key, b).total_cmp(&preference(key, a))),
            None if order.is_empty() => {}
            None => {
                let first = rng.usize(..order.len());
                order.rotate_left(first);
            }
        }
        (0..=2).find_map(|remoteness| {
            order
                .iter()
                .filter(|e| outside.is_none() || e.row.zone.as_deref() != outside)
                .filter(|e| e.weight() > 0)
                .filter(|e| e.state.is_ready() && !avoid.contains(&e.row.address))
                .filter(|e| remoteness_of(&endpoints, e.row.address, e.row.backup) == remoteness)
                .find_map(|e| Slot::take(e))
        })
    }
}

/// Where a key would put a server, as [`hash::preference`] does for the candidates of a picker.
fn preference(key: u64, endpoint: &Endpoint) -> f64 {
    let weight = u32::from(endpoint.weight()).max(1);
    hash::preference(key, Candidate { token: endpoint.token, weight })
}

fn remoteness_of(endpoints: &Endpoints, address: SocketAddr, backup: bool) -> u8 {
    if endpoints.is_eligible(address) { 0 } else { 1 + u8::from(backup) }
}
