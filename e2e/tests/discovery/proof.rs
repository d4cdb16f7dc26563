//! What the tests with a real Consul have in common: a table of what happened, and registrations.

use std::time::{Duration, Instant};

use e2e::Weir;
use serde_json::{Value, json};

use crate::stage::{Server, Steady, wait_for_standings};

pub(crate) const NODE: &str = "a node beside the agent's";

/// What happened, row by row, with the steady client's counts since the row before.
pub(crate) struct Table {
    pub(crate) steady: Steady,
    rows: Vec<String>,
    counted: (usize, usize),
}

impl Table {
    pub(crate) fn of(steady: Steady) -> Table {
        Table { steady, rows: Vec::new(), counted: (0, 0) }
    }

    pub(crate) fn row(&mut self, fault: &str, shown: &str, seen: Duration) {
        let (requests, lost) = self.steady.so_far();
        let (before, lost_before) = std::mem::replace(&mut self.counted, (requests, lost.len()));
        let (requests, lost) = (requests - before, lost.len() - lost_before);
        let ms = seen.as_millis();
        let row = format!("| {fault} | {shown} | {requests} | {lost} | {ms} ms |");
        println!("{row}");
        self.rows.push(row);
    }

    /// Prints the table; no request may be lost.
    pub(crate) fn finish(self) {
        println!(
            "| fault | Weir shows | requests | lost | change seen after |\n|---|---|---|---|---|"
        );
        println!("{}", self.rows.join("\n"));
        let count = self.steady.finish();
        println!("{count} requests, none lost");
    }
}

/// An instance for the server, without a check.
pub(crate) fn instance(server: &Server) -> Value {
    let address = server.address();
    json!({ "ID": id(server), "Name": "web", "Address": address.ip(), "Port": address.port() })
}

pub(crate) fn id(server: &Server) -> String {
    format!("web-{}", server.address())
}

/// The same as an entry of the catalog, at a node without an agent.
pub(crate) fn entry(server: &Server, weight: u32) -> Value {
    let address = server.address();
    json!({ "Node": NODE, "Address": "127.0.0.2", "Service": {
        "ID": id(server), "Service": "web", "Address": address.ip(), "Port": address.port(),
        "Weights": { "Passing": weight, "Warning": 1 },
    } })
}

/// How long it takes from now on until the servers have these standings.
pub(crate) fn seen(weir: &Weir, wanted: &[(&[u8], &str)]) -> Duration {
    let from = Instant::now();
    wait_for_standings(weir, wanted);
    from.elapsed()
}
