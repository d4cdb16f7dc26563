//! Consul's catalogue, by blocking queries: each watch asks for the instances of one service in one datacenter.

use std::rc::Rc;
use std::sync::Arc;

use discovery::Answer;
use discovery::consul::{self, Reading};
use model::Consul;

use super::parsed;
use super::queries::{
    self, Answered, Api, Client, Question, SERVERS_EVERY_MIN, put_encoded, put_parameter,
};
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
    let asked_every_min = SERVERS_EVERY_MIN;
    let question = Question { path: asked.path(), part: asked.datacenter.clone(), asked_every_min };
    let tell = async |arrived, found| sink.send(arrived, found).await;
    queries::watch(client, question, async |answered| asked.read(answered).await, tell).await;
}

/// Returns the datacenters to ask; `None` is the agent's own.
pub(super) fn datacenters(consul: &Consul) -> Vec<Option<Box<str>>> {
    match &*consul.datacenters {
        [] => vec![None],
        named => named.iter().cloned().map(Some).collect(),
    }
}

/// Returns whether Consul has left out what the token may not read.
pub(super) fn is_filtered(answered: &Answered) -> bool {
    answered.field("x-consul-results-filtered-by-acls").is_some_and(|value| value == b"true")
}

/// Checks that an answer is one.
///
/// # Errors
/// Consul refuses. One line with what it says and what to do.
pub(super) fn check_status(answered: &Answered) -> Result<(), String> {
    let help = match answered.status {
        200 => return Ok(()),
        403 => "; the token needs service:read and node:read",
        429 => "; raise http_max_conns_per_client of Consul, or lower connections_max",
        _ => "",
    };
    Err(answered.refusal("Consul", help))
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
        check_status(&answered)?;
        let is_filtered = is_filtered(&answered);
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
