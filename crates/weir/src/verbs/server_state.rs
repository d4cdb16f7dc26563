//! `weir drain`, `weir ready` and `weir maintenance`: change a server's administrative state.

use std::fmt::Write as _;

use model::Administrative;
use serde_json::{Value, json};

use super::check::print;
use crate::api_client::{Client, ClientError, segment};
use crate::flags::{Exit, ServerArgs};

pub(crate) fn run(args: &ServerArgs, state: Administrative) -> Exit {
    match ask(args, state) {
        Ok(service) => print(&told(&service, args)),
        Err(error) => error.tell(),
    }
}

fn ask(args: &ServerArgs, state: Administrative) -> Result<Value, ClientError> {
    let (service, server) = (segment(&args.service), segment(&args.server));
    let path = format!("/api/v1/services/{service}/servers/{server}/state");
    Client::new(&args.admin)?.post(&path, &json!({ "state": state.as_str() }))
}

/// What has come of it: a line for each address, and what is left of the service.
fn told(service: &Value, args: &ServerArgs) -> String {
    let mut out = String::new();
    let servers: Vec<&Value> = service["servers"].as_array().into_iter().flatten().collect();
    let meant = |server: &&&Value| {
        [&server["address"], &server["name"]].into_iter().any(|is| *is == args.server.as_str())
    };
    for server in servers.iter().filter(meant) {
        let text = |key: &str| server[key].as_str().unwrap_or_default();
        let in_flight = server["in_flight"].as_u64().unwrap_or(0);
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{} of {}: {}, {in_flight} in flight",
            text("address"),
            args.service,
            text("state"),
        );
    }
    let eligible = service["eligible"].as_u64().unwrap_or(0);
    let why = service["why"].as_str().unwrap_or_default();
    let _ = writeln!(out, "{eligible} of {} servers take new work: {why}", servers.len());
    out
}

#[cfg(test)]
mod tests {
    use clap::Parser;

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
        assert_eq!(
            told(&service, &args),
            "10.0.0.1:80 of s: drain, 2 in flight\n\
             10.0.0.2:80 of s: drain, 2 in flight\n\
             1 of 3 servers take new work: enough of the own zone is ready\n"
        );
    }
}
