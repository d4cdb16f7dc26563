//! `weir reload`: asks a running balancer to load its configuration anew, and prints the receipt.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::check::{print, print_json};
use crate::api_client::{Client, ClientError};
use crate::flags::{Exit, ReceiptArgs};

/// Longer than names of new servers, and a last push of metrics, may keep a reload waiting.
const ANSWER_MAX: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &ReceiptArgs) -> Exit {
    match ask(args) {
        Ok(receipt) => {
            if let Some(warnings) = receipt["warnings"].as_str() {
                eprintln!("{}", warnings.trim_end());
            }
            if args.json { print_json(&receipt) } else { print(&told(&receipt)) }
        }
        Err(ClientError::Refused { status: 422, message }) => {
            eprintln!("{message}\nweir: refused; the old configuration keeps serving");
            Exit::Mistake
        }
        Err(error) => error.tell(),
    }
}

fn ask(args: &ReceiptArgs) -> Result<Value, ClientError> {
    Client::new(&args.admin)?.patient(ANSWER_MAX).post("/api/v1/reload", &json!({}))
}

/// The receipt, for people.
fn told(receipt: &Value) -> String {
    let mut out = String::new();
    let generation = receipt["generation"].as_u64().unwrap_or(0);
    let took = receipt["took_ms"].as_f64().unwrap_or(0.0);
    // Writing to a String cannot fail.
    if receipt["result"] == "unchanged" {
        let _ =
            writeln!(out, "unchanged: the file says what is in force (generation {generation})");
        return out;
    }
    let _ = writeln!(out, "reloaded: generation {generation}, in {took:.1} ms");
    let changes = &receipt["changes"];
    for what in texts(&changes["settings"]) {
        let _ = writeln!(out, "  {what}");
    }
    for (kind, key) in [
        ("listener", "listeners"),
        ("route", "routes"),
        ("service", "services"),
        ("server", "servers"),
    ] {
        let changes = &changes[key];
        for (sign, key) in [('+', "added"), ('-', "removed")] {
            for name in texts(&changes[key]) {
                let _ = writeln!(out, "  {sign} {kind} {name}");
            }
        }
        for changed in list(&changes["changed"]) {
            let name = changed["name"].as_str().unwrap_or_default();
            let what: Vec<_> = texts(&changed["what"]).collect();
            let _ = writeln!(out, "  ~ {kind} {name}: {}", what.join(", "));
        }
    }
    let carried = &receipt["carried"];
    let number = |key: &str| carried[key].as_u64().unwrap_or(0);
    let _ = writeln!(
        out,
        "  kept: {} connections, {} requests in flight, {} waiting; {} servers, {} of them with a \
         verdict, {} ejected, {} set by hand",
        number("connections"),
        number("in_flight"),
        number("waiting"),
        number("servers"),
        number("verdicts"),
        number("ejected"),
        number("set_by_hand"),
    );
    let waiting: Vec<_> = texts(&receipt["waiting_for_upgrade"]).collect();
    if !waiting.is_empty() {
        let _ = writeln!(out, "  not before `weir upgrade` or a restart: {}", waiting.join("; "));
    }
    out
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    list(value).filter_map(Value::as_str)
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
            told(&receipt),
            "reloaded: generation 7, in 3.1 ms\n  \
             drain_max: 30s → 1m\n  \
             + listener web\n  \
             - listener old\n  \
             ~ service app: in_flight_max: 4 → 8, when_full: 429 → 503\n  \
             kept: 200 connections, 12 requests in flight, 1 waiting; 5 servers, 4 of them with a \
             verdict, 0 ejected, 1 set by hand\n  \
             not before `weir upgrade` or a restart: workers: 2 → 4\n"
        );
        let same = json!({ "result": "unchanged", "generation": 7 });
        assert!(told(&same).starts_with("unchanged: "));
    }
}
