//! Asks a balancer for everything that a bundle contains.

use std::collections::BTreeSet;
use std::time::Duration;

use admin_api::history::History;
use serde_json::Value;

use super::secrets;
use crate::api_client::{Client, ClientError, segment};
use crate::incident::{Bundle, FORMAT, VERSION};

/// Answers that are saved besides the status, by their path below `/api/v1/`.
const ANSWERS: [&str; 11] = [
    "services",
    "traffic",
    "findings",
    "changes?limit=1000",
    "reloads",
    "causes",
    "checks",
    "fleet",
    "configuration",
    "requests?limit=1000",
    "requests/ended?limit=10000",
];

/// The longest span that a balancer has rows of.
const LAST_MAX: Duration = Duration::from_hours(24);

/// A bundle with more numbers than this is written without the rest, which `failed` says: about 150 MB of text.
const NUMBERS_MAX: usize = 30_000_000;

/// Returns the bundle of a balancer's last `last`. Fails only if the balancer does not answer at all; what else is
/// missing is named in the bundle.
pub(in crate::verbs) fn gather(client: &Client, last: Duration) -> Result<Bundle, ClientError> {
    // The first answer shows whether there is a balancer.
    let status: Value = client.get("/api/v1/status")?;
    let last = last.min(LAST_MAX);
    let mut bundle = Bundle {
        format: FORMAT.to_owned(),
        version: VERSION,
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        host: host(),
        ..Bundle::default()
    };
    Rows { client, bundle: &mut bundle, span_s: last.as_secs().max(1), numbers: 0 }.gather();
    if bundle.at_unix_ms == 0 {
        bundle.at_unix_ms = os::clock::wall().as_millis() as u64;
    }
    bundle.answers.insert("status".to_owned(), status);
    for asked in ANSWERS {
        let path = asked.split('?').next().unwrap_or_default();
        match client.get::<Value>(&format!("/api/v1/{asked}")) {
            Ok(answer) => _ = bundle.answers.insert(path.to_owned(), answer),
            Err(error) => _ = bundle.failed.insert(path.to_owned(), error.to_string()),
        }
    }
    // What changed while the rows were fetched belongs to it.
    bundle.at_unix_ms = bundle.at_unix_ms.max(latest(&bundle));
    bundle.from_unix_ms = bundle.at_unix_ms.saturating_sub(last.as_millis() as u64);
    secrets::remove(&mut bundle.answers);
    Ok(bundle)
}

/// Returns the time of the traffic, which was asked for after the rows.
fn latest(bundle: &Bundle) -> u64 {
    let at = || bundle.answers.get("traffic")?.get("at_unix_ms")?.as_u64();
    at().unwrap_or_default()
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Fetches the rows of the history in several answers, because one has at most 300,000 numbers.
struct Rows<'a> {
    client: &'a Client,
    bundle: &'a mut Bundle,
    span_s: u64,
    numbers: usize,
}

impl Rows<'_> {
    fn gather(&mut self) {
        let Some(process) = self.fetch("kind=process", None) else { return };
        let Some(&until) = process.ended_unix_ms.last() else { return };
        self.bundle.at_unix_ms = until;
        self.take(process);
        for kind in ["listener", "service", "server"] {
            let Some(answer) = self.fetch(&format!("kind={kind}"), Some(until)) else { return };
            if answer.left_out == 0 {
                self.take(answer);
            } else if kind == "listener" {
                self.leave_out(answer.left_out, "an answer has at most 300,000 numbers");
                self.take(answer);
            } else {
                self.by_service(kind, until);
            }
        }
    }

    /// The series of each service by itself, and of each server if a service has too many.
    fn by_service(&mut self, kind: &str, until: u64) {
        for (service, servers) in self.names() {
            let of_service = format!("kind={kind}&service={}", segment(&service));
            let Some(answer) = self.fetch(&of_service, Some(until)) else { return };
            if answer.left_out == 0 {
                self.take(answer);
                continue;
            }
            for server in servers {
                let of_server = format!("{of_service}&server={}", segment(&server));
                let Some(answer) = self.fetch(&of_server, Some(until)) else { return };
                self.take(answer);
            }
        }
    }

    /// Services with the addresses of their servers.
    fn names(&mut self) -> Vec<(String, BTreeSet<String>)> {
        let services = self.client.get::<admin_api::services::Services>("/api/v1/services");
        let services = match services {
            Ok(answer) => answer.services,
            Err(error) => {
                self.leave_out(0, &error.to_string());
                Vec::new()
            }
        };
        services
            .into_iter()
            .map(|one| (one.name, one.servers.into_iter().map(|server| server.address).collect()))
            .collect()
    }

    fn fetch(&mut self, query: &str, until: Option<u64>) -> Option<History> {
        if self.numbers > NUMBERS_MAX {
            self.leave_out(1, "the bundle would be too large; ask for a shorter span with --last");
            return None;
        }
        let until = until.map(|until| format!("&until_unix_ms={until}")).unwrap_or_default();
        let path = format!("/api/v1/history?{query}&span_s={}&limit=1000{until}", self.span_s);
        match self.client.get::<History>(&path) {
            Ok(answer) if answer.enabled => Some(answer),
            Ok(_) => {
                self.leave_out(0, "history_memory_max is 0 in the configuration");
                None
            }
            Err(error) => {
                self.leave_out(0, &error.to_string());
                None
            }
        }
    }

    fn take(&mut self, answer: History) {
        let columns =
            |answer: &History| answer.series.iter().map(|one| one.columns.len()).sum::<usize>();
        self.numbers += columns(&answer) * answer.ended_unix_ms.len();
        if !answer.series.is_empty() {
            self.bundle.history.push(answer);
        }
    }

    fn leave_out(&mut self, series: usize, why: &str) {
        let why = if series > 1 { format!("{series} series: {why}") } else { why.to_owned() };
        self.bundle.failed.entry("history".to_owned()).or_insert(why);
    }
}
