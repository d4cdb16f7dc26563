//! The server that a request would get.

use admin_api::routes::{ExplainedAnswer, ExplainedServer, ServerConsidered, ServerOutcome};
use decide::explain::{By, Decision};
use decide::foresee::Foreseen;
use decide::placement::{self, Placement};
use decide::{Ask, LiveService};
use model::{Cause, Denial, DenialCause, Forward, Maintained, SplitTarget};

use super::{Case, answer};

/// Returns what would become of a request at its service, unless it goes to none, and Weir's own answer if it gets no
/// server.
pub(super) fn foresee(
    case: &Case<'_>,
    forward: &Forward,
) -> (Option<ExplainedServer>, Option<ExplainedAnswer>) {
    let mut rng = fastrand::Rng::new();
    let wall = os::clock::wall;
    let Placement { branch, is_drawn, bound } =
        placement::place(case.published, forward, case.head, wall, &mut rng);
    let id = match branch.to {
        SplitTarget::Service(id) => id,
        SplitTarget::Deny(Denial { status, cause }) => {
            let why = match cause {
                DenialCause::Configured | DenialCause::NoRoute => {
                    "the branch of the split that was drawn by weight, as an example, refuses its requests"
                }
                DenialCause::NoBackend => {
                    "the branch of the split that was drawn by weight, as an example, has no valid backend"
                }
            };
            let status = Some(status);
            return (None, Some(ExplainedAnswer { status, ..answer(cause.cause(), why) }));
        }
    };
    let spec = case.snapshot().service(id);
    let live = case.published.service(id);
    let several = forward.to.iter().filter(|to| to.weight > 0).count() > 1;
    let drawn = several && is_drawn;
    let switched = case.registry.maintenance();
    if switched.in_force(Maintained::Service, &spec.name, spec.maintenance).is_some() {
        let (server, answer) = in_maintenance(&spec.name, drawn);
        return (Some(server), answer);
    }
    // What an authentication would add to the request is not known.
    let key = placement::key(spec, case.head, |_| None, case.client);
    let ask = Ask { key, affinity: bound.server, avoid: &[] };
    let (foreseen, decision) = live.foresee(&ask, &mut rng, case.now);
    let is_random = match decision.by {
        _ if decision.could_be_chosen() == 1 => false,
        Some(By::PeakEwma | By::Random | By::Elsewhere) => true,
        Some(By::Hash) => key.is_none(),
        // During a trial, the server is drawn.
        Some(By::RoundRobin | By::LeastConnections) => live.trial().is_on(case.now),
        Some(By::Affinity | By::Queue) | None => false,
    };
    let mut why = why(live, &foreseen, &decision, is_random);
    if drawn {
        why.push_str("; for example: the service was drawn by weight");
    }
    let own = match foreseen {
        Foreseen::Refused(Cause::QueueFull) => {
            let status = Some(spec.when_full);
            Some(ExplainedAnswer { status, ..answer(Cause::QueueFull, why.clone()) })
        }
        Foreseen::Refused(cause) => Some(answer(cause, why.clone())),
        Foreseen::Server(_) | Foreseen::Waits(_) => None,
    };
    (Some(explained(&foreseen, &decision, (drawn || is_random, why))), own)
}

/// Returns the refusal of a service that is in maintenance; `drawn`: chance chose this service.
fn in_maintenance(service: &str, drawn: bool) -> (ExplainedServer, Option<ExplainedAnswer>) {
    let mut why = format!("service {service} is in maintenance");
    if drawn {
        why.push_str("; for example: the service was drawn by weight");
    }
    let server = ExplainedServer {
        service: service.to_owned(),
        outcome: ServerOutcome::Refused.into(),
        example: drawn,
        why: why.clone(),
        ..ExplainedServer::default()
    };
    (server, Some(answer(Cause::Maintenance, why)))
}

fn explained(
    foreseen: &Foreseen,
    decision: &Decision,
    (example, why): (bool, String),
) -> ExplainedServer {
    let (outcome, endpoint) = match foreseen {
        Foreseen::Server(endpoint) => (ServerOutcome::Server, Some(endpoint)),
        Foreseen::Waits(_) => (ServerOutcome::Waits, None),
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

fn count(servers: usize) -> String {
    match servers {
        1 => "1 server".to_owned(),
        several => format!("{several} servers"),
    }
}

fn why(live: &LiveService, foreseen: &Foreseen, decision: &Decision, is_random: bool) -> String {
    let endpoints = live.endpoints();
    match foreseen {
        Foreseen::Waits(bound) => {
            let full = match bound {
                Some(bound) => format!(
                    "server {}, which the request's affinity names, has no free slot for it now",
                    bound.row.address
                ),
                None => "no server has a free slot for it now".to_owned(),
            };
            let place = match decision.queue_length {
                0 => "as the first".to_owned(),
                1 => "behind 1 other".to_owned(),
                others => format!("behind {others} others"),
            };
            format!("{full}; it would wait in the queue, {place}")
        }
        Foreseen::Refused(Cause::QueueFull) => match endpoints.eligible.len() {
            1 => "its only server is full, and so is the queue".to_owned(),
            several => format!("all {several} servers are full, and so is the queue"),
        },
        Foreseen::Refused(_) => {
            let all = count(endpoints.all.len());
            format!("none of {all} takes new work: {}", decision.reason.text())
        }
        Foreseen::Server(_) => why_chosen(decision, is_random),
    }
}

fn why_chosen(decision: &Decision, is_random: bool) -> String {
    let among = match decision.could_be_chosen() {
        // It is not known if others have taken its last slot since.
        0 | 1 if !matches!(decision.by, Some(By::Affinity | By::Queue)) => {
            return "it is the only server that can take the request now".to_owned();
        }
        servers => count(servers),
    };
    match decision.by {
        Some(By::Hash) if is_random => {
            format!("the request has no hash key: chosen at random among {among}; an example")
        }
        _ if is_random => format!("chosen at random among {among}; an example"),
        Some(By::RoundRobin) => {
            format!(
                "it is the next in turn among {among}; another request may take this turn first"
            )
        }
        Some(By::LeastConnections) => {
            format!("it has the lowest load for its weight among {among}")
        }
        Some(By::Hash) => format!(
            "of {among} with room it is the first for the request's hash key that is not overloaded"
        ),
        Some(By::Affinity) => "the request's affinity names it".to_owned(),
        Some(By::Queue) => "it has a free slot that no request in the queue can use".to_owned(),
        Some(By::PeakEwma | By::Random | By::Elsewhere) | None => format!("chosen among {among}"),
    }
}
