//! Why a token is not accepted.

use std::fmt;

use crate::keys::visible;

/// Why a token is not accepted. Never contains the token; only [`Denied::UnknownKey`] has a part of
/// it, which is no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// The token is longer than [`TOKEN_MAX_BYTES`](super::TOKEN_MAX_BYTES).
    TooLong,
    /// The token breaks a rule of its format: says which.
    Malformed(&'static str),
    /// The token's algorithm is `none`, unknown or not among those of the rules, or the keys in
    /// question must not be used with it.
    Algorithm,
    /// The key set has no key of this identifier. The issuer may have a new key: ask
    /// [`Refetch::unknown_key`](crate::Refetch::unknown_key).
    UnknownKey {
        /// The identifier as in the token; escape it before it is logged, as `Display` does.
        kid: String,
    },
    /// No key in question made the signature.
    Signature,
    /// The token's type (`typ`) is not among those of the rules.
    Type,
    /// A claim that the rules need is missing: its name.
    MissingClaim(&'static str),
    /// A claim has a value that it must not have: its name.
    BadClaim(&'static str),
    /// The token has expired (`exp`).
    Expired,
    /// The token is not valid yet (`nbf`).
    NotYetValid,
    /// The token is from the future (`iat`).
    IssuedInFuture,
    /// The issuer (`iss`) is not among those of the rules.
    Issuer,
    /// The audience (`aud`) has none of those of the rules.
    Audience,
}

impl Denied {
    /// Returns a word for logs and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Denied::TooLong => "token_too_long",
            Denied::Malformed(_) => "token_malformed",
            Denied::Algorithm => "token_algorithm",
            Denied::UnknownKey { .. } => "token_unknown_key",
            Denied::Signature => "token_signature",
            Denied::Type => "token_type",
            Denied::MissingClaim(_) => "token_missing_claim",
            Denied::BadClaim(_) => "token_bad_claim",
            Denied::Expired => "token_expired",
            Denied::NotYetValid => "token_not_yet_valid",
            Denied::IssuedInFuture => "token_issued_in_future",
            Denied::Issuer => "token_issuer",
            Denied::Audience => "token_audience",
        }
    }

    /// Returns a sentence for the client, as the `error_description` of RFC 6750. It tells what the
    /// client can know itself, and nothing of the rules or keys.
    pub fn description(&self) -> &'static str {
        match self {
            Denied::TooLong => "The token is too long",
            Denied::Malformed(_) => "The token is malformed",
            Denied::Algorithm | Denied::UnknownKey { .. } | Denied::Signature => {
                "The signature could not be verified"
            }
            Denied::Type => "The token is of another type",
            Denied::MissingClaim(_) => "A claim is missing",
            Denied::BadClaim(_) => "A claim is invalid",
            Denied::Expired => "The token expired",
            Denied::NotYetValid | Denied::IssuedInFuture => "The token is not valid yet",
            Denied::Issuer => "The token is from another issuer",
            Denied::Audience => "The token is for another audience",
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denied::Malformed(why) => write!(f, "the token is malformed: {why}"),
            Denied::UnknownKey { kid } => {
                write!(f, "no key has the token's kid `{}`", visible(kid))
            }
            Denied::Algorithm => f.write_str("the token's algorithm is not allowed"),
            Denied::MissingClaim(name) => write!(f, "the token has no claim `{name}`"),
            Denied::BadClaim(name) => write!(f, "the token's claim `{name}` is invalid"),
            other => f.write_str(other.description()),
        }
    }
}

impl std::error::Error for Denied {}
