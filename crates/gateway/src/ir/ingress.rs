//! What only rules of Ingresses have. Annotations of ingress-nginx state it.

use std::sync::Arc;

use model::{Denial, RateLimit};

use super::backend::Target;
use crate::objects::Key;

/// What happens to the requests of a rule besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// They are refused.
    pub refusal: Option<Denial>,
    /// Refuses requests beyond any of these rates.
    pub limits: Vec<RateLimit>,
    /// Refuses requests that do not prove who sends them.
    pub authentication: Option<Arc<Authentication>>,
}

impl Extras {
    /// Returns the target that is asked about each request.
    pub fn asked(&self) -> Option<&Target> {
        match &self.authentication.as_ref()?.proof {
            Proof::Server(server) => Some(&server.target),
            Proof::Password { .. } => None,
        }
    }
}

/// How requests prove who sends them.
#[derive(Clone, Debug, PartialEq)]
pub struct Authentication {
    /// The Ingress that states it, which has no other.
    pub ingress: Key,
    /// The name of what clients log in to.
    pub realm: String,
    /// What is required.
    pub proof: Proof,
}

/// What a request must present.
#[derive(Clone, PartialEq)]
pub enum Proof {
    /// A name and a password of a Secret.
    Password {
        /// The Secret.
        secret: Key,
        /// The users, as an htpasswd file has them.
        users: Arc<[u8]>,
    },
    /// Whatever a server decides by.
    Server(ProofServer),
}

/// A server that is asked about each request.
#[derive(Clone, Debug, PartialEq)]
pub struct ProofServer {
    /// Where it is.
    pub target: Target,
    /// The host that it is asked with.
    pub host: String,
    /// The path and query that it is asked for.
    pub path: String,
    /// The fields of its response that the backend receives, in lower case.
    pub fields: Vec<String>,
}

/// Without the users.
impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Proof::Password { secret, .. } => write!(f, "users of Secret {secret}"),
            Proof::Server(ProofServer { target, host, path, fields }) => {
                let target = target.service().map(|port| (&port.service, port.port));
                write!(f, "{target:?} asked for {host}{path}, passes on {fields:?}")
            }
        }
    }
}

/// Returns the key of what an IngressClass implies among Gateways. No Gateway has it: each has a namespace.
pub fn implied_key(class: impl Into<Arc<str>>) -> Key {
    Key::new("", class)
}

/// Returns whether it is the key of what an IngressClass implies.
pub fn is_implied(gateway: &Key) -> bool {
    gateway.namespace.is_empty()
}
