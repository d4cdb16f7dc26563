//! States of servers for the whole fleet: `"fleet": true` in a change of a server's state.

use std::net::SocketAddr;
use std::sync::Arc;

use admin_api::fleet::FleetConfirmation;
use axum::http::StatusCode;
use decide::LiveService;
use model::Administrative;
use orders::FleetOrder;

use super::{Context, blocking, find, fleet, not_available};
use crate::NotOrdered;
use crate::problem::Problem;

/// Returns how many members would be asked to change a server.
///
/// # Errors
/// They cannot be asked.
pub(super) fn members(
    api: &Context,
    service: &LiveService,
    server: &str,
) -> Result<usize, Problem> {
    let members = match fleet::of(api) {
        None => return Err(no_fleet()),
        Some(fleet) if fleet.own.is_none() => {
            let why = fleet.error.unwrap_or_else(|| "it has not joined yet".to_owned());
            let message = format!(
                "nothing has changed: this balancer is not a member of its fleet at present: {why}"
            );
            return Err(refused("no_fleet", message));
        }
        Some(fleet) => fleet.members.len() + 1,
    };
    addresses(api, service, server)?;
    Ok(members)
}

/// Sets a server's state at all members. Returns which of them have confirmed it.
///
/// # Errors
/// It cannot be set.
pub(super) async fn set(
    api: &Context,
    service: &LiveService,
    server: &str,
    state: Administrative,
) -> Result<FleetConfirmation, Problem> {
    let order = api.sources.fleet_order.as_ref().ok_or_else(|| not_available("a fleet"))?;
    let order = Arc::clone(order);
    let addresses = addresses(api, service, server)?;
    let wanted = FleetOrder { service: Arc::clone(service.name()), addresses, state };
    blocking(move || order(wanted)).await?.map_err(|error| match error {
        NotOrdered::NotMember => no_fleet(),
        NotOrdered::Replaced => {
            let message = "another command set another state of this server at the same time, and that \
                           state is in force; see `weir status`";
            refused("fleet_order_replaced", message.to_owned())
        }
        NotOrdered::Refused(why) => {
            refused("fleet_order_refused", format!("nothing has changed: {why}"))
        }
        NotOrdered::Upgrading => Problem::upgrading(),
        NotOrdered::Unavailable(why) => {
            let message = format!("it is not known whether the state was set: {why}");
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "fleet_unavailable", message)
        }
    })
}

/// Returns the addresses of the service's servers of that name or address.
fn addresses(
    api: &Context,
    service: &LiveService,
    server: &str,
) -> Result<Vec<SocketAddr>, Problem> {
    let endpoints = service.endpoints();
    let found = match find::servers(service, &endpoints, server) {
        Ok(found) => found,
        // Its state can be ended when the server has gone.
        Err(unknown) => {
            let address = server.parse().ok();
            let is_set = address.filter(|address| is_set(api, service, address));
            return is_set.map(|address| vec![address]).ok_or(unknown);
        }
    };
    let addresses = found.into_iter().map(|endpoint| {
        let address = endpoint.row.address;
        let shared = address.ip().filter(|_| !address.is_of_one_machine());
        shared.ok_or_else(|| {
            let message = format!(
                "nothing has changed: {address} means another server on each machine, so that its \
                 state cannot be set for the whole fleet"
            );
            refused("server_of_one_machine", message)
        })
    });
    addresses.collect()
}

/// Returns whether a state of this address is set for the whole fleet.
fn is_set(api: &Context, service: &LiveService, address: &SocketAddr) -> bool {
    let servers = fleet::of(api).map(|fleet| fleet.orders.servers).unwrap_or_default();
    let address = address.to_string();
    servers.iter().any(|set| *set.service == **service.name() && set.address == address)
}

fn no_fleet() -> Problem {
    let message = "nothing has changed: this balancer is not a member of a fleet: its configuration has no \
                   [fleet], or it has not joined yet";
    refused("no_fleet", message.to_owned())
}

fn refused(name: &'static str, message: String) -> Problem {
    Problem::new(StatusCode::CONFLICT, name, message)
}
