//! What an Ingress or a RoutePolicy states about the requests of a rule.

use std::fmt;
use std::sync::Arc;

use model::{Compression, Denial, DenialCause, RateLimit};

use super::backend::Target;
use crate::objects::Key;

/// The refusal of requests that cannot be served as their Ingress or RoutePolicy states.
pub const UNUSABLE: Denial = Denial { status: 503, cause: DenialCause::NoBackend };

/// What happens to the requests of a rule besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// They are refused.
    pub refusal: Option<Denial>,
    /// Refuses requests beyond any of these rates.
    pub limits: Vec<RateLimit>,
    /// Compresses responses.
    pub compression: Option<Compression>,
    /// Refuses requests that do not prove who sends them.
    pub authentication: Option<Arc<Authentication>>,
}

impl Extras {
    /// Returns what refuses all requests.
    pub fn refusing(denial: Denial) -> Extras {
        Extras { refusal: Some(denial), ..Extras::default() }
    }

    /// Returns the target that is asked about each request.
    pub fn asked(&self) -> Option<&Target> {
        self.authentication.as_ref()?.asked.as_ref()
    }
}

/// How requests prove who sends them.
#[derive(Clone, Debug, PartialEq)]
pub struct Authentication {
    /// What states it.
    pub owner: Owner,
    /// What is required. Its name, and the service that is asked, are set when it becomes a part of a configuration.
    pub rules: model::Authentication,
    /// The server that is asked about each request, if the rules say that one is.
    pub asked: Option<Target>,
}

/// What states an authentication. Each has at most one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// An Ingress.
    Ingress(Key),
    /// A RoutePolicy.
    RoutePolicy(Key),
}

/// As in the name of the authentication: `ingress/NAMESPACE/NAME`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Ingress(key) => write!(f, "ingress/{key}"),
            Owner::RoutePolicy(key) => write!(f, "routepolicy/{key}"),
        }
    }
}
