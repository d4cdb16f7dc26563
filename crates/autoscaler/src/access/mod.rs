//! Who a client of the external metrics API is, and what it may read: delegated to the API server, as in all aggregated
//! APIs.
//!
//! The API server's front proxy authenticates with a client certificate and names the user in fields of its requests. Others
//! present a token, which the API server reviews (TokenReview). Then the API server decides what the user may read
//! (SubjectAccessReview). Everything that fails denies.

mod cache;
mod front_proxy;
mod review;

use std::collections::BTreeMap;

pub use cache::Cache;
pub use front_proxy::FrontProxy;
pub use review::{Review, Verdict};

/// The group whose members may do everything (`system:masters`). Asking for them would fail while the API server starts.
const MASTERS: &str = "system:masters";
/// The group of all users that were authenticated, and that of all others.
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ANONYMOUS: &str = "system:anonymous";
/// The most bytes of a token.
const TOKEN_MAX_BYTES: usize = 8_192;

/// A user, as the API server names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its ID.
    pub uid: String,
    /// Its groups.
    pub groups: Vec<String>,
    /// What else is known.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Adds the group of all users that were authenticated, as Kubernetes does: the API server itself asks as users without
    /// groups.
    fn authenticated(mut self) -> User {
        let has = |name: &str| self.groups.iter().any(|group| group == name);
        if self.name != ANONYMOUS && !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Returns whether it may do everything.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// What a client wants to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wish {
    /// Values of a metric.
    Metric {
        /// In this namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Anything else.
    Path(String),
}

/// The certificate that a client has presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// None.
    Absent,
    /// One that the authority of the front proxy has not signed, or that is not valid now: why.
    Untrusted(String),
    /// One of the front proxy's authority, with its common name.
    Verified(String),
}

/// Who a client says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The front proxy says that it is this user.
    User(User),
    /// It has a token to review.
    Token(String),
}

/// Decides who a client is, from its certificate and the fields of its request.
///
/// Fields that name a user count only from the front proxy; from all others they are ignored.
///
/// # Errors
/// The client cannot be identified: the reason, as text. The status is 401.
pub fn claim(
    certificate: &Certificate,
    fields: &[(&str, &[u8])],
    front_proxy: Option<&FrontProxy>,
) -> Result<Claim, String> {
    let not_proxy = match (certificate, front_proxy) {
        (Certificate::Verified(name), Some(proxy)) if proxy.allows(name) => {
            match proxy.user(fields) {
                Ok(Some(user)) => return Ok(Claim::User(user.authenticated())),
                Ok(None) => "the front proxy names no user".to_owned(),
                Err(wrong) => return Err(wrong),
            }
        }
        (Certificate::Verified(name), Some(_)) => format!(
            "the name {name:?} of the client's certificate is not among requestheader-allowed-names"
        ),
        (Certificate::Untrusted(why), Some(_)) => format!(
            "the client's certificate is not of the authority in requestheader-client-ca-file: {why}"
        ),
        (Certificate::Absent, _) => "the client has neither a certificate nor a token".to_owned(),
        (_, None) => {
            "Weir has not read ConfigMap kube-system/extension-apiserver-authentication, so it cannot check the \
             client's certificate"
                .to_owned()
        }
    };
    let mut credentials =
        fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    match (credentials.next(), credentials.next()) {
        (None, _) => Err(not_proxy),
        (Some(_), Some(_)) => Err("the request has several Authorization fields".to_owned()),
        (Some((_, value)), None) => token(value).map(Claim::Token),
    }
}

/// Returns the token in `Authorization: Bearer TOKEN`.
fn token(value: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(value).ok();
    let token = text.and_then(|text| {
        let (scheme, token) = text.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    match token {
        Some(token) if token.len() > TOKEN_MAX_BYTES => {
            Err(format!("the token has more than {TOKEN_MAX_BYTES} bytes"))
        }
        Some(token) if !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(token.to_owned())
        }
        _ => Err("Authorization is not a bearer token".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn proxy(allowed: &str) -> FrontProxy {
        let data = json!({
            "requestheader-client-ca-file": "PEM",
            "requestheader-allowed-names": allowed,
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        });
        FrontProxy::read(&json!({ "data": data })).unwrap()
    }

    /// Decides, and shows the result as one line.
    fn decide(
        certificate: &Certificate,
        fields: &[(&str, &str)],
        front_proxy: Option<&FrontProxy>,
    ) -> String {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        match claim(certificate, &fields, front_proxy) {
            Ok(Claim::User(User { name, uid: _, groups, extra })) => {
                format!("user {name} {groups:?} {extra:?}")
            }
            Ok(Claim::Token(token)) => format!("token {token}"),
            Err(why) => why,
        }
    }

    #[test]
    fn only_the_front_proxy_names_users() {
        let proxy = proxy("[\"front-proxy-client\"]");
        let verified = |name: &str| Certificate::Verified(name.to_owned());
        let user = ("x-remote-user", "alice");
        let token = ("authorization", "Bearer abc");
        let untrusted = Certificate::Untrusted("unknown issuer".to_owned());
        let right = verified("front-proxy-client");
        for (certificate, fields, front_proxy, expected) in [
            (&right, &[user][..], Some(&proxy), "user alice [\"system:authenticated\"] {}"),
            (
                &right,
                &[user, ("x-remote-group", "system:authenticated")],
                Some(&proxy),
                "user alice [\"system:authenticated\"] {}",
            ),
            (
                &right,
                &[
                    ("x-remote-user", "system:anonymous"),
                    ("x-remote-group", "system:unauthenticated"),
                ],
                Some(&proxy),
                "user system:anonymous [\"system:unauthenticated\"] {}",
            ),
            (
                &right,
                &[user, ("X-Remote-Group", "a"), ("x-remote-group", "b"), token],
                Some(&proxy),
                "user alice [\"a\", \"b\", \"system:authenticated\"] {}",
            ),
            (
                &right,
                &[user, ("x-remote-extra-Scopes%2fx", "a"), ("x-remote-extra-scopes%2Fx", "b")],
                Some(&proxy),
                "user alice [\"system:authenticated\"] {\"scopes/x\": [\"a\", \"b\"]}",
            ),
            (&right, &[], Some(&proxy), "the front proxy names no user"),
            (&right, &[("x-remote-user", "")], Some(&proxy), "the front proxy names no user"),
            (&right, &[token], Some(&proxy), "token abc"),
            (
                &verified("other"),
                &[user],
                Some(&proxy),
                "the name \"other\" of the client's certificate is not among requestheader-allowed-names",
            ),
            (&verified("other"), &[user, token], Some(&proxy), "token abc"),
            (
                &untrusted,
                &[user],
                Some(&proxy),
                "the client's certificate is not of the authority in requestheader-client-ca-file: unknown issuer",
            ),
            (&untrusted, &[user, token], Some(&proxy), "token abc"),
            (
                &Certificate::Absent,
                &[user, ("x-remote-group", "system:masters")],
                Some(&proxy),
                "the client has neither a certificate nor a token",
            ),
            (
                &right,
                &[user],
                None,
                "Weir has not read ConfigMap kube-system/extension-apiserver-authentication, so it cannot check \
                 the client's certificate",
            ),
            (&Certificate::Absent, &[token], None, "token abc"),
        ] {
            assert_eq!(decide(certificate, fields, front_proxy), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_list_of_names_that_is_empty_allows_all() {
        let user = &[("x-remote-user", "alice")][..];
        for allowed in ["[]", ""] {
            let decided =
                decide(&Certificate::Verified("any".to_owned()), user, Some(&proxy(allowed)));
            assert_eq!(decided, "user alice [\"system:authenticated\"] {}");
        }
    }

    #[test]
    fn tokens_are_checked() {
        let long = format!("Bearer {}", "a".repeat(8_193));
        for (value, expected) in [
            ("Bearer abc", "token abc"),
            ("bearer  abc ", "token abc"),
            ("Basic abc", "Authorization is not a bearer token"),
            ("Bearer", "Authorization is not a bearer token"),
            ("Bearer ", "Authorization is not a bearer token"),
            ("Bearer a b", "Authorization is not a bearer token"),
            ("", "Authorization is not a bearer token"),
            (&long, "the token has more than 8192 bytes"),
        ] {
            assert_eq!(decide(&Certificate::Absent, &[("Authorization", value)], None), expected);
        }
        let several = &[("authorization", "Bearer a"), ("authorization", "Bearer b")];
        let expected = "the request has several Authorization fields";
        assert_eq!(decide(&Certificate::Absent, several, None), expected);
    }
}
