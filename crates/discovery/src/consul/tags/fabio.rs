//! Fabio's tags: `urlprefix-HOST/PATH`, with options after spaces (<https://fabiolb.net/quickstart/>,
//! <https://fabiolb.net/cfg/>).
//!
//! | option | effect |
//! |---|---|
//! | `strip=/PREFIX` | removes the prefix before the request is forwarded |
//! | `proto=http` | none |
//!
//! Tags with another option, without a host, with a port, or with a pattern or variable in the path are refused.
//!
//! Fabio compares a path with a request as plain text: `/foo` matches `/foobar`, too. Here it is a prefix on segment
//! boundaries, as `path` of `[[route]]`: `/foo` matches `/foo` and `/foo/bar`. A trailing slash does not count:
//! `/foo/` also matches `/foo`. The prefix of `strip` must be the path or end before one of its slashes.

use config::quote;

use super::target::{self, Target};

/// How a tag of this format begins.
pub(super) const PREFIX: &str = "urlprefix-";

/// What a path of a pattern has.
const OF_PATTERNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Reads what follows [`PREFIX`].
///
/// # Errors
/// There is no host or no slash, an option is not supported, or the host, the path or the prefix that is removed is
/// not valid.
pub(super) fn read(text: &str) -> Result<Target, String> {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let place = words.next().unwrap_or_default();
    let Some(at) = place.find('/') else {
        return Err(match place.strip_prefix(':') {
            Some(port) => format!("no host, only the port {}", quote(port)),
            None => "no slash after the host".to_owned(),
        });
    };
    let (host, path_text) = place.split_at(at);
    let mut prefix = None;
    for option in words {
        match option.split_once('=').unwrap_or((option, "")) {
            ("strip", _) if prefix.is_some() => return Err("more than one `strip`".to_owned()),
            ("strip", text) => prefix = Some(text),
            ("proto", "http") => {}
            ("proto", _) => return Err(format!("{} is not supported", quote(option))),
            (name, _) => return Err(format!("option {} is not supported", quote(name))),
        }
    }
    if let Some(found) = path_text.chars().find(|found| OF_PATTERNS.contains(found)) {
        return Err(format!("path {}: `{found}` makes it a pattern", quote(path_text)));
    }
    if path_text.contains('$') {
        return Err(format!("path {}: variables are not supported", quote(path_text)));
    }
    let host = target::host(host)?;
    let path = target::path(path_text, false)?;
    let strip = prefix.map(|prefix| target::strip(prefix, &path)).transpose()?.flatten();
    Ok(Target { host, path, strip, listeners: Vec::new() })
}
