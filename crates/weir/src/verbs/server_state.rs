//! `weir drain`, `weir ready` and `weir maintenance SERVICE SERVER`: change a server's administrative
//! state.

use std::fmt::Write as _;

use admin_api::fleet::{FleetConfirmation, UnconfirmedMember};
use admin_api::services::{Server, Service, StateChanged, StateRequest};
use diagnose::words::plural;
use model::Administrative;

use super::check::{print, print_on};
use crate::api_client::{Client, ClientError, segment};
use crate::flags::{Exit, ServerArgs};

/// Servers that a dry run lists, and members that are named.
const LISTED_MAX: usize = 10;

pub(crate) fn run(args: &ServerArgs, state: Administrative) -> Exit {
    let ServerArgs { service: name, server, dry_run, fleet, admin } = args;
    let wanted = StateRequest { state, dry_run: *dry_run, fleet: *fleet };
    let changed = match Client::new(admin).and_then(|client| ask(&client, name, server, wanted)) {
        Ok(changed) => changed,
        Err(error) => return error.tell(),
    };
    let mut text = if *dry_run {
        foreseen(&changed.service, name, server)
    } else {
        summary(&changed.service, name, server)
    };
    if *fleet {
        // A balancer of an earlier version refuses the request.
        let confirmation = changed.fleet.unwrap_or_default();
        text.push_str(&confirmed(&confirmation, *dry_run));
        if !*dry_run && !confirmation.unconfirmed.is_empty() {
            return match print_on(&text) {
                Err(Exit::Failed) => Exit::Failed,
                Ok(()) | Err(_) => Exit::Unconfirmed,
            };
        }
    }
    print(&text)
}

/// Returns the line that says which members have confirmed a state.
fn confirmed(confirmation: &FleetConfirmation, is_dry_run: bool) -> String {
    let FleetConfirmation { members, confirmed, unconfirmed } = confirmation;
    if is_dry_run {
        return format!("fleet: {} would be asked\n", plural(*members as u64, "member"));
    }
    let mut out = format!("fleet: {confirmed} of {members} members have confirmed");
    if !unconfirmed.is_empty() {
        let named = unconfirmed.iter().take(LISTED_MAX);
        let mut named: Vec<String> = named.map(member).collect();
        match unconfirmed.len() - named.len() {
            0 => {}
            more => named.push(format!("{more} more")),
        }
        // Writing to a String cannot fail.
        let _ = write!(out, " within 3 s; not confirmed by {}", named.join(", "));
    }
    out.push('\n');
    out
}

/// Returns a member's name and address; a listed one that does not answer has no name.
fn member(member: &UnconfirmedMember) -> String {
    let UnconfirmedMember { name, address } = member;
    if name.is_empty() { address.clone() } else { format!("{name} ({address})") }
}

/// Sets the state of a server, or only asks what that would do; returns its service as it is then, and
/// which members of the fleet have confirmed it.
pub(super) fn ask(
    client: &Client,
    service: &str,
    server: &str,
    wanted: StateRequest,
) -> Result<StateChanged, ClientError> {
    let (service, server) = (segment(service), segment(server));
    let path = format!("/api/v1/services/{service}/servers/{server}/state");
    client.post(&path, &wanted)
}

/// Returns the lines of a dry run: the servers that would receive new requests, too.
fn foreseen(service: &Service, name: &str, asked: &str) -> String {
    let eligible: Vec<&str> = service
        .servers
        .iter()
        .filter(|server| server.eligible)
        .map(|server| &*server.address)
        .take(LISTED_MAX)
        .collect();
    let rest = service.eligible.saturating_sub(eligible.len());
    let servers = match (eligible.is_empty(), rest) {
        (true, _) => "none".to_owned(),
        (false, 0) => eligible.join(", "),
        (false, rest) => format!("{} and {rest} more", eligible.join(", ")),
    };
    let summary = summary(service, name, asked);
    format!(
        "Dry run: nothing was changed. This would be:\n{summary}Servers with new requests: {servers}\n"
    )
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
    fn a_dry_run_lists_the_servers_that_take_over() {
        let server = |port: usize, is_eligible: bool| {
            let state = if is_eligible { "ready" } else { "drain" };
            json!({ "address": format!("10.0.0.1:{port}"), "eligible": is_eligible, "state": state })
        };
        let mut servers: Vec<_> = (0..=LISTED_MAX + 1).map(|port| server(port, port > 0)).collect();
        let text = |servers: &[serde_json::Value], eligible: usize| {
            let service = json!({ "eligible": eligible, "why": "enough of the own zone is ready", "servers": servers });
            foreseen(&serde_json::from_value(service).unwrap(), "s", "10.0.0.1:0")
        };
        let said = text(&servers, LISTED_MAX + 1);
        assert!(
            said.starts_with(
                "Dry run: nothing was changed. This would be:\n10.0.0.1:0 of s: drain"
            ),
            "{said}"
        );
        assert!(said.ends_with("10.0.0.1:10 and 1 more\n"), "{said}");
        servers.truncate(1);
        assert!(text(&servers, 0).ends_with("Servers with new requests: none\n"));
    }

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

    #[test]
    fn members_that_have_not_confirmed_are_named() {
        let said = |confirmed: usize, missing: &[&str], is_dry_run| {
            let missing: Vec<_> = missing
                .iter()
                .map(|name| json!({ "name": name, "address": "10.0.0.7:7946" }))
                .collect();
            let value = json!({ "members": 3, "confirmed": confirmed, "unconfirmed": missing });
            super::confirmed(&serde_json::from_value(value).unwrap(), is_dry_run)
        };
        assert_eq!(said(3, &[], false), "fleet: 3 of 3 members have confirmed\n");
        assert_eq!(
            said(2, &["lb-3"], false),
            "fleet: 2 of 3 members have confirmed within 3 s; not confirmed by lb-3 (10.0.0.7:7946)\n"
        );
        assert_eq!(
            said(1, &["", "lb-3"], false),
            "fleet: 1 of 3 members have confirmed within 3 s; not confirmed by 10.0.0.7:7946, lb-3 (10.0.0.7:7946)\n"
        );
        let many = ["a"; LISTED_MAX + 2];
        assert!(said(0, &many, false).contains("a (10.0.0.7:7946), 2 more\n"));
        assert_eq!(said(0, &[], true), "fleet: 3 members would be asked\n");
    }
}
