//! Chooses among the places where a source may state a value.

use config::{ServerTexts, listed_server};

/// A value of a server besides its address.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    Zone,
    Weight,
    Backup,
    InFlightMax,
    Version,
}

impl Key {
    /// Returns how a tag that states the value begins.
    fn tag(self) -> &'static str {
        match self {
            Key::Zone => "weir.zone=",
            Key::Weight => "weir.weight=",
            Key::Backup => "weir.backup=",
            Key::InFlightMax => "weir.in_flight_max=",
            Key::Version => "weir.version=",
        }
    }
}

/// Returns the value that the first tag for this key states.
pub(crate) fn tagged(tags: &[String], key: Key) -> Option<&str> {
    tags.iter().find_map(|tag| tag.strip_prefix(key.tag()))
}

/// A text that may be the value of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) text: &'a str,
    /// Its name in the source begins with `weir`, so it can only be meant for Weir.
    pub(crate) is_own: bool,
}

impl<'a> Candidate<'a> {
    /// A text under a name that is Weir's.
    pub(crate) fn own(text: &'a str) -> Candidate<'a> {
        Candidate { text, is_own: true }
    }

    /// A text under a name that other programs use, too.
    pub(crate) fn generic(text: &'a str) -> Candidate<'a> {
        Candidate { text, is_own: false }
    }
}

/// Returns the first candidate that counts. One that is Weir's own always counts, so that a value that is not
/// valid refuses the server; others are skipped if they are not valid.
pub(crate) fn chosen<'a>(
    key: Key,
    candidates: impl IntoIterator<Item = Candidate<'a>>,
) -> Option<&'a str> {
    let mut candidates = candidates.into_iter();
    candidates.find(|one| one.is_own || is_valid(key, one.text)).map(|one| one.text)
}

/// Returns whether `text` is valid for `key`, by the rules for configured servers.
fn is_valid(key: Key, text: &str) -> bool {
    let mut texts = ServerTexts {
        // Any valid address will do.
        address: "192.0.2.1:80",
        zone: None,
        weight: None,
        backup: None,
        in_flight_max: None,
        version: None,
    };
    let slot = match key {
        Key::Zone => &mut texts.zone,
        Key::Weight => &mut texts.weight,
        Key::Backup => &mut texts.backup,
        Key::InFlightMax => &mut texts.in_flight_max,
        Key::Version => &mut texts.version,
    };
    *slot = Some(text);
    listed_server(&texts).is_ok()
}
