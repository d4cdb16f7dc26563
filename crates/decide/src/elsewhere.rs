//! A place for a request whose server could not be reached: not where it would be sent next, but
//! where the same trouble is least likely.

use std::net::SocketAddr;

use crate::endpoints::Endpoints;
use crate::limits::Slot;
use crate::live::LiveService;

impl LiveService {
    /// Whether every server that balancing would choose is one of these.
    pub fn has_only(&self, servers: &[SocketAddr]) -> bool {
        self.endpoints().are_all(servers)
    }

    /// A slot on a ready server, none of `avoid` and not in the zone `outside` if one is given, if
    /// one has room: one that is eligible, else any other, a backup last. Which of equals is drawn.
    ///
    /// When a zone is cut off, its servers fail together, but their checks notice one by one:
    /// until then the next server that balancing would choose is as dead as the last. A request
    /// that has lost its server this way has waited already, and does not wait in the queue again.
    pub fn elsewhere(
        &self,
        avoid: &[SocketAddr],
        outside: Option<&str>,
        rng: &mut fastrand::Rng,
    ) -> Option<Slot> {
        let endpoints = self.endpoints();
        let first = rng.usize(..endpoints.all.len().max(1));
        (0..=2).find_map(|remoteness| {
            let (behind, ahead) = endpoints.all.split_at(first.min(endpoints.all.len()));
            ahead
                .iter()
                .chain(behind)
                .filter(|e| outside.is_none() || e.row.zone.as_deref() != outside)
                .filter(|e| e.weight() > 0)
                .filter(|e| e.state.is_ready() && !avoid.contains(&e.row.address))
                .filter(|e| remoteness_of(&endpoints, e.row.address, e.row.backup) == remoteness)
                .find_map(Slot::take)
        })
    }
}

fn remoteness_of(endpoints: &Endpoints, address: SocketAddr, backup: bool) -> u8 {
    if endpoints.is_eligible(address) { 0 } else { 1 + u8::from(backup) }
}
