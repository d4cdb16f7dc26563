//! `weir drain`, `weir ready` and `weir maintenance SERVICE SERVER`: change a server's administrative
//! state.

use std::fmt::Write as _;

use admin_api::services::{Server, Service, StateRequest};
use model::Administrative;

use super::check::print;
use crate::api_client::{Client, ClientError, segment};
use crate::flags::{Exit, ServerArgs};

pub(crate) fn run(args: &ServerArgs, state: Administrative) -> Exit {
    match ask(args, state) {
        Ok(service) => print(&summary(&service, args)),
        Err(error) => error.tell(),
    }
}

fn ask(args: &ServerArgs, state: Administrative) -> Result<Service, ClientError> {
    let (service, server) = (segment(&args.service), segment(&args.server));
    let path = format!("/api/v1/services/{service}/servers/{server}/state");
    Client::new(&args.admin)?.post(&path, &StateRequest { state })
}

/// Returns a line for each address that was changed, and how many servers of the service remain.
fn summary(service: &Service, args: &ServerArgs) -> String {
    let mut out = String::new();
    let meant = |server: &&Server| [&server.address, &server.name].contains(&&args.server);
    for server in service.servers.iter().filter(meant) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{} of {}: {}, {} in flight",
            server.address,
            args.service,
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
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::flags::{Cli, Verb};

    #[test]
    fn what_has_come_of_it_is_told_for_every_address() {
        let cli = Cli::try_parse_from(["weir", "drain", "s", "app.internal:80"]).unwrap();
        let Verb::Drain(args) = cli.verb else { panic!("not drain") };
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
            summary(&service, &args),
            "10.0.0.1:80 of s: drain, 2 in flight\n\
             10.0.0.2:80 of s: drain, 2 in flight\n\
             1 of 3 servers take new work: enough of the own zone is ready\n"
        );
    }
}
