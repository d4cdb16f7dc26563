//! How requests prove who sends them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{HttpPeer, Material, ServiceId};

/// A way for requests to prove who sends them, which routes may require.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// Unique within a configuration.
    pub name: Arc<str>,
    /// The name of what clients log in to (RFC 9110 section 11.5).
    pub realm: String,
    /// What requests present.
    pub scheme: AuthenticationScheme,
    /// Fields that tell servers who sent a request, by name in lower case.
    pub identity_fields: Vec<IdentityField>,
    /// Whether the `Authorization` field is forwarded.
    pub forwards_credentials: bool,
}

/// What a request presents to prove who sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthenticationScheme {
    /// A name and a password (RFC 7617), verified against an htpasswd file.
    Basic {
        /// The file.
        users: Material,
    },
    /// A signed token (RFC 7519, presented as RFC 6750 describes).
    Token(Box<TokenRules>),
    /// Whatever a server of the operator's decides by: it is asked about each request.
    Forward(Box<ForwardRules>),
}

/// What a token must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRules {
    /// The key set (RFC 7517).
    pub keys: KeySource,
    /// Whether symmetric keys of the set are used.
    pub symmetric_keys: bool,
    /// The algorithms accepted, by their names in RFC 7518; empty: all but the symmetric ones, and with
    /// `symmetric_keys` these too.
    pub algorithms: Vec<String>,
    /// The issuers accepted; empty: any.
    pub issuers: Vec<String>,
    /// The audiences accepted; empty: any.
    pub audiences: Vec<String>,
    /// The types accepted (`typ`); empty: any.
    pub types: Vec<String>,
    /// How far the clock of the issuer may differ.
    pub leeway: Duration,
    /// Whether a token must expire.
    pub expiry_required: bool,
    /// Claims that a token must have, by path, with a value that each must be or contain.
    pub claims: Vec<(String, String)>,
}

/// Where a key set comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// A file.
    File(Material),
    /// The issuer of the tokens, from which it is fetched again and again.
    Issuer(HttpPeer),
}

/// How a server is asked whether a request may pass, and what becomes of its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardRules {
    /// The service whose servers are asked.
    pub service: ServiceId,
    /// Replaces the request's host; `None`: that of the request.
    pub host: Option<String>,
    /// The path and query that are asked for.
    pub path: String,
    /// How long the verdict may take, the wait for a free slot included.
    pub timeout: Duration,
    /// The request fields that the server receives, in lower case; `None`: all that concern neither
    /// the body nor the representation asked for.
    pub request_fields: Option<Vec<String>>,
    /// Fields of the response, in lower case, that the client receives after a success.
    pub response_fields: Vec<String>,
}

/// A field that tells servers who sent a request. One that a client has written, also as a trailer, is
/// removed before anything looks at the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityField {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: IdentityValue,
}

/// The value of an [`IdentityField`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityValue {
    /// The name of the user. With `forward`, the field has the same name in the response that lets the
    /// request pass.
    User,
    /// A claim of the token, by path. If the token does not have it, the field is left out.
    Claim(String),
    /// The field of the same name in the response that lets the request pass. If that does not have it,
    /// the field is left out.
    Response,
}

crate::word_of! {
    /// The configuration key of an [`AuthenticationScheme`].
    AuthenticationScheme as AuthenticationWord {
        Basic { .. } = "basic",
        Token(_) = "jwt",
        Forward(_) = "forward",
    }
}

/// The position of an [`Authentication`] in its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthenticationId(pub u32);

/// Writes what is required, as `weir check` prints it: `basic staff`.
impl fmt::Display for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.scheme.as_str(), self.name)
    }
}
