//! Which servers the last part of a path means.

use std::sync::Arc;

use decide::{Endpoint, Endpoints, LiveService};
use model::Address;

use crate::problem::Problem;

/// Returns the service's servers of that name or address: a name may stand for several addresses.
pub(super) fn servers<'a>(
    service: &LiveService,
    endpoints: &'a Endpoints,
    server: &str,
) -> Result<Vec<&'a Arc<Endpoint>>, Problem> {
    let by_address = Address::find(server).and_then(|address| endpoints.by_address(address));
    let found: Vec<&Arc<Endpoint>> = match by_address {
        Some(endpoint) => vec![endpoint],
        None => endpoints.all.iter().filter(|endpoint| *endpoint.row.name == *server).collect(),
    };
    if found.is_empty() {
        let known = endpoints.all.iter().map(|endpoint| endpoint.row.address.to_string());
        let message = format!(
            "service {:?} has no server at {server:?}; its servers: {}",
            service.name(),
            known.collect::<Vec<_>>().join(", ")
        );
        return Err(Problem::not_found("server_not_found", message));
    }
    Ok(found)
}
