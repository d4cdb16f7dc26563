//! `weir maintenance`: puts a service, a route or a server into maintenance, or ends it.

use admin_api::maintenance::{Maintenance, MaintenanceRequest};
use model::{Administrative, Maintained};

use super::check::print;
use super::server_state;
use crate::api_client::{Client, ClientError, segment};
use crate::flags::{Exit, MaintenanceArgs, ServerArgs};
use crate::render::status;

pub(crate) fn run(args: MaintenanceArgs) -> Exit {
    let MaintenanceArgs { service, server, route, off, retry_after, dry_run, fleet, admin } = args;
    let (kind, name) = match (service, server, route) {
        (Some(service), Some(server), _) => {
            let args = ServerArgs { service, server, dry_run, fleet, admin };
            return server_state::run(&args, Administrative::Maintenance);
        }
        (Some(service), None, _) => (Maintained::Service, service),
        // The parser requires one of them.
        (None, _, route) => (Maintained::Route, route.unwrap_or_default()),
    };
    let retry_after_ms = retry_after.map(|time| time.as_millis() as u64);
    let wanted = MaintenanceRequest { on: !off, retry_after_ms };
    match Client::new(&admin).and_then(|client| ask(&client, kind, &name, wanted)) {
        Ok(maintenance) => print(&summary(&maintenance)),
        Err(error) => error.tell(),
    }
}

/// Switches the maintenance of a service or route; returns what is in force then.
pub(super) fn ask(
    client: &Client,
    kind: Maintained,
    name: &str,
    wanted: MaintenanceRequest,
) -> Result<Maintenance, ClientError> {
    let path = format!("/api/v1/{}s/{}/maintenance", kind.as_str(), segment(name));
    client.post(&path, &wanted)
}

/// Returns what is in force now.
pub(super) fn summary(maintenance: &Maintenance) -> String {
    match maintenance {
        Maintenance { on: false, kind, name, .. } => {
            format!("{} {name}: not in maintenance\n", kind.as_str())
        }
        _ => format!("{}\n", status::maintenance(maintenance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_force_is_told_and_who_said_so() {
        let row = |on, in_file, by_operator, retry_after_ms| Maintenance {
            kind: Maintained::Service.into(),
            name: "shop".to_owned(),
            on,
            in_file,
            by_operator,
            retry_after_ms,
        };
        for (row, text) in [
            (row(false, false, false, None), "service shop: not in maintenance\n"),
            (
                row(true, false, true, Some(600_000)),
                "service shop: in maintenance (an operator), Retry-After 10m\n",
            ),
            (
                row(true, true, false, None),
                "service shop: in maintenance (the configuration file)\n",
            ),
            (
                row(true, true, true, None),
                "service shop: in maintenance (the configuration file and an operator)\n",
            ),
        ] {
            assert_eq!(summary(&row), text);
        }
    }
}
