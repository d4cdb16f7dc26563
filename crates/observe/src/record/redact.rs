//! Removes the values of query parameters, before they are logged, and bounds the length of what is
//! logged of a header.

use model::RedactQuery;

use crate::truncate::{TRUNCATED, cut};

/// What replaces a value.
const REDACTED: &[u8] = b"[redacted]";

/// The longest part of a header's value that is logged, as sent.
pub(super) const HEADER_MAX_BYTES: usize = 1024;

/// Appends `text`, a URL or anything that may contain one, with parameters redacted: those behind
/// the first `?`, and those of a fragment, where OAuth puts tokens.
pub(super) fn push_url(text: &[u8], redact: &RedactQuery, out: &mut Vec<u8>) {
    let start = match redact {
        RedactQuery::Nothing => None,
        _ => text.iter().position(|b| matches!(b, b'?' | b'#')),
    };
    match start {
        None => out.extend_from_slice(text),
        Some(at) => {
            out.extend_from_slice(&text[..=at]);
            push_query(&text[at + 1..], redact, out);
        }
    }
}

/// Appends a query with parameters redacted. Between parameters stands `&`, and in old forms `;`.
pub(super) fn push_query(query: &[u8], redact: &RedactQuery, out: &mut Vec<u8>) {
    if *redact == RedactQuery::Nothing {
        out.extend_from_slice(query);
        return;
    }
    let is_end = |b: &u8| matches!(b, b'&' | b';' | b'?' | b'#');
    let mut decoded = [0; RedactQuery::NAME_MAX_BYTES + 1];
    for part in query.split_inclusive(is_end) {
        let (pair, end) = match part.split_last() {
            Some((last, pair)) if is_end(last) => (pair, &part[pair.len()..]),
            _ => (part, &part[part.len()..]),
        };
        let equals = pair.iter().position(|b| *b == b'=');
        match (redact, equals) {
            (RedactQuery::Names(names), Some(at))
                if !is_any(decode(&pair[..at], &mut decoded), names) =>
            {
                out.extend_from_slice(pair);
            }
            (RedactQuery::Names(_) | RedactQuery::Everything, Some(at)) => {
                out.extend_from_slice(&pair[..=at]);
                out.extend_from_slice(REDACTED);
            }
            // What has no name is a value.
            (RedactQuery::Everything, None) if !pair.is_empty() => {
                out.extend_from_slice(REDACTED);
            }
            (_, None) | (RedactQuery::Nothing, _) => out.extend_from_slice(pair),
        }
        out.extend_from_slice(end);
    }
}

/// Percent-decodes a parameter's name into `decoded`, in lower case, as far as it has room for it.
fn decode<'a>(name: &[u8], decoded: &'a mut [u8]) -> &'a [u8] {
    let mut rest = name;
    let mut length = 0;
    for place in &mut *decoded {
        let Some((&first, behind)) = rest.split_first() else { break };
        let digit = |at: usize| char::from(*behind.get(at)?).to_digit(16);
        (*place, rest) = match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, &behind[2..]),
            (b'+', _, _) => (b' ', behind),
            _ => (first, behind),
        };
        length += 1;
    }
    let decoded = &mut decoded[..length];
    decoded.make_ascii_lowercase();
    decoded
}

/// Returns whether a decoded name is one of `names`, which are sorted, so that a client cannot make
/// this expensive. `token[]` and `token[x]`, which some servers read as lists, are `token`.
fn is_any(name: &[u8], names: &[String]) -> bool {
    let has = |name: &[u8]| names.binary_search_by(|known| known.as_bytes().cmp(name)).is_ok();
    has(name) || name.iter().position(|b| *b == b'[').is_some_and(|at| has(&name[..at]))
}

/// Cuts a header's value, at a character's border if it is UTF-8, and says so.
pub(super) fn bound(value: &mut Vec<u8>) {
    if value.len() <= HEADER_MAX_BYTES {
        return;
    }
    value.truncate(cut(value, HEADER_MAX_BYTES).len());
    value.extend_from_slice(TRUNCATED);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str, redact: &RedactQuery) -> String {
        let mut out = Vec::new();
        push_url(text.as_bytes(), redact, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn names_are_compared_as_servers_read_them() {
        let redact = RedactQuery::Names(vec!["e mail".to_owned(), "token".to_owned()]);
        for (text, expected) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?token", "/a?token"),
            ("/a?token=", "/a?token=[redacted]"),
            ("/a?token=s=t", "/a?token=[redacted]"),
            ("/a?x=1&token=s&y=2", "/a?x=1&token=[redacted]&y=2"),
            ("/a?x=1;TOKEN=s", "/a?x=1;TOKEN=[redacted]"),
            ("/a?%74o%6Ben=s", "/a?%74o%6Ben=[redacted]"),
            ("/a?token%5B%5D=s&token[a]=t", "/a?token%5B%5D=[redacted]&token[a]=[redacted]"),
            ("/a?e+mail=s&e%20mail=t", "/a?e+mail=[redacted]&e%20mail=[redacted]"),
            ("/a?tokens=1&toke=2&%=3&%7=4&=5&&", "/a?tokens=1&toke=2&%=3&%7=4&=5&&"),
            // Not decoded twice.
            ("/a?%2574oken=s", "/a?%2574oken=s"),
            ("/token=s?a", "/token=s?a"),
            ("https://a.example/cb#token=s", "https://a.example/cb#token=[redacted]"),
            ("/a?x=1&amp;token=s", "/a?x=1&amp;token=[redacted]"),
            ("/a?b=1?token=s", "/a?b=1?token=[redacted]"),
        ] {
            assert_eq!(url(text, &redact), expected);
            assert_eq!(url(text, &RedactQuery::Nothing), text);
        }
    }

    #[test]
    fn long_names_are_compared_as_a_whole() {
        let long = "n".repeat(RedactQuery::NAME_MAX_BYTES);
        let redact = RedactQuery::Names(vec![long.clone()]);
        assert_eq!(url(&format!("/?{long}=s"), &redact), format!("/?{long}=[redacted]"));
        assert_eq!(
            url(&format!("/?{long}[{long}]=s"), &redact),
            format!("/?{long}[{long}]=[redacted]")
        );
        assert_eq!(url(&format!("/?{long}n=s"), &redact), format!("/?{long}n=s"));
    }

    #[test]
    fn everything_leaves_the_names() {
        let redacted = url("/a?x=1&&secret&y=", &RedactQuery::Everything);
        assert_eq!(redacted, "/a?x=[redacted]&&[redacted]&y=[redacted]");
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        for (value, kept) in
            [("x".repeat(1024), 1024), ("x".repeat(1025), 1024), ("é".repeat(800), 1024)]
        {
            let mut bytes = value.into_bytes();
            bound(&mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(text.trim_end_matches("[truncated]").len(), kept);
        }
        let mut bytes = format!("x{}", "é".repeat(800)).into_bytes();
        bound(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap().len(), 1023 + "[truncated]".len());
        let mut bytes = vec![0x80; 2000];
        bound(&mut bytes);
        assert_eq!(bytes.len(), HEADER_MAX_BYTES + TRUNCATED.len());
    }
}
