//! The server that a request would get.

use admin_api::routes::{ExplainedAnswer, ExplainedServer, ServerConsidered, ServerOutcome};
use decide::explain::{By, Decision};
use decide::foresee::Foreseen;
use decide::{Ask, LiveService, placement, route};
use model::{Cause, Forward, Maintained};

use super::{Case, answer};

/// Returns what would become of a request at its service, and Weir's own answer if it gets no server.
pub(super) fn foresee(
    case: &Case<'_>,
    forward: &Forward,
) -> (ExplainedServer, Option<ExplainedAnswer>) {
    let mut rng = fastrand::Rng::new();
    let id = route::split(forward, &mut rng);
    let spec = case.snapshot().service(id);
    let live = case.published.service(id);
    let drawn = forward.to.len() > 1;
    let switched = case.registry.maintenance();
    if switched.in_force(Maintained::Service, &spec.name, spec.maintenance).is_some() {
        let why = format!("service {} is in maintenance", spec.name);
        let server = ExplainedServer {
            service: spec.name.to_string(),
            outcome: ServerOutcome::Refused.into(),
            example: drawn,
            why: why.clone(),
            ..ExplainedServer::default()
        };
        return (server, Some(answer(Cause::Maintenance, why)));
    }
    // What an authentication would add to the request is not known.
    let key = placement::key(spec, case.head, |_| None, case.arrival.client);
    let affinity = placement::affinity(spec, case.head);
    let ask = Ask { key, affinity, avoid: &[] };
    let (foreseen, decision) = live.foresee(&ask, &mut rng, case.now);
    let is_random = match decision.by {
        Some(By::PeakEwma | By::Random | By::Elsewhere) => true,
        Some(By::Hash) => key.is_none(),
        // During a trial, the server is drawn.
        Some(By::RoundRobin | By::LeastConnections) => live.trial().is_on(case.now),
        Some(By::Affinity | By::Queue) | None => false,
    };
    let mut why = why(live, &foreseen, &decision, is_random);
    if drawn {
        why.push_str("; the service was drawn by weight");
    }
    let own = match foreseen {
        Foreseen::Refused(Cause::QueueFull) => {
            let status = Some(spec.when_full);
            Some(ExplainedAnswer { status, ..answer(Cause::QueueFull, why.clone()) })
        }
        Foreseen::Refused(cause) => Some(answer(cause, why.clone())),
        Foreseen::Server(_) | Foreseen::Waits => None,
    };
    (explained(&foreseen, &decision, (drawn || is_random, why)), own)
}

fn explained(
    foreseen: &Foreseen,
    decision: &Decision,
    (example, why): (bool, String),
) -> ExplainedServer {
    let (outcome, endpoint) = match foreseen {
        Foreseen::Server(endpoint) => (ServerOutcome::Server, Some(endpoint)),
        Foreseen::Waits => (ServerOutcome::Waits, None),
        Foreseen::Refused(_) => (ServerOutcome::Refused, None),
    };
    let servers = decision.servers.iter().map(|server| ServerConsidered {
        name: server.name.to_string(),
        address: server.address.to_string(),
        why: server.why.into(),
        in_flight: server.in_flight,
    });
    ExplainedServer {
        service: decision.service.to_string(),
        outcome: outcome.into(),
        name: endpoint.map(|endpoint| endpoint.row.name.to_string()),
        address: endpoint.map(|endpoint| endpoint.row.address.to_string()),
        by: decision.by.map(Into::into),
        example,
        why,
        servers: servers.collect(),
        not_listed: decision.more.iter().map(|(_, count)| count).sum(),
    }
}

fn why(live: &LiveService, foreseen: &Foreseen, decision: &Decision, is_random: bool) -> String {
    let endpoints = live.endpoints();
    let count = |servers: usize| match servers {
        1 => "1 server".to_owned(),
        several => format!("{several} servers"),
    };
    let among = count(endpoints.eligible.len());
    match foreseen {
        Foreseen::Waits => format!(
            "no server has a free slot for it now; it would wait in the queue, behind {} others",
            decision.queue_length
        ),
        Foreseen::Refused(Cause::QueueFull) => {
            format!("{among} and the queue are full")
        }
        Foreseen::Refused(_) => {
            let all = count(endpoints.all.len());
            format!("none of {all} takes new work: {}", decision.reason.text())
        }
        Foreseen::Server(_) if is_random && decision.by == Some(By::Hash) => {
            format!("the request has no hash key: chosen at random among {among}; an example")
        }
        Foreseen::Server(_) if is_random => {
            format!("chosen at random among {among}; an example")
        }
        Foreseen::Server(_) => match decision.by {
            Some(By::RoundRobin) => format!(
                "it is the next in turn among {among}; another request may take this turn first"
            ),
            Some(By::LeastConnections) => format!("it has the fewest requests among {among}"),
            Some(By::Hash) => format!("the request's hash key belongs to it, among {among}"),
            Some(By::Affinity) => "the request's affinity cookie names it".to_owned(),
            Some(By::PeakEwma | By::Random | By::Queue | By::Elsewhere) | None => {
                format!("chosen among {among}")
            }
        },
    }
}
