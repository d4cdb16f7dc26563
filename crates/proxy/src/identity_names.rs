//! Keeps clients from writing the fields by which Weir tells servers who sent a request.

use std::borrow::Cow;
use std::sync::Arc;

use model::Snapshot;
use wire::http1::RequestHead;

/// The names of all fields by which Weir tells servers who sent a request. `None`: there are none.
#[derive(Clone, Default)]
pub(crate) struct IdentityNames(Option<Arc<[Box<str>]>>);

impl IdentityNames {
    /// Returns the names that the authentications of a snapshot use.
    pub(crate) fn of(snapshot: &Snapshot) -> IdentityNames {
        let fields = snapshot.authentications.iter().flat_map(|one| &one.identity_fields);
        let mut names: Vec<Box<str>> = fields.map(|field| field.name.as_str().into()).collect();
        names.sort_unstable();
        names.dedup();
        IdentityNames((!names.is_empty()).then(|| names.into()))
    }

    /// Removes the fields of these names from a request, before anything looks at it.
    #[inline]
    pub(crate) fn remove_from(&self, request: &mut RequestHead) {
        if let Some(names) = &self.0 {
            request.remove_fields(|name| is_among(names, name));
        }
    }

    /// Returns the trailer lines without those of these names: a server may merge trailers into the
    /// fields (RFC 9110 section 6.5.1).
    pub(crate) fn without<'a>(&self, trailers: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(names) = self.0.as_deref().filter(|_| !trailers.is_empty()) else {
            return Cow::Borrowed(trailers);
        };
        let lines = trailers.split_inclusive(|&byte| byte == b'\n');
        let kept = lines.filter(|line| {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            !is_among(names, name)
        });
        Cow::Owned(kept.flatten().copied().collect())
    }
}

/// Returns whether a field has one of these names, also to a server that reads some character as `-`.
/// Gateways to CGI and its successors write `HTTP_X_USER`, and some of them for `X.User`, too.
fn is_among(names: &[Box<str>], name: &[u8]) -> bool {
    let same = |(a, b): (u8, &u8)| {
        a.eq_ignore_ascii_case(b) || !a.is_ascii_alphanumeric() && !b.is_ascii_alphanumeric()
    };
    names.iter().any(|one| one.len() == name.len() && one.bytes().zip(name).all(same))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_of_these_names_are_left_out_however_they_are_written() {
        let names = IdentityNames(Some(["x-user".into(), "x-groups".into()].into()));
        let trailers = b"X-User: root\r\nGrpc-Status: 0\r\nx_groups: a\r\nX.User: a\r\nX!GROUPS: a\r\nX-User-Agent: x\r\n";
        assert_eq!(*names.without(trailers), *b"Grpc-Status: 0\r\nX-User-Agent: x\r\n");
        assert_eq!(*names.without(b""), *b"");
        assert_eq!(*IdentityNames::default().without(trailers), *trailers);
    }
}
