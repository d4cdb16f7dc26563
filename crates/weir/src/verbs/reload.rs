//! `weir reload`: asks a running balancer to reload its configuration, and prints the receipt.

use std::fmt::Write as _;
use std::time::Duration;

use admin_api::receipt::{Carried, KindChanges, Reload, ReloadResult};
use serde_json::json;

use super::check::{print, print_json};
use crate::api_client::{Client, ClientError};
use crate::flags::{Exit, ReceiptArgs};

/// Longer than names of new servers, and a last push of metrics, may keep a reload waiting.
const ANSWER_MAX: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &ReceiptArgs) -> Exit {
    match ask(args) {
        Ok(receipt) => {
            if let Some(warnings) = &receipt.warnings {
                eprintln!("{}", warnings.trim_end());
            }
            if args.json { print_json(&json!(receipt)) } else { print(&summary(&receipt)) }
        }
        Err(ClientError::Refused { status: 422, message }) => {
            eprintln!("{message}\nweir: refused; the old configuration keeps serving");
            Exit::Mistake
        }
        Err(error) => error.tell(),
    }
}

fn ask(args: &ReceiptArgs) -> Result<Reload, ClientError> {
    Client::new(&args.admin)?.patient(ANSWER_MAX).post("/api/v1/reload", &json!({}))
}

/// The receipt, for people.
fn summary(receipt: &Reload) -> String {
    let mut out = String::new();
    let Reload { generation, took_ms, .. } = receipt;
    // Writing to a String cannot fail.
    if receipt.result.known() == Some(ReloadResult::Unchanged) {
        let _ =
            writeln!(out, "unchanged: the file says what is in force (generation {generation})");
        return out;
    }
    let _ = writeln!(out, "reloaded: generation {generation}, in {took_ms:.1} ms");
    let changes = receipt.changes.clone().unwrap_or_default();
    for what in &changes.settings {
        let _ = writeln!(out, "  {what}");
    }
    for (kind, changes) in [
        ("listener", &changes.listeners),
        ("route", &changes.routes),
        ("service", &changes.services),
        ("server", &changes.servers),
    ] {
        let KindChanges { added, removed, changed, unchanged: _ } = changes;
        for (sign, names) in [('+', added), ('-', removed)] {
            for name in names {
                let _ = writeln!(out, "  {sign} {kind} {name}");
            }
        }
        for changed in changed {
            let _ = writeln!(out, "  ~ {kind} {}: {}", changed.name, changed.what.join(", "));
        }
    }
    let Carried { connections, in_flight, waiting, servers, verdicts, ejected, set_by_hand } =
        receipt.carried.unwrap_or_default();
    let _ = writeln!(
        out,
        "  kept: {connections} connections, {in_flight} requests in flight, {waiting} waiting; \
         {servers} servers, {verdicts} of them with a verdict, {ejected} ejected, {set_by_hand} set \
         by an operator"
    );
    if let Some(waiting) = receipt.waiting_for_upgrade.as_ref().filter(|all| !all.is_empty()) {
        let _ = writeln!(
            out,
            "  takes effect with `weir upgrade` or a restart: {}",
            waiting.join("; ")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_told_line_by_line() {
        let nothing = json!({ "added": [], "removed": [], "changed": [], "unchanged": 3 });
        let receipt = json!({
            "result": "applied", "generation": 7, "took_ms": 3.12,
            "changes": {
                "settings": ["drain_max: 30s → 1m"],
                "listeners": { "added": ["web"], "removed": ["old"], "changed": [], "unchanged": 1 },
                "routes": nothing,
                "services": {
                    "added": [], "removed": [], "unchanged": 0,
                    "changed": [{ "name": "app", "what": ["in_flight_max: 4 → 8", "when_full: 429 → 503"] }],
                },
                "servers": nothing,
            },
            "carried": {
                "connections": 200, "in_flight": 12, "waiting": 1, "servers": 5, "verdicts": 4,
                "ejected": 0, "set_by_hand": 1,
            },
            "waiting_for_upgrade": ["workers: 2 → 4"],
        });
        assert_eq!(
            summary(&serde_json::from_value(receipt).unwrap()),
            "reloaded: generation 7, in 3.1 ms\n  \
             drain_max: 30s → 1m\n  \
             + listener web\n  \
             - listener old\n  \
             ~ service app: in_flight_max: 4 → 8, when_full: 429 → 503\n  \
             kept: 200 connections, 12 requests in flight, 1 waiting; 5 servers, 4 of them with a \
             verdict, 0 ejected, 1 set by an operator\n  \
             takes effect with `weir upgrade` or a restart: workers: 2 → 4\n"
        );
        let same = json!({ "result": "unchanged", "generation": 7 });
        assert!(summary(&serde_json::from_value(same).unwrap()).starts_with("unchanged: "));
    }
}
