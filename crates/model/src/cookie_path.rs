//! The `Path` of a session's cookie, from the conditions of its route: a browser sends the cookie only with
//! requests for this path and those below it (RFC 6265 section 5.1.4).

use crate::{Condition, ConditionOn, PathMatch, RouteMatch, Test};

/// Returns the path for the cookies of a route: that of its condition, or the longest plain beginning of a regular
/// expression (GEP-1619, Cookie Attributes, Path); `/` if it matches all paths. Every path that
/// the route matches is this one or below it, apart from other spellings of the same path.
pub fn cookie_path(matches: &RouteMatch) -> String {
    let (PathMatch::Exact(path) | PathMatch::Prefix(path)) = &matches.path;
    let beginnings = matches.conditions.iter().filter_map(plain_beginning);
    let longest = beginnings.chain([path.clone()]).max_by_key(String::len);
    let longest = longest.unwrap_or_default();
    // An attribute ends with a semicolon (RFC 6265 section 4.1.1).
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b';';
    let fit = match longest.bytes().position(|byte| !is_fit(byte)) {
        Some(unfit) => parent(&longest[..unfit]),
        None => &longest,
    };
    if fit.is_empty() { "/".to_owned() } else { fit.to_owned() }
}

/// Returns the whole elements with which all paths begin that a condition matches; `None`: it is on something else.
fn plain_beginning(condition: &Condition) -> Option<String> {
    let Condition { on: ConditionOn::Path, test: Test::Pattern(pattern), negated: false } =
        condition
    else {
        return None;
    };
    let text = pattern.as_str().strip_prefix('^')?;
    if text.contains('|') {
        return None;
    }
    let text = match text.strip_prefix("(?:") {
        // What follows the group may repeat it zero times.
        Some(group) if matches!(from_end_of_group(group), Some(")" | ")$")) => group,
        Some(_) => return None,
        None => text,
    };
    let mut plain = String::new();
    let mut rest = text.chars();
    loop {
        let before = rest.clone();
        match rest.next() {
            Some('\\') => match rest.next() {
                // The others, and these two, are classes and assertions.
                Some(next) if next.is_ascii_punctuation() && !"<>".contains(next) => {
                    plain.push(next);
                }
                _ => {
                    rest = before;
                    break;
                }
            },
            Some(next) if next.is_ascii_alphanumeric() || "/-_~%,:@!&=';".contains(next) => {
                plain.push(next);
            }
            _ => {
                rest = before;
                break;
            }
        }
    }
    let rest = rest.as_str();
    if matches!(rest, "$" | ")$") {
        return Some(plain);
    }
    if rest.starts_with(['*', '?', '{']) {
        // It repeats the last character, perhaps zero times.
        plain.pop();
    }
    plain.truncate(parent(&plain).len());
    Some(plain)
}

/// Returns the rest of an expression from the parenthesis on that closes the group in which it begins.
fn from_end_of_group(text: &str) -> Option<&str> {
    // Groups and classes that are open. A parenthesis in a class is plain.
    let (mut groups, mut classes) = (0_u32, 0_u32);
    let mut rest = text.chars();
    loop {
        let before = rest.as_str();
        match rest.next()? {
            '\\' => _ = rest.next()?,
            '[' => {
                classes += 1;
                // A bracket at the beginning is plain.
                let inner = rest.as_str();
                let inner = inner.strip_prefix('^').unwrap_or(inner);
                rest = inner.strip_prefix(']').unwrap_or(inner).chars();
            }
            ']' => classes = classes.saturating_sub(1),
            '(' if classes == 0 => groups += 1,
            ')' if classes == 0 && groups == 0 => return Some(before),
            ')' if classes == 0 => groups -= 1,
            _ => {}
        }
    }
}

/// Returns a path without what comes after its last slash, and without that slash.
fn parent(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_conditions() {
        let exact = |path: &str| PathMatch::Exact(path.to_owned());
        let prefix = |path: &str| PathMatch::Prefix(path.to_owned());
        for (path, expected) in [
            (prefix(""), "/"),
            (prefix("/a"), "/a"),
            (exact("/a/b"), "/a/b"),
            (exact("/"), "/"),
            (prefix("/a/b;v=1"), "/a"),
            (prefix("/;a"), "/"),
            (prefix("/a/%C3%A4"), "/a/%C3%A4"),
        ] {
            let matches = RouteMatch { path, ..RouteMatch::any() };
            assert_eq!(cookie_path(&matches), expected, "{:?}", matches.path);
        }
    }

    #[test]
    fn plain_beginnings_of_expressions() {
        for (text, expected) in [
            ("^/p1/p2/.*/p3$", "/p1/p2"),
            ("^(?:/p1/p2/[^/]+/p3)$", "/p1/p2"),
            ("^/api/v[0-9]+/x$", "/api"),
            ("^/shop(/.*)?$", "/"),
            ("^/a/b$", "/a/b"),
            ("^(?:/a/b)$", "/a/b"),
            ("^/a/b", "/a"),
            ("^/a/bc*", "/a"),
            ("^/a/*b", "/"),
            (r"^/a\.b/c.*", "/a.b"),
            (r"^/a\d/b$", "/"),
            (r"^/a/b\d$", "/a"),
            (r"^(?:/a/b\d)$", "/a"),
            (r"^/api/v\d$", "/api"),
            (r"^/a/b\>$", "/a"),
            ("^(?:/a/b)?/c$", "/"),
            ("^(?:/a/b)?/(c)$", "/"),
            ("^(?:/a/b)?", "/"),
            ("^(?:/a/b)*$", "/"),
            ("^(?:/a/b){0,1}$", "/"),
            ("^(?:/a/(b))?/(c)$", "/"),
            ("^(?:/a/([(]b))?/(c[)])$", "/"),
            ("^(?:/a/([^])]+)/c)$", "/a"),
            (r"^(?:/a/\)b/.*)$", "/a/)b"),
            ("^(?:/a/b)", "/a"),
            ("^/a/x|/b/x", "/"),
            ("/a/b$", "/"),
            ("(?i)^/a/b$", "/"),
            ("^", "/"),
        ] {
            let test = Test::Pattern(crate::Pattern::parse(text).unwrap());
            let condition = Condition { on: ConditionOn::Path, test, negated: false };
            let matches = RouteMatch { conditions: vec![condition.clone()], ..RouteMatch::any() };
            assert_eq!(cookie_path(&matches), expected, "{text}");
            let negated = Condition { negated: true, ..condition };
            let matches = RouteMatch { conditions: vec![negated], ..RouteMatch::any() };
            assert_eq!(cookie_path(&matches), "/", "not {text}");
        }
    }
}
