//! `weir upgrade`: asks a running balancer to let a new process take over, and prints who serves
//! now.

use std::time::Duration;

use admin_api::receipt::Upgrade;
use serde_json::json;

use super::check::{print, print_json};
use crate::api_client::{Client, ClientError};
use crate::flags::{Exit, ReceiptArgs};

/// Longer than a new process may take until it serves.
const ANSWER_MAX: Duration = Duration::from_secs(45);

pub(crate) fn run(args: &ReceiptArgs) -> Exit {
    match ask(args) {
        Ok(receipt) if args.json => print_json(&json!(receipt)),
        Ok(receipt) => print(&summary(&receipt)),
        Err(error) => error.tell(),
    }
}

fn ask(args: &ReceiptArgs) -> Result<Upgrade, ClientError> {
    Client::new(&args.admin)?.patient(ANSWER_MAX).post("/api/v1/upgrade", &json!({}))
}

fn summary(receipt: &Upgrade) -> String {
    let Upgrade { pid, version, took_ms, predecessor, handed_over, .. } = receipt;
    format!(
        "process {pid} (version {version}) serves, {took_ms} ms after it was started\n  \
         taken over: {} sockets of {} listeners ({}), what is known of {} servers\n  \
         process {} (version {}) finishes its requests in flight and exits\n",
        handed_over.sockets,
        handed_over.listeners.len(),
        handed_over.listeners.join(", "),
        handed_over.servers,
        predecessor.pid,
        predecessor.version,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_serves_now_is_told() {
        let receipt = json!({
            "result": "upgraded", "pid": 8, "version": "0.2.0", "took_ms": 17,
            "predecessor": { "pid": 7, "version": "0.1.0" },
            "handed_over": { "listeners": ["public", "raw"], "sockets": 4, "servers": 6 },
        });
        assert_eq!(
            summary(&serde_json::from_value(receipt).unwrap()),
            "process 8 (version 0.2.0) serves, 17 ms after it was started\n  \
             taken over: 4 sockets of 2 listeners (public, raw), what is known of 6 servers\n  \
             process 7 (version 0.1.0) finishes its requests in flight and exits\n"
        );
    }
}
