//! The authentications that Ingresses and RoutePolicies require.

use std::collections::BTreeMap;

use model::{
    AuthenticationId, AuthenticationScheme, Denial, HttpPeer, KeySource, RequestFilter, ServiceId,
};

use super::Templates;
use super::service::{Services, Use};
use crate::ir::Gateway;
use crate::ir::extras::{Authentication, Extras, Owner, UNUSABLE};

/// Returns the filters of a rule at a Gateway, or the refusal in place of its action.
pub(super) fn filters(
    extras: Option<&Extras>,
    cors: Option<RequestFilter>,
    gateway: &Gateway,
    (services, known): (Services<'_>, &Authentications),
) -> Result<Vec<RequestFilter>, Denial> {
    let Some(extras) = extras else { return Ok(cors.into_iter().collect()) };
    if let Some(denial) = extras.refusal {
        return Err(denial);
    }
    let limits =
        (!extras.limits.is_empty()).then(|| RequestFilter::RateLimits(extras.limits.clone()));
    let authenticate = match &extras.authentication {
        None => None,
        // Without the server that decides, nothing may pass.
        Some(one) => {
            let source = Source::of(one, gateway, services).ok_or(UNUSABLE)?;
            Some(RequestFilter::Authenticate(*known.ids.get(&source).ok_or(UNUSABLE)?))
        }
    };
    // In the order of a configuration's: limits also bound guesses of passwords, and browsers send no credentials with
    // a preflight.
    Ok([limits, cors, authenticate].into_iter().flatten().collect())
}

/// What makes an authentication of Weir. Gateways can present different certificates to the server that is asked, which
/// is then a service for each of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    owner: Owner,
    asked: Option<ServiceId>,
}

impl Source {
    /// `None`: the server that is asked cannot be used.
    fn of(one: &Authentication, gateway: &Gateway, services: Services<'_>) -> Option<Source> {
        let asked = match &one.asked {
            Some(target) => Some(services.id(target, Use::Requests, gateway)?),
            None => None,
        };
        Some(Source { owner: one.owner.clone(), asked })
    }
}

/// The IDs of the authentications of Ingresses and RoutePolicies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Authentications {
    ids: BTreeMap<Source, AuthenticationId>,
}

impl Authentications {
    /// Adds all authentications that routes require, and whose services exist, to those of the files.
    pub(super) fn add(
        gateways: &[&Gateway],
        (services, templates): (Services<'_>, Templates<'_>),
        all: &mut Vec<model::Authentication>,
    ) -> Authentications {
        let mut found: BTreeMap<Source, &Authentication> = BTreeMap::new();
        for gateway in gateways {
            let listeners = gateway.ports.values().flatten();
            let routes = listeners.flat_map(|listener| &*listener.routes);
            for rule in routes.flat_map(|attached| attached.route.requests()) {
                let extras = rule.extras.as_ref();
                if let Some(one) = extras.and_then(|extras| extras.authentication.as_ref())
                    && let Some(source) = Source::of(one, gateway, services)
                {
                    found.entry(source).or_insert(one);
                }
            }
        }
        let mut added = Authentications::default();
        let mut before: Option<(Owner, usize)> = None;
        for (source, one) in found {
            let place = match &before {
                Some((owner, place)) if *owner == source.owner => place + 1,
                Some(_) | None => 0,
            };
            added.ids.insert(source.clone(), AuthenticationId(all.len() as u32));
            all.push(convert(one, source.asked, place, templates));
            before = Some((source.owner, place));
        }
        added
    }
}

/// `place`: its place among those of the same owner.
fn convert(
    one: &Authentication,
    asked: Option<ServiceId>,
    place: usize,
    templates: Templates<'_>,
) -> model::Authentication {
    let mut rules = one.rules.clone();
    let owner = &one.owner;
    rules.name = match place {
        0 => format!("kubernetes/{owner}").into(),
        place => format!("kubernetes/{owner}/{}", place + 1).into(),
    };
    match &mut rules.scheme {
        AuthenticationScheme::Basic { .. } => {}
        AuthenticationScheme::Token(token) => {
            if let KeySource::Issuer(HttpPeer { ca: Some(ca), .. }) = &mut token.keys {
                ca.clone_from(templates.authorities);
            }
        }
        AuthenticationScheme::Forward(forward) => {
            forward.service = asked.unwrap_or(forward.service);
        }
    }
    rules
}
