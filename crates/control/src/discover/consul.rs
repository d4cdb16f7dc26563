//! Consul's catalogue, by blocking queries: each watch asks for the instances of one service in one datacenter.

use std::rc::Rc;
use std::sync::Arc;

use discovery::Answer;
use discovery::consul::{self, Reading};
use model::Consul;

use super::parsed;
use super::queries::{self, Answered, Api, Client, Question, put_encoded, put_parameter};
use super::report::Sink;

/// What a watch asks for.
pub(super) struct Asked {
    pub(super) service: Arc<str>,
    pub(super) tag: Option<Arc<str>>,
    /// `None`: the agent's own.
    pub(super) datacenter: Option<Box<str>>,
    /// Whether servers other than the leader may answer.
    pub(super) stale: bool,
    pub(super) reading: Reading,
}

/// Returns the connections to an agent.
pub(super) fn client(consul: &Consul) -> Client {
    Client::new(Api {
        peer: &consul.peer,
        token: consul.token.as_ref().map(|token| ("X-Consul-Token", token)),
        index: "X-Consul-Index",
        queries: consul.queries,
        parts: datacenters(consul),
    })
}

/// Reports the instances that `asked` is about, now and when they change.
pub(super) async fn watch(client: Rc<Client>, asked: Asked, sink: Sink) {
    let question = Question { path: asked.path(), part: asked.datacenter.clone() };
    queries::watch(client, question, async |answered| asked.read(answered).await, sink).await;
}

/// Returns the datacenters to ask; `None` is the agent's own.
pub(super) fn datacenters(consul: &Consul) -> Vec<Option<Box<str>>> {
    match &*consul.datacenters {
        [] => vec![None],
        named => named.iter().cloned().map(Some).collect(),
    }
}

impl Asked {
    fn path(&self) -> String {
        let mut path = String::from("/v1/health/service/");
        put_encoded(&mut path, &self.service);
        path.push('?');
        put_parameter(&mut path, "dc", self.datacenter.as_deref());
        put_parameter(&mut path, "tag", self.tag.as_deref());
        if self.stale {
            path.push_str("stale&");
        }
        path
    }

    async fn read(&self, mut answered: Answered) -> Result<Answer, String> {
        if answered.status != 200 {
            let help = match answered.status {
                403 => "; the token needs service:read and node:read",
                429 => "; raise http_max_conns_per_client of Consul, or lower connections_max",
                _ => "",
            };
            return Err(answered.refusal("Consul", help));
        }
        // Consul has left out what the token may not read.
        let filtered = answered.field("x-consul-results-filtered-by-acls");
        let is_filtered = filtered.is_some_and(|value| value == b"true");
        let reading = self.reading;
        let body = std::mem::take(&mut answered.body);
        let mut answer = parsed(body, move |body| consul::instances(body, reading)).await?;
        if answer.rows.is_empty() {
            answered.check_empty("x-consul-knownleader", "Consul")?;
        }
        if is_filtered {
            let why = "the token may not read all instances; it needs service:read and node:read";
            if answer.rows.is_empty() {
                return Err(why.to_owned());
            }
            answer.refuse(&self.service, why);
        }
        Ok(answer)
    }
}
