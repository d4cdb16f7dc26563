//! Counts what a reload preserves: connections, requests in flight, and the state of servers that
//! stay. Only for the receipt; nothing is preserved here.

use std::collections::HashSet;
use std::sync::Arc;

use admin_api::receipt::Carried;
use decide::{Endpoint, Endpoints, LiveService, Published};
use model::{Administrative, Health};

/// The servers of a configuration, for comparison with the next one.
pub(crate) struct Before(Vec<(Arc<LiveService>, Arc<Endpoints>)>);

/// What was preserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Preserved {
    /// Open client connections.
    pub(crate) connections: usize,
    /// Requests in flight at servers that stay.
    pub(crate) in_flight: u64,
    /// Requests that wait for one of these servers.
    pub(crate) waiting: u64,
    /// Servers that stay, counted once for each service that names them.
    pub(crate) servers: usize,
    /// Those of them with a result of health checks.
    pub(crate) verdicts: usize,
    /// Those that passive health has ejected.
    pub(crate) ejected: usize,
    /// Those whose state or weight was set through the admin API.
    pub(crate) set_by_hand: usize,
}

impl Before {
    pub(crate) fn of(published: &Published) -> Before {
        let services = published.services.iter();
        Before(services.map(|service| (Arc::clone(service), service.endpoints())).collect())
    }

    /// Counts what `published` still contains.
    pub(crate) fn kept_in(self, published: &Published, connections: usize) -> Preserved {
        let mut preserved = Preserved { connections, ..Preserved::default() };
        let mut addresses = HashSet::new();
        let stay: HashSet<_> = published.services.iter().map(Arc::as_ptr).collect();
        for (service, before) in self.0 {
            if !stay.contains(&Arc::as_ptr(&service)) {
                continue;
            }
            preserved.waiting += u64::from(service.queue_length());
            let after = service.endpoints();
            for endpoint in &before.all {
                let same = after.by_address(endpoint.row.address);
                if same.is_some_and(|same| Arc::ptr_eq(&same.state, &endpoint.state)) {
                    preserved.add(endpoint, addresses.insert(endpoint.row.address));
                }
            }
        }
        preserved
    }
}

impl Preserved {
    /// With `first`, no service before has named its address; all of them share its count.
    fn add(&mut self, endpoint: &Endpoint, first: bool) {
        let state = &endpoint.state;
        self.servers += 1;
        if first {
            self.in_flight += u64::from(endpoint.slots.in_flight());
        }
        self.verdicts += usize::from(state.health() != Health::Unknown);
        self.ejected += usize::from(state.ejected_until().is_some());
        let set_aside = state.administrative() != Administrative::Ready;
        self.set_by_hand += usize::from(set_aside || state.weight_set().is_some());
    }

    /// Returns the counts for the receipt.
    pub(crate) fn to_receipt(self) -> Carried {
        let Preserved { connections, in_flight, waiting, servers, verdicts, ejected, set_by_hand } =
            self;
        Carried { connections, in_flight, waiting, servers, verdicts, ejected, set_by_hand }
    }
}
