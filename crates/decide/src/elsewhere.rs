//! Chooses a server for a request whose server could not be reached: not the next in the balancing
//! order, but one least likely to share the failure.

use model::Address;

use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;
use crate::live::LiveService;
use crate::pick::{Candidate, hash};
use crate::slot::Slot;

impl LiveService {
    /// Returns whether every server that balancing would choose is one of these.
    pub fn has_only(&self, servers: &[Address]) -> bool {
        self.endpoints().are_all(servers)
    }

    /// Takes a slot on a ready server that is not in `avoid`, and not in the zone `outside` if one
    /// is given: an eligible one with room, else any other, a backup last. Equals are drawn at
    /// random; with a `key`, which only requests to services with `balance = "hash"` have, it is
    /// the first in the key's order of preference.
    ///
    /// When a zone is cut off, its servers fail together, but their checks notice one by one: until
    /// then the next server that balancing would choose is as unreachable as the last. A request
    /// that has lost its server this way has waited already, and does not wait in the queue again.
    pub fn elsewhere(
        &self,
        avoid: &[Address],
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
                .filter(|e| e.is_ready() && !avoid.contains(&e.row.address))
                .filter(|e| remoteness_of(&endpoints, e.row.address, e.is_backup()) == remoteness)
                .find_map(|e| Slot::take(e))
        })
    }
}

/// Returns where a key would place a server, as [`hash::preference`] does for the candidates of a
/// picker.
fn preference(key: u64, endpoint: &Endpoint) -> f64 {
    let weight = u32::from(endpoint.weight()).max(1);
    hash::preference(key, Candidate { token: endpoint.token, weight })
}

fn remoteness_of(endpoints: &Endpoints, address: Address, backup: bool) -> u8 {
    if endpoints.is_eligible(address) { 0 } else { 1 + u8::from(backup) }
}
