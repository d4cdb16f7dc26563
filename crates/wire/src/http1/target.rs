//! Parses a request target in its four forms (RFC 9112 section 3.2). `request` handles Host, which
//! replaces a missing authority.

use super::authority;
use super::error::RequestError;
use super::head::Span;

/// The parts of a request target, as positions in the head's text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Target {
    pub(super) path: Path,
    /// What follows the first `?`.
    pub(super) query: Option<Span>,
    /// Host and port; empty unless the target is absolute.
    pub(super) authority: Span,
    /// The authority without its port.
    pub(super) host: Span,
}

/// Where a request's path is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Path {
    /// A part of the target.
    At(Span),
    /// `*`, sent as such or implied by OPTIONS with a bare absolute URI.
    #[default]
    Asterisk,
    /// `/`, implied by an absolute URI without a path.
    Root,
}

impl Target {
    /// Parses `target`, which directly follows `method` in the head's text. Spaces and control
    /// characters have already been refused.
    #[inline]
    pub(super) fn parse(method: &str, target: &str) -> Result<Target, RequestError> {
        if !target.is_ascii() || memchr::memchr(b'#', target.as_bytes()).is_some() {
            return Err(RequestError::BadTarget);
        }
        let mut parts = Target::default();
        let base = method.len();
        if target.starts_with('/') {
            parts.set_path(base, target);
            return Ok(parts);
        }
        if target == "*" {
            return match method {
                "OPTIONS" => Ok(parts),
                _ => Err(RequestError::AsteriskWithoutOptions),
            };
        }
        let (scheme, rest) = target.split_once("://").ok_or(RequestError::BadTargetForm)?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(RequestError::BadTargetForm);
        }
        let authority_len = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path_and_query) = rest.split_at(authority_len);
        let host_len =
            authority::host_len(authority.as_bytes()).ok_or(RequestError::BadTargetAuthority)?;
        let at = base + target.len() - rest.len();
        parts.authority = Span::new(at, authority_len);
        parts.host = Span::new(at, host_len);
        // With an empty path, OPTIONS means the server as a whole (RFC 9112 section 3.2.4).
        if !(path_and_query.is_empty() && method == "OPTIONS") {
            parts.set_path(at + authority_len, path_and_query);
        }
        Ok(parts)
    }

    /// Splits `path[?query]` at position `at` in the text.
    #[inline]
    fn set_path(&mut self, at: usize, path_and_query: &str) {
        let path_len = match memchr::memchr(b'?', path_and_query.as_bytes()) {
            None => path_and_query.len(),
            Some(mark) => {
                self.query = Some(Span::new(at + mark + 1, path_and_query.len() - mark - 1));
                mark
            }
        };
        self.path = if path_len == 0 { Path::Root } else { Path::At(Span::new(at, path_len)) };
    }
}
