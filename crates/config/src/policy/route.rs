//! Reads the spec of a `RoutePolicy`, and sets what it states in the filters of a route.

use std::fmt::Write as _;
use std::sync::Arc;

use model::{
    Action, Authentication, AuthenticationId, AuthenticationScheme, Compression, KeySource,
    Material, RateLimit, RequestFilter, ResponseFilter, ServiceId, Snapshot,
};
use serde_json::{Map, Value};

use super::tables::{BACKEND, Tables, too_long};
use super::{
    IDENTITY_FIELDS_HELP, Mistake, Reference, at, is_identity_field, keys_url, not_built, snapshot,
};
use crate::build::request_filters;
use crate::diagnostic::quote;
use crate::schema::ROUTE;

/// What a `RoutePolicy` states for routes.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTerms {
    /// Limits of rates, in the order in which they count; empty: none are stated.
    pub limits: Vec<RateLimit>,
    /// Whether responses are compressed.
    pub compression: CompressionTerms,
    /// How requests prove who sends them, if they must.
    pub authentication: Option<AuthenticationTerms>,
}

/// What a `RoutePolicy` states about compression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompressionTerms {
    /// Nothing: what applies without the policy.
    Unstated,
    /// Responses are not compressed.
    Off,
    /// Responses are compressed like this.
    On(Compression),
}

/// How requests prove who sends them.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthenticationTerms {
    /// Its name and the service that is asked are placeholders, and so is the realm if it is not stated: see
    /// [`AuthenticationTerms::named`].
    pub authentication: Authentication,
    /// The realm is stated.
    pub states_realm: bool,
    /// The service that is asked, if one is.
    pub backend: Option<BackendRef>,
}

impl AuthenticationTerms {
    /// Returns the authentication with a name, which is also the realm if none is stated, and with the service that is
    /// asked, which is not needed without a `backend`.
    pub fn named(&self, name: &Arc<str>, service: ServiceId) -> Authentication {
        let mut authentication = self.authentication.clone();
        authentication.name = Arc::clone(name);
        if !self.states_realm {
            authentication.realm = name.to_string();
        }
        if let AuthenticationScheme::Forward(rules) = &mut authentication.scheme {
            rules.service = service;
        }
        authentication
    }
}

/// A Service of Kubernetes that a policy refers to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BackendRef {
    /// `None`: the policy's own.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Where the policy states it, for messages.
    pub path: String,
}

impl RouteTerms {
    /// Reads the `spec` of a `RoutePolicy`, without `targetRefs`. `material` returns what a reference refers to, or why
    /// there is none, in words.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(
        spec: &Map<String, Value>,
        material: &dyn Fn(Reference<'_>) -> Result<Material, String>,
    ) -> Result<RouteTerms, Vec<Mistake>> {
        if let Some(mistake) = too_long(spec) {
            return Err(vec![mistake]);
        }
        let mut tables = Tables::default();
        let _ = writeln!(
            tables.text,
            "[service.{BACKEND}]\nserver = [{{ address = \"192.0.2.1:80\" }}]\n[[route]]\nservice = \"{BACKEND}\""
        );
        tables.lines(&ROUTE, spec, "spec");
        let authentication = spec.get("authentication").filter(|value| !value.is_null());
        if let Some(json) = authentication {
            tables.authentication(json, "spec.authentication");
        }
        let backend = tables.backend.clone();
        let Snapshot { routes, authentications, .. } = snapshot(tables, material)?;
        let Some(route) = routes.into_iter().next() else { return Err(vec![not_built()]) };
        let limits = route.rate_limits().cloned().collect();
        let states_realm = at(spec, &["authentication", "realm"]).is_some();
        let authentication = authentications
            .into_iter()
            .next()
            .map(|authentication| AuthenticationTerms { authentication, states_realm, backend });
        let of_authentication = authentication.as_ref();
        let mistake = of_authentication.and_then(unfit_keys_url);
        if let Some(mistake) = mistake.or_else(|| of_authentication.and_then(fields_of_others)) {
            return Err(vec![mistake]);
        }
        let states_compression = at(spec, &["compress"]).is_some();
        let compression = compression(&route.action, states_compression);
        Ok(RouteTerms { limits, compression, authentication })
    }

    /// Sets what it states in the filters of a route, in their order, and leaves everything else as it is.
    /// `authentication`: the one that it states.
    pub fn set_filters(
        &self,
        filters: &mut Vec<RequestFilter>,
        authentication: Option<AuthenticationId>,
    ) {
        let (mut limits, mut cors, mut required) = (Vec::new(), None, None);
        for filter in filters.drain(..) {
            match filter {
                RequestFilter::RateLimits(of_route) => limits.extend(of_route),
                RequestFilter::Cors(rules) => cors = Some(rules),
                RequestFilter::Authenticate(id) => required = Some(id),
            }
        }
        if !self.limits.is_empty() {
            limits.clone_from(&self.limits);
        }
        *filters = request_filters(limits, cors, authentication.or(required));
    }

    /// Returns the Secrets and `ConfigMaps` that `spec` refers to, without checking it.
    pub fn references(spec: &Map<String, Value>) -> Vec<Reference<'_>> {
        let name = |path: &[&str]| at(spec, path).and_then(Value::as_str);
        let users = name(&["authentication", "basic", "usersSecret"]).map(Reference::UsersSecret);
        let keys = name(&["authentication", "jwt", "keysConfigMap"]).map(Reference::KeysConfigMap);
        users.into_iter().chain(keys).collect()
    }
}

fn compression(action: &Action, is_stated: bool) -> CompressionTerms {
    let filters = match action {
        Action::Forward(forward) => forward.filters.as_slice(),
        _ => &[],
    };
    match filters.first() {
        Some(ResponseFilter::Compress(compression)) => CompressionTerms::On(compression.clone()),
        None if is_stated => CompressionTerms::Off,
        None => CompressionTerms::Unstated,
    }
}

/// Returns the mistake that a field for identities may be one that clients of others send.
fn fields_of_others(terms: &AuthenticationTerms) -> Option<Mistake> {
    let mut fields = terms.authentication.identity_fields.iter().map(|field| &*field.name);
    let name = fields.find(|name| !is_identity_field(name))?;
    let problem =
        format!("{} may be a field that clients need; {IDENTITY_FIELDS_HELP}", quote(name));
    Some(Mistake { path: "spec.authentication".to_owned(), problem })
}

/// Returns the mistake that keys are fetched from where a policy may not send the balancer.
fn unfit_keys_url(terms: &AuthenticationTerms) -> Option<Mistake> {
    let AuthenticationScheme::Token(rules) = &terms.authentication.scheme else { return None };
    let KeySource::Issuer(peer) = &rules.keys else { return None };
    keys_url::problem(&peer.url).map(|problem| Mistake {
        path: "spec.authentication.jwt.keysUrl".to_owned(),
        problem: problem.to_owned(),
    })
}
