//! The registration of a listener of Weir: what is sent to the agent, and what its answers mean.
//!
//! The entry has a TTL check: Weir reports its state every [`HEARTBEAT`], and Consul sets the check to critical when
//! it receives no report for [`TTL_S`]. An agent that has lost its data does not know the check; then Weir registers
//! again. Formats are those of Consul's HTTP API (`/v1/agent/service`, `/v1/agent/check`).

use std::sync::Arc;
use std::time::Duration;

use model::Registration;
use serde_json::{Value, json};

/// How often Weir reports its state (the heartbeat).
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// Seconds without a report after which Consul sets the check to critical: two reports may be lost.
const TTL_S: u64 = 30;

/// How long the check is critical before Consul removes the entry: Weir was killed, or is gone with its machine.
/// Consul allows no less than a minute.
const DEREGISTER_AFTER: &str = "1h";

model::words! {
    /// What the check says.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CheckStatus {
        /// Weir is ready.
        Passing = "passing",
        /// Weir is stopping: clients should go elsewhere.
        Critical = "critical",
    }
}

impl CheckStatus {
    /// Returns what people read beside the status.
    fn output(self) -> &'static str {
        match self {
            CheckStatus::Passing => "Weir is ready",
            CheckStatus::Critical => "Weir is stopping and takes no new clients",
        }
    }
}

/// A request to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// `PUT` or `GET`.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// JSON; empty: no body.
    pub body: String,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The agent did it.
    Done,
    /// The agent does not know the entry.
    Unknown,
    /// It did not: status, what it says, and what may help. One line, bounded and escaped.
    Refused(String),
}

/// Who has registered an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process.
    Own,
    /// Another process: address and port of its entry, bounded and escaped.
    Other(String),
}

/// The metadata of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Weir's version.
    pub version: &'static str,
    /// Different in each process, so that a process recognizes its entries.
    pub instance: Arc<str>,
}

impl Metadata {
    fn json(&self) -> Value {
        json!({ "version": self.version, "instance": &*self.instance })
    }
}

/// Returns the request that registers, or replaces, an entry.
pub fn register(entry: &Registration, status: CheckStatus, metadata: &Metadata) -> Ask {
    let mut body = json!({
        "ID": entry.id,
        "Name": entry.service,
        "Tags": entry.tags,
        "Port": entry.port,
        "Meta": metadata.json(),
        "Check": {
            "Name": "Weir is ready",
            "TTL": format!("{TTL_S}s"),
            "Status": status.as_str(),
            "DeregisterCriticalServiceAfter": DEREGISTER_AFTER,
        },
    });
    if let (Some(address), Some(members)) = (&entry.address, body.as_object_mut()) {
        members.insert("Address".to_owned(), json!(address));
    }
    let target = "/v1/agent/service/register?replace-existing-checks=true".to_owned();
    Ask { method: "PUT", target, body: body.to_string() }
}

/// Returns the request that reports the state.
pub fn report(entry: &Registration, status: CheckStatus) -> Ask {
    let body = json!({ "Status": status.as_str(), "Output": status.output() });
    let target = format!("/v1/agent/check/update/service:{}", entry.id);
    Ask { method: "PUT", target, body: body.to_string() }
}

/// Returns the request that removes the entry.
pub fn deregister(entry: &Registration) -> Ask {
    let target = format!("/v1/agent/service/deregister/{}", entry.id);
    Ask { method: "PUT", target, body: String::new() }
}

/// Returns the request that reads the entry; [`owner`] interprets the answer.
pub fn read(entry: &Registration) -> Ask {
    let target = format!("/v1/agent/service/{}", entry.id);
    Ask { method: "GET", target, body: String::new() }
}

/// Returns who has registered the entry that the agent describes in `said`, the body of an answer with status 200.
///
/// # Errors
/// `said` does not describe an entry.
pub fn owner(said: &[u8], metadata: &Metadata) -> Result<Owner, String> {
    const ADDRESS_MAX_CHARS: usize = 80;
    let found: Value = serde_json::from_slice(said)
        .map_err(|error| format!("Consul's answer cannot be parsed: {error}"))?;
    let Some(port) = found["Port"].as_u64() else {
        return Err("Consul's answer has no `Port`".to_owned());
    };
    let address = found["Address"].as_str().unwrap_or_default();
    // It names the process. Other values may be those of an earlier configuration.
    if found["Meta"] == metadata.json() {
        return Ok(Owner::Own);
    }
    let shown: String = address.escape_debug().take(ADDRESS_MAX_CHARS).collect();
    Ok(Owner::Other(match address {
        "" => format!("the node's address, port {port}"),
        ip if ip.contains(':') => format!("[{shown}]:{port}"),
        _ => format!("{shown}:{port}"),
    }))
}

/// Interprets an answer about the entry of `service`. `said` is its body.
pub fn heard(status: u16, said: &[u8], service: &str) -> Heard {
    // The longest text that is read and shown.
    const SAID_MAX_CHARS: usize = 200;
    let said = String::from_utf8_lossy(said);
    let said: String = said.trim().chars().take(SAID_MAX_CHARS).collect();
    let has = |words: &str| said.to_ascii_lowercase().contains(words);
    match status {
        200 => Heard::Done,
        404 => Heard::Unknown,
        // As versions before 1.11 say it.
        500 if has("unknown check") || has("unknown service") || has("associated ttl") => {
            Heard::Unknown
        }
        _ => {
            let said: String = said.escape_debug().take(SAID_MAX_CHARS).collect();
            let help = match status {
                403 => format!("; the token needs service:write for {service}"),
                429 => "; raise http_max_conns_per_client of Consul".to_owned(),
                _ => String::new(),
            };
            Heard::Refused(format!("Consul answers {status}: {said}{help}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        Metadata { version: "1.2.3", instance: "00c0ffee".into() }
    }

    fn entry(address: Option<&str>) -> Registration {
        Registration {
            id: "weir-edge-8443".into(),
            service: "edge".into(),
            tags: vec!["public".into(), "a \"b\"".into()],
            address: address.map(Into::into),
            port: 8443,
        }
    }

    fn body(put: &Ask) -> Value {
        serde_json::from_str(&put.body).unwrap()
    }

    #[test]
    fn an_entry_has_a_check_with_a_ttl() {
        let put = register(&entry(Some("10.0.0.5")), CheckStatus::Passing, &metadata());
        assert_eq!(put.target, "/v1/agent/service/register?replace-existing-checks=true");
        let expected = json!({
            "ID": "weir-edge-8443", "Name": "edge", "Tags": ["public", "a \"b\""],
            "Address": "10.0.0.5", "Port": 8443,
            "Meta": { "version": "1.2.3", "instance": "00c0ffee" },
            "Check": {
                "Name": "Weir is ready", "TTL": "30s", "Status": "passing",
                "DeregisterCriticalServiceAfter": "1h",
            },
        });
        assert_eq!(body(&put), expected);
    }

    #[test]
    fn without_an_address_the_node_s_is_used() {
        let put = register(&entry(None), CheckStatus::Critical, &metadata());
        let body = body(&put);
        assert_eq!(body.get("Address"), None);
        assert_eq!(body["Check"]["Status"], "critical");
    }

    #[test]
    fn states_are_reported_for_the_check_of_the_entry() {
        let put = report(&entry(None), CheckStatus::Critical);
        assert_eq!(put.target, "/v1/agent/check/update/service:weir-edge-8443");
        assert_eq!(body(&put)["Status"], "critical");
        let put = deregister(&entry(None));
        assert_eq!(put.target, "/v1/agent/service/deregister/weir-edge-8443");
        assert!(put.body.is_empty());
    }

    #[test]
    fn an_entry_is_that_of_the_process_that_its_metadata_names() {
        let entry = entry(Some("10.0.0.5"));
        assert_eq!(read(&entry).target, "/v1/agent/service/weir-edge-8443");
        let of = |found: &Value| owner(found.to_string().as_bytes(), &metadata());
        let own = json!({
            "ID": "weir-edge-8443", "Service": "edge", "Address": "10.0.0.5", "Port": 8443,
            "Meta": { "instance": "00c0ffee", "version": "1.2.3" }, "Datacenter": "dc1",
        });
        assert_eq!(of(&own), Ok(Owner::Own));
        let mut earlier = own.clone();
        earlier["Address"] = json!("10.0.0.6");
        assert_eq!(of(&earlier), Ok(Owner::Own), "of an earlier configuration");
        let mut other = own;
        other["Meta"]["instance"] = json!("00decade");
        assert_eq!(of(&other), Ok(Owner::Other("10.0.0.5:8443".to_owned())));
        other["Address"] = json!("");
        assert_eq!(of(&other), Ok(Owner::Other("the node's address, port 8443".to_owned())));
        other["Address"] = json!("\u{1b}[2J".repeat(1000));
        let Ok(Owner::Other(shown)) = of(&other) else { panic!("{other}") };
        assert!(shown.len() < 100 && !shown.contains(char::is_control), "{shown}");
        for said in ["", "[]", "null", "{\"Service\": 1}", "{\"Service\": \"edge\", \"Port\": -1}"]
        {
            assert!(owner(said.as_bytes(), &metadata()).is_err(), "{said}");
        }
    }

    #[test]
    fn two_reports_may_be_lost() {
        assert!(HEARTBEAT * 3 <= Duration::from_secs(TTL_S));
    }

    #[test]
    fn an_agent_that_has_lost_the_entry_does_not_know_it() {
        let answers: [(u16, &str); 4] = [
            (404, "Unknown check ID \"service:weir-edge-8443\""),
            (500, "Unknown check ID \"service:weir-edge-8443\""),
            (500, "CheckID \"service:weir-edge-8443\" does not have associated TTL"),
            (500, "Unknown service {\"weir-edge-8443\" {}}"),
        ];
        for (status, said) in answers {
            assert_eq!(heard(status, said.as_bytes(), "edge"), Heard::Unknown, "{status} {said}");
        }
        assert_eq!(heard(200, b"", "edge"), Heard::Done);
    }

    #[test]
    fn a_refusal_is_one_short_line() {
        let refused = |status, said: &[u8]| match heard(status, said, "edge") {
            Heard::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused(403, b"Permission denied\n"),
            "Consul answers 403: Permission denied; the token needs service:write for edge"
        );
        assert_eq!(refused(500, b"No cluster leader"), "Consul answers 500: No cluster leader");
        let hostile = refused(500, &b"\xff\n\x1b[2J".repeat(100_000));
        assert!(hostile.len() < 2_000 && !hostile.contains(char::is_control), "{hostile}");
    }
}
