//! This instance's ID in `CDN-Loop` (RFC 8586): written to every forwarded request, so that Weir
//! recognises a request that loops back.

/// Maximum length of an ID taken over from another process.
const ID_MAX_BYTES: usize = 64;

/// An instance's ID. It stays the same over reloads and upgrades, and is unique to the instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    id: Box<str>,
    /// The whole field line.
    line: Box<[u8]>,
}

impl Identity {
    /// Returns a new ID of 64 random bits.
    pub fn new(random: u64) -> Identity {
        Identity::of(format!("weir-{random:016x}"))
    }

    /// Parses the ID that [`Identity::id`] returned in another process; `None` if it is not valid.
    pub fn from_id(id: &str) -> Option<Identity> {
        // A subset of RFC 8586's pseudonym, which is a token.
        let is_token = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (is_token && !id.is_empty() && id.len() <= ID_MAX_BYTES)
            .then(|| Identity::of(id.to_owned()))
    }

    fn of(id: String) -> Identity {
        let line = format!("CDN-Loop: {id}\r\n").into_bytes().into();
        Identity { id: id.into(), line }
    }

    /// Returns the ID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the field line that marks a forwarded request.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_survives_being_handed_over_and_nothing_else_is_one() {
        let identity = Identity::new(7);
        assert_eq!(identity.line(), b"CDN-Loop: weir-0000000000000007\r\n");
        assert_eq!(Identity::from_id(identity.id()), Some(identity));
        for bad in ["", "a b", "a\r\nX: y", "a,b", "a;b", &"a".repeat(65)] {
            assert_eq!(Identity::from_id(bad), None, "{bad:?}");
        }
    }
}
