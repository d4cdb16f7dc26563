//! The authentications that Ingresses require.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{
    AuthenticationId, AuthenticationScheme, Denial, DenialCause, ForwardRules, IdentityField,
    IdentityValue, Material, RequestFilter,
};

use super::service::{Services, Use};
use crate::ir::Gateway;
use crate::ir::ingress::{Authentication, Extras, Proof, is_implied};
use crate::objects::Key;

/// How long an authentication server may take: the default of `forward`.
const ASK_MAX: Duration = Duration::from_secs(5);

/// Returns the filters of a rule, or the refusal in place of its action.
pub(super) fn filters(
    extras: Option<&Extras>,
    cors: Option<RequestFilter>,
    known: &Authentications,
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
        Some(one) => match known.ids.get(&one.ingress) {
            Some(id) => Some(RequestFilter::Authenticate(*id)),
            None => return Err(Denial { status: 503, cause: DenialCause::NoBackend }),
        },
    };
    // In the order of a configuration's: limits also bound guesses of passwords, and browsers send no credentials with
    // a preflight.
    Ok([limits, cors, authenticate].into_iter().flatten().collect())
}

/// The IDs of the authentications of Ingresses, each of which has at most one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Authentications {
    ids: BTreeMap<Key, AuthenticationId>,
}

impl Authentications {
    /// Adds all authentications that routes require, and whose services exist, to those of the files.
    pub(super) fn add(
        gateways: &[&Gateway],
        services: Services<'_>,
        all: &mut Vec<model::Authentication>,
    ) -> Authentications {
        let mut found: BTreeMap<&Key, (&Authentication, &Gateway)> = BTreeMap::new();
        for gateway in gateways.iter().filter(|one| is_implied(&one.key)) {
            let listeners = gateway.ports.values().flatten();
            let routes = listeners.flat_map(|listener| &*listener.routes);
            for rule in routes.flat_map(|attached| attached.route.requests()) {
                let extras = rule.extras.as_ref();
                if let Some(one) = extras.and_then(|extras| extras.authentication.as_ref()) {
                    found.entry(&one.ingress).or_insert((one, gateway));
                }
            }
        }
        let mut added = Authentications::default();
        for (ingress, (one, gateway)) in found {
            if let Some(converted) = convert(one, gateway, services) {
                added.ids.insert(ingress.clone(), AuthenticationId(all.len() as u32));
                all.push(converted);
            }
        }
        added
    }
}

fn convert(
    one: &Authentication,
    gateway: &Gateway,
    services: Services<'_>,
) -> Option<model::Authentication> {
    let (scheme, fields) = match &one.proof {
        Proof::Password { secret, users } => {
            let path = PathBuf::from(format!("Secret {secret}"));
            let users = Material { path, bytes: Arc::clone(users) };
            (AuthenticationScheme::Basic { users }, &[][..])
        }
        Proof::Server(server) => {
            let rules = ForwardRules {
                service: services.id(&server.target, Use::Requests, gateway)?,
                host: Some(server.host.clone()),
                path: server.path.clone(),
                timeout: ASK_MAX,
                request_fields: None,
                response_fields: Vec::new(),
            };
            (AuthenticationScheme::Forward(Box::new(rules)), server.fields.as_slice())
        }
    };
    let fields = fields.iter();
    Some(model::Authentication {
        name: format!("kubernetes/ingress/{}", one.ingress).into(),
        realm: one.realm.clone(),
        scheme,
        identity_fields: fields
            .map(|name| IdentityField { name: name.clone(), value: IdentityValue::Response })
            .collect(),
        forwards_credentials: true,
    })
}
