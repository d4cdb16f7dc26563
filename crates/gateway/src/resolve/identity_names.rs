//! The names of fields that tell servers who sent a request.
//!
//! Weir removes fields of these names from all requests that clients send, to all backends. So users of a namespace may
//! choose among names only that no client needs: otherwise one of them could remove the fields of others.

/// The names, as a part of a sentence.
pub const KNOWN: &str = "names that begin with X-Auth-Request-, X-Authentik-, X-WebAuth- or Remote-, or \
    X-Forwarded-User, -Email, -Groups, -Preferred-Username";

/// Returns whether users of a namespace may choose a name, which is in lower case.
pub fn is_known(name: &str) -> bool {
    let prefixes = ["x-auth-request-", "x-authentik-", "x-webauth-", "remote-"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
        || matches!(
            name,
            "x-forwarded-user"
                | "x-forwarded-email"
                | "x-forwarded-groups"
                | "x-forwarded-preferred-username"
        )
}
