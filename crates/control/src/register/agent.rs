//! Requests to Consul's agent about an entry. Each has a connection of its own: there are few.

use std::sync::Arc;
use std::time::Duration;

use discovery::consul::register::{Ask, Heard, heard};
use model::Consul;
use tls::rustls::ClientConfig;
use transport::client::{Connection, ExchangeLimits, Request};

/// Maximum time for resolving the agent's name, and for connecting to one of its addresses.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Maximum time for an answer. While the cluster has no leader, an agent answers after 7 s (Consul's
/// `rpc_hold_timeout`).
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Longer answers are cut off: an entry with its tags, or a text that is shown.
const BODY_MAX_BYTES: usize = 64 * 1024;

/// How the agent is reached.
pub(super) struct Agent {
    consul: Arc<Consul>,
    /// Why TLS cannot be set up, if so.
    tls: Result<Option<Arc<ClientConfig>>, String>,
    fields: Vec<(String, String)>,
}

/// What the agent answered.
pub(super) struct Answered {
    pub(super) heard: Heard,
    /// The body, without the token.
    pub(super) said: Vec<u8>,
}

impl Agent {
    pub(super) fn new(consul: &Arc<Consul>) -> Agent {
        let mut fields =
            vec![("User-Agent".to_owned(), concat!("weir/", env!("CARGO_PKG_VERSION")).to_owned())];
        let token = consul.token.as_ref();
        fields.extend(token.map(|token| ("X-Consul-Token".to_owned(), token.to_string())));
        let tls = tls::to_peer(&consul.peer, &[b"http/1.1"]);
        let tls = tls.map_err(|mistake| mistake.to_string());
        Agent { consul: Arc::clone(consul), tls, fields }
    }

    /// Sends a request about an entry of `service`; returns the answer.
    ///
    /// # Errors
    /// There is no answer. One line, without the token.
    pub(super) async fn ask(&self, ask: &Ask, service: &str) -> Result<Answered, String> {
        let url = &self.consul.peer.url;
        let host = url.authority();
        let tls = self.tls.as_ref().map_err(Clone::clone)?;
        let connection = Connection::to(url, tls.as_ref(), CONNECT_MAX, ANSWER_MAX).await;
        let mut connection = connection.map_err(|error| error.to_string())?;
        let limits = ExchangeLimits { timeout: ANSWER_MAX, body_max_bytes: BODY_MAX_BYTES };
        let (method, path, body) = (ask.method, &*ask.target, ask.body.as_bytes());
        let request = Request { method, path, host, fields: &self.fields, body };
        let response = connection.exchange(&request, &limits).await;
        let response = response.map_err(|error| format!("{host}: {error}"))?;
        let mut said = response.body;
        if let Some(token) = &self.consul.token {
            // Something on the way may show the fields of the request.
            said = token.redacted_in(&said);
        }
        Ok(Answered { heard: heard(response.status, &said, service), said })
    }
}
