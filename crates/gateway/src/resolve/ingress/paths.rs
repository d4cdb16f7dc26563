//! Paths of Ingresses, and what `rewrite-target` makes of them.

use model::Pattern;

use super::annotations::shown;
use crate::ir::filter::PathChange;
use crate::ir::request::PathCondition;
use crate::resolve::route::{matches, syntax};

/// The longest path that is read.
const PATH_MAX_BYTES: usize = 4096;

/// How paths are read.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Whether paths may be regular expressions.
    pub is_regex: bool,
    /// The value of `rewrite-target`.
    pub rewrite: Option<&'a str>,
}

/// A path, and what it becomes.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The requests that it matches.
    pub condition: PathCondition,
    /// The length of a regular expression: longer ones are tried first.
    pub length: usize,
    /// What the path of a request becomes, or why that is not supported.
    pub change: Option<Result<PathChange, String>>,
}

impl Path {
    /// Returns the path that all requests match.
    pub fn all() -> Path {
        let condition = PathCondition::Prefix("/".to_owned());
        Path { condition, length: 0, change: None }
    }
}

/// Returns whether reading a path compiles an expression.
pub fn is_expression(stated: &str, kind: &str, reading: Reading<'_>) -> bool {
    reading.is_regex && kind != "Exact" && stated.contains(is_special)
}

/// Reads a path. `kind` is its `pathType`.
///
/// # Errors
///
/// Why no request can have it, as sentences.
pub fn read(stated: &str, kind: &str, reading: Reading<'_>) -> Result<Path, String> {
    let stated = if stated.is_empty() { "/" } else { stated };
    if stated.len() > PATH_MAX_BYTES {
        return Err(format!("A path has more than {PATH_MAX_BYTES} bytes."));
    }
    if is_expression(stated, kind, reading) {
        return expression(stated, reading.rewrite);
    }
    let path = matches::normal_path(stated).map_err(|problem| {
        let hint = "For a regular expression, use the annotation use-regex.";
        if stated.contains(is_special) {
            format!("{} {hint}", problem.message)
        } else {
            problem.message
        }
    })?;
    let condition = match kind {
        "Exact" => PathCondition::Exact(path),
        "Prefix" | "ImplementationSpecific" => {
            let short = path.strip_suffix('/').filter(|short| !short.is_empty());
            PathCondition::Prefix(short.unwrap_or(&path).to_owned())
        }
        other => {
            return Err(format!(
                "The pathType {} is not supported. Use Exact, Prefix or ImplementationSpecific.",
                shown(other)
            ));
        }
    };
    let change = reading.rewrite.map(|target| {
        if target.contains('$') {
            return Err(format!(
                "rewrite-target {} refers to a group, and the path {} has none.",
                shown(target),
                shown(stated)
            ));
        }
        whole(target)
    });
    Ok(Path { condition, length: 0, change })
}

/// Returns the plain path that an expression begins with, if it is not `/`.
pub fn plain_prefix(stated: &str) -> Option<PathCondition> {
    let (plain, rest) = stated.split_at(stated.find(is_special)?);
    // Another character may continue the last element.
    let is_whole = rest.starts_with(['(', '$']);
    let plain = if is_whole { plain } else { &plain[..plain.rfind('/')?] };
    let path = matches::normal_path(plain.trim_end_matches('/')).ok()?;
    Some(PathCondition::Prefix(path))
}

/// Characters with a meaning in expressions; a dot alone does not make one.
fn is_special(letter: char) -> bool {
    "()[]{}|*+?^$\\".contains(letter)
}

/// As nginx does, from the beginning of the path and ignoring case. The end is open.
fn expression(stated: &str, rewrite: Option<&str>) -> Result<Path, String> {
    let compiled = Pattern::parse(stated)
        .and_then(|_| Pattern::parse(&format!("(?i)^(?:{})", stated.trim_start_matches('^'))));
    let pattern = compiled.map_err(|why| {
        format!("The regular expression {} for a path is invalid: {why}.", shown(stated))
    })?;
    let length = stated.len();
    let condition = PathCondition::Regex(pattern);
    let Some(target) = rewrite else { return Ok(Path { condition, length, change: None }) };
    if !target.contains('$') {
        return Ok(Path { condition, length, change: Some(whole(target)) });
    }
    if let Some((prefix, replacement)) = as_prefix(stated, target) {
        let condition = PathCondition::Prefix(prefix);
        return Ok(Path {
            condition,
            length: 0,
            change: Some(Ok(PathChange::Prefix(replacement))),
        });
    }
    let why = format!(
        "rewrite-target {} with the path {} is not supported. Weir replaces a prefix, as for the \
         path /a(/|$)(.*) with the target /b/$2, or the whole path.",
        shown(target),
        shown(stated)
    );
    Ok(Path { condition, length, change: Some(Err(why)) })
}

fn whole(target: &str) -> Result<PathChange, String> {
    let path = syntax::path("rewrite-target", target).map_err(|problem| problem.message)?;
    Ok(PathChange::Full(path))
}

/// Returns the prefix that an expression matches and its replacement, if expression and target only replace a prefix:
/// `/a(/|$)(.*)` and `/b/$2`.
fn as_prefix(stated: &str, target: &str) -> Option<(String, String)> {
    /// How a prefix ends, and how the target then ends.
    const ENDS: [(&str, &str); 6] = [
        ("(/|$)(.*)", "/$2"),
        ("(/|$)(.*)", "$1$2"),
        ("/(.*)", "/$1"),
        ("/?(.*)", "/$1"),
        ("(/.*)", "$1"),
        ("(/.*)?", "$1"),
    ];
    let stated = stated.trim_start_matches('^').trim_end_matches('$');
    ENDS.iter().find_map(|(end, target_end)| {
        let prefix = stated.strip_suffix(end)?;
        let replacement = target.strip_suffix(target_end)?;
        let is_plain = |text: &str| !text.contains(is_special) && !text.ends_with('/');
        if !is_plain(prefix) || !is_plain(replacement) {
            return None;
        }
        let path = |text: &str| match text {
            "" => Some("/".to_owned()),
            text => matches::normal_path(text).ok(),
        };
        let prefix = path(prefix)?;
        let replacement = path(replacement)?;
        Some((prefix, if replacement == "/" { String::new() } else { replacement }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_path(stated: &str, kind: &str, is_regex: bool, rewrite: Option<&str>) -> String {
        let Ok(path) = read(stated, kind, Reading { is_regex, rewrite }) else {
            return "error".to_owned();
        };
        let condition = match path.condition {
            PathCondition::Exact(path) => format!("= {path}"),
            PathCondition::Prefix(path) => format!("^ {path}"),
            PathCondition::Regex(pattern) => format!("~ {}", pattern.as_str()),
        };
        match path.change {
            None => condition,
            Some(Err(_)) => format!("{condition} unsupported"),
            Some(Ok(PathChange::Full(path))) => format!("{condition} -> {path} (whole)"),
            Some(Ok(PathChange::Prefix(path))) => format!("{condition} -> {path:?}"),
        }
    }

    #[test]
    fn paths_are_read() {
        for (stated, kind, expected) in [
            ("/a/", "Prefix", "^ /a"),
            ("/a/", "Exact", "= /a/"),
            ("/a", "ImplementationSpecific", "^ /a"),
            ("", "ImplementationSpecific", "^ /"),
            ("/", "Prefix", "^ /"),
            ("a", "Prefix", "error"),
            ("/a//b", "Prefix", "error"),
            ("/a\r\nb", "Exact", "error"),
            ("/a", "Other", "error"),
            ("/a(/|$)(.*)", "Prefix", "error"),
        ] {
            assert_eq!(shown_path(stated, kind, false, None), expected, "{stated} {kind}");
        }
        assert_eq!(shown_path(&format!("/{}", "a".repeat(5000)), "Exact", false, None), "error");
    }

    #[test]
    fn expressions_are_anchored_at_the_beginning_and_ignore_case() {
        for (stated, kind, expected) in [
            ("/v[0-9]+/x", "ImplementationSpecific", "~ (?i)^(?:/v[0-9]+/x)"),
            ("^/a|/b$", "Prefix", "~ (?i)^(?:/a|/b$)"),
            ("/v1.2", "Prefix", "^ /v1.2"),
            ("/a*", "Exact", "= /a*"),
            ("/a(", "Prefix", "error"),
            ("/a)|(/b", "Prefix", "error"),
            ("/(?!x)", "Prefix", "error"),
            ("/(a{1000}){1000}", "Prefix", "error"),
        ] {
            assert_eq!(shown_path(stated, kind, true, None), expected, "{stated} {kind}");
        }
    }

    #[test]
    fn expressions_begin_with_a_plain_path() {
        for (stated, expected) in [
            ("/admin(?!/public)", Some("/admin")),
            ("/admin/v[0-9", Some("/admin")),
            ("/admin/(", Some("/admin")),
            ("/adm[i]n", None),
            ("/(?!x)", None),
            ("/plain", None),
            ("admin(", None),
        ] {
            let expected = expected.map(|path| PathCondition::Prefix(path.to_owned()));
            assert_eq!(plain_prefix(stated), expected, "{stated}");
        }
    }

    #[test]
    fn targets_replace_a_prefix_or_the_whole_path() {
        for (stated, target, expected) in [
            ("/a(/|$)(.*)", "/$2", "^ /a -> \"\""),
            ("/a(/|$)(.*)", "/b/$2", "^ /a -> \"/b\""),
            ("/a/(.*)", "/$1", "^ /a -> \"\""),
            ("/a/?(.*)", "/$1", "^ /a -> \"\""),
            ("/a(/.*)?$", "/b$1", "^ /a -> \"/b\""),
            ("/(.*)", "/x/$1", "^ / -> \"/x\""),
            ("/a", "/b", "^ /a -> /b (whole)"),
            ("/a/.*", "/b", "~ (?i)^(?:/a/.*) -> /b (whole)"),
            ("/a(/|$)(.*)", "/b/$1", "~ (?i)^(?:/a(/|$)(.*)) unsupported"),
            ("/a/([0-9]+)/(.*)", "/$2/$1", "~ (?i)^(?:/a/([0-9]+)/(.*)) unsupported"),
            ("/a", "/b/$1", "^ /a unsupported"),
            ("/a", "/b?c=d", "^ /a unsupported"),
            ("/a", "/b\r\nx", "^ /a unsupported"),
            ("/a", "https://b", "^ /a unsupported"),
        ] {
            let found = shown_path(stated, "ImplementationSpecific", true, Some(target));
            assert_eq!(found, expected, "{stated} {target}");
        }
    }
}
