//! What a server made of a client's frames, in terms in which two servers can be compared.

use std::collections::{BTreeMap, BTreeSet};

use http2::{Config, WebSocket};

/// The configuration of both servers.
pub const CONFIG: Config = Config {
    streams_max: 100,
    head_max_bytes: 16_384,
    window_bytes: 65_535,
    window_max_bytes: 65_535,
    connection_window_bytes: 1 << 20,
    websocket: WebSocket { key: || "AAAA".to_owned(), accept: |_| "BBBB".to_owned() },
};

/// Names and values, with escapes.
pub type Fields = Vec<(String, String)>;

/// A request as the engine would report it: with one Host and one Cookie, and without what concerns
/// the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    pub target: String,
    pub host: Option<String>,
    pub fields: Fields,
}

/// What a frame led to, by stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub heads: BTreeMap<u32, Head>,
    pub content: BTreeMap<u32, Vec<u8>>,
    pub trailers: BTreeMap<u32, Fields>,
    /// Requests that are complete.
    pub ended: BTreeSet<u32>,
    /// Streams that the client reset before their request was complete.
    pub reset: BTreeSet<u32>,
    /// Streams that the server reset.
    pub refused: BTreeSet<u32>,
    pub failed: bool,
    pub notes: Notes,
}

/// For judging a difference; equal to any other.
#[derive(Debug, Default)]
pub struct Notes {
    /// The rules that were broken.
    pub rules: Vec<&'static str>,
    /// Fields of requests and trailers as they arrived.
    pub raw: Fields,
    pub has_authority: bool,
    /// The HTTP/1.1 parser refuses the request that the engine passes on.
    pub is_refused_later: bool,
}

impl PartialEq for Notes {
    fn eq(&self, _: &Notes) -> bool {
        true
    }
}

impl Eq for Notes {}

impl Outcome {
    pub fn refuses(&self) -> bool {
        self.failed || !self.refused.is_empty()
    }
}

/// Sorts by name; values of one name keep their order.
pub fn sorted(mut fields: Fields) -> Fields {
    fields.sort_by(|one, other| one.0.cmp(&other.0));
    fields
}

/// Splits lines of HTTP/1.1.
pub fn lines(text: &[u8]) -> Fields {
    let mut fields = Fields::new();
    let mut rest = text;
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let line = &rest[..end];
        rest = &rest[end + 2..];
        if let Some(colon) = line.iter().position(|&byte| byte == b':') {
            let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
            fields.push((name, line[colon + 2..].escape_ascii().to_string()));
        }
    }
    fields
}

pub fn removed(fields: &mut Fields, name: &str) -> Option<String> {
    let at = fields.iter().position(|field| field.0 == name)?;
    Some(fields.remove(at).1)
}
