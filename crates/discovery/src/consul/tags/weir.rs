//! Weir's own tags: `weir.route=HOST/PATH`, for instance `weir.route=web.example/api strip`.
//!
//! The path is a prefix on segment boundaries, as `path` of `[[route]]`; without one, every path. Options follow
//! after spaces, in any order:
//!
//! | option | effect |
//! |---|---|
//! | `strip` | removes the path from the request before it is forwarded |
//! | `exact` | only this path, as `path_exact` of `[[route]]` |

use config::quote;

use super::target::{self, Target};

/// How a tag of this format begins.
pub(super) const PREFIX: &str = "weir.route=";

/// Reads what follows [`PREFIX`].
///
/// # Errors
/// There is no host, an option is unknown, or the host or the path is not valid.
pub(super) fn read(text: &str) -> Result<Target, String> {
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let place = words.next().unwrap_or_default();
    let (mut strips, mut is_exact) = (false, false);
    for option in words {
        match option {
            "strip" => strips = true,
            "exact" => is_exact = true,
            other => return Err(format!("unknown option {}", quote(other))),
        }
    }
    let at = place.find('/').unwrap_or(place.len());
    let (host, path) = place.split_at(at);
    let path_text = if path.is_empty() { "/" } else { path };
    let host = target::host(host)?;
    let path = target::path(path_text, is_exact)?;
    let strip = if strips { target::strip(path_text, &path)? } else { None };
    Ok(Target { host, path, strip, listeners: Vec::new() })
}
