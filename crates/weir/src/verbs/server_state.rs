//! `weir drain`, `weir ready` and `weir maintenance SERVICE SERVER`: change a server's administrative
//! state.

use std::fmt::Write as _;

use admin_api::services::{Server, Service, StateRequest};
use model::Administrative;

use super::check::print;
use crate::api_client::{Client, ClientError, segment};
use crate::flags::{Exit, ServerArgs};

pub(crate) fn run(args: &ServerArgs, state: Administrative) -> Exit {
    let ServerArgs { service: name, server, admin } = args;
    match Client::new(admin).and_then(|client| ask(&client, name, server, state)) {
        Ok(service) => print(&summary(&service, name, server)),
        Err(error) => error.tell(),
    }
}

/// Sets the state of a server; returns its service as it is then.
pub(super) fn ask(
    client: &Client,
    service: &str,
    server: &str,
    state: Administrative,
) -> Result<Service, ClientError> {
    let (service, server) = (segment(service), segment(server));
    let path = format!("/api/v1/services/{service}/servers/{server}/state");
    client.post(&path, &StateRequest { state })
}

/// Returns a line for each address that was changed, and how many servers of the service remain.
pub(super) fn summary(service: &Service, name: &str, asked: &str) -> String {
    let mut out = String::new();
    let meant = |server: &&Server| server.address == asked || server.name == asked;
    for server in service.servers.iter().filter(meant) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{} of {name}: {}, {} in flight",
            server.address,
            server.state.as_str(),
            server.in_flight,
        );
    }
    let (eligible, all) = (service.eligible, service.servers.len());
    let _ = writeln!(out, "{eligible} of {all} servers take new work: {}", service.why);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_come_of_it_is_told_for_every_address() {
        let server = |name: &str, address: &str| json!({ "name": name, "address": address, "state": "drain", "in_flight": 2 });
        let service = json!({
            "eligible": 1,
            "why": "enough of the own zone is ready",
            "servers": [
                server("app.internal:80", "10.0.0.1:80"),
                server("app.internal:80", "10.0.0.2:80"),
                server("10.0.0.3:80", "10.0.0.3:80"),
            ],
        });
        let service = serde_json::from_value(service).unwrap();
        assert_eq!(
            summary(&service, "s", "app.internal:80"),
            "10.0.0.1:80 of s: drain, 2 in flight\n\
             10.0.0.2:80 of s: drain, 2 in flight\n\
             1 of 3 servers take new work: enough of the own zone is ready\n"
        );
    }
}
