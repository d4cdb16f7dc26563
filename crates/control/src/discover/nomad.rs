//! Nomad's services, by blocking queries: each watch asks for the registrations of one service.

use std::rc::Rc;
use std::sync::Arc;

use discovery::Answer;
use discovery::nomad::{self, Reading};
use model::Nomad;

use super::parsed;
use super::queries::{
    self, Answered, Api, Client, Question, SERVERS_EVERY_MIN, put_encoded, put_parameter,
};
use super::report::Sink;

/// Returns the connections to an agent.
pub(super) fn client(nomad: &Nomad) -> Client {
    Client::new(Api {
        peer: &nomad.peer,
        token: nomad.token.as_ref().map(|token| ("X-Nomad-Token", token)),
        index: "X-Nomad-Index",
        queries: nomad.queries,
        parts: vec![None],
    })
}

/// Reports the registrations of `service`, now and when they change.
pub(super) async fn watch(
    client: Rc<Client>,
    nomad: Arc<Nomad>,
    service: Arc<str>,
    reading: Reading,
    sink: Sink,
) {
    let asked_every_min = SERVERS_EVERY_MIN;
    let question = Question { path: path(&nomad, &service), part: None, asked_every_min };
    let read = async |answered| read(answered, reading.clone()).await;
    let tell = async |arrived, found| sink.send(arrived, found).await;
    queries::watch(client, question, read, tell).await;
}

fn path(nomad: &Nomad, service: &str) -> String {
    let mut path = String::from("/v1/service/");
    put_encoded(&mut path, service);
    path.push('?');
    put_parameter(&mut path, "namespace", nomad.namespace.as_deref());
    put_parameter(&mut path, "region", nomad.region.as_deref());
    if nomad.queries.stale {
        path.push_str("stale&");
    }
    path
}

async fn read(mut answered: Answered, reading: Reading) -> Result<Answer, String> {
    if answered.status != 200 {
        let help = match answered.status {
            403 => "; the token needs read-job in the namespace",
            429 => "; raise http_max_conns_per_client of Nomad, or lower connections_max",
            _ => "",
        };
        return Err(answered.refusal("Nomad", help));
    }
    let body = std::mem::take(&mut answered.body);
    let answer = parsed(body, move |body| nomad::registrations(body, &reading)).await?;
    if answer.rows.is_empty() {
        answered.check_empty("x-nomad-knownleader", "Nomad")?;
    }
    Ok(answer)
}
