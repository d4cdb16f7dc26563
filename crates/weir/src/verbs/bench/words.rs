//! The command line as saved with the results, without secrets.

use std::ffi::OsString;

/// What takes a secret's place.
const HIDDEN: &str = "…";

/// The words, with the values of fields (`-H`) and the names and passwords in URLs hidden: files of
/// figures are handed around. Bytes that are not UTF-8 are replaced, too.
pub(crate) fn shown(words: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut shown = Vec::new();
    let mut is_field = false;
    for word in words {
        let word = word.to_string_lossy();
        shown.push(if std::mem::take(&mut is_field) {
            field(&word)
        } else if let Some(value) = word.strip_prefix("--header=") {
            format!("--header={}", field(value))
        } else if let Some((flags, value)) = short(&word) {
            is_field = value.is_empty();
            if is_field { word.into_owned() } else { format!("{flags}{}", field(value)) }
        } else {
            is_field = word == "--header";
            url(&word)
        });
    }
    shown
}

/// Short flags up to `H`, and what stands behind it. Flags without a value may stand before it
/// (`-krHName: value`); behind one with a value, `H` hides too much rather than too little.
fn short(word: &str) -> Option<(&str, &str)> {
    let flags = word.strip_prefix('-')?;
    let end = flags.find(|letter: char| !letter.is_ascii_alphabetic() || letter == 'H')?;
    flags[end..].starts_with('H').then(|| word.split_at(end + 2))
}

/// A field by its name alone.
fn field(text: &str) -> String {
    match text.split_once(':') {
        Some((name, _)) => format!("{name}: {HIDDEN}"),
        None => HIDDEN.to_owned(),
    }
}

/// A URL without user and password (RFC 3986 section 3.2.1).
fn url(word: &str) -> String {
    let start = word.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = word.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}{HIDDEN}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_all_else_is_kept() {
        for (given, wanted) in [
            (&["-H", "Authorization: Bearer secret"][..], &["-H", "Authorization: …"][..]),
            (&["-HCookie: a=secret", "-c", "4"], &["-HCookie: …", "-c", "4"]),
            (&["-krHCookie: a=secret"], &["-krHCookie: …"]),
            (&["-kH", "Cookie: a=secret"], &["-kH", "Cookie: …"]),
            (&["--header=X-Key: secret"], &["--header=X-Key: …"]),
            (&["--header", "X-Key: secret"], &["--header", "X-Key: …"]),
            (&["-H", "secret"], &["-H", "…"]),
            (&["http://me:secret@host/a@b"], &["http://…@host/a@b"]),
            (&["3*https://me:se@cret@host:1?q"], &["3*https://…@host:1?q"]),
            (&["me:secret@host:80"], &["…@host:80"]),
            (&["-t", "10", "http://host/a@b:c"], &["-t", "10", "http://host/a@b:c"]),
            (&["--http2", "-p", "a/H"], &["--http2", "-p", "a/H"]),
        ] {
            assert_eq!(shown(given.iter().map(OsString::from)), wanted, "{given:?}");
        }
    }

    #[test]
    fn words_that_are_not_utf_8_are_no_end_of_the_run() {
        use std::os::unix::ffi::OsStringExt;
        assert_eq!(shown([OsString::from_vec(vec![b'a', 0xff])]), ["a\u{fffd}"]);
    }
}
