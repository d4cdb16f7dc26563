//! Reads Rust source as far as the checks need it: files, where their tests begin, and the paths they
//! name. A lexer that knows comments, strings and `use` trees, not a parser.

use std::path::{Path, PathBuf};

/// A Rust file of the workspace.
pub(crate) struct SourceFile {
    /// Relative to the workspace.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl SourceFile {
    /// The package it belongs to, if it is in `crates/<package>/`.
    pub(crate) fn package(&self) -> Option<&str> {
        let mut parts = self.path.iter();
        (parts.next()? == "crates").then(|| parts.next()?.to_str())?
    }

    /// Whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        let in_dir = |name: &str| self.path.iter().any(|part| part == name);
        in_dir("tests") || in_dir("benches") || self.path.ends_with("tests.rs")
    }

    /// Whether it is run while its package is built.
    pub(crate) fn is_build_script(&self) -> bool {
        self.path.ends_with("build.rs") && self.path.components().count() == 3
    }

    /// The line (from 1) of the first `#[cfg(test)]` at the left margin: tests stand last.
    pub(crate) fn tests_begin(&self) -> usize {
        let lines = || self.text.lines();
        lines().position(|line| line.starts_with("#[cfg(test)]")).unwrap_or(lines().count()) + 1
    }
}

/// Every Rust file that is ours, in order of path.
pub(crate) fn rust_files(root: &Path) -> Result<Vec<SourceFile>, String> {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["crates", "e2e", "xtask", "fuzz"].iter().map(|top| root.join(top)).collect();
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != "fixtures" {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                let relative = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
                files.push(SourceFile { path: relative, text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// A path as written in the source, `use` trees expanded: `std::net::TcpStream`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// Line, from 1.
    pub line: usize,
    /// Segments joined with `::`, without a leading `::`.
    pub path: String,
}

/// Every path and single identifier that `text` names outside comments and literals.
pub(crate) fn named_paths(text: &str) -> Vec<NamedPath> {
    let tokens = tokens(text);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is_word() {
            let in_use = tokens[at].text == "use";
            let start = if in_use { at + 1 } else { at };
            at = read_tree(&tokens, start, "", in_use, &mut paths).max(at + 1);
        } else {
            at += 1;
        }
    }
    paths
}

/// Reads one path from `at`, and in a `use` also its `{…}` group; returns where it ended.
fn read_tree(
    tokens: &[Token<'_>],
    mut at: usize,
    prefix: &str,
    in_use: bool,
    paths: &mut Vec<NamedPath>,
) -> usize {
    let mut path = prefix.to_owned();
    let line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        match token.text {
            "::" => at += 1,
            "*" if in_use => at += 1,
            "{" if in_use => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = if tokens[at].text == "," {
                        at + 1
                    } else {
                        read_tree(tokens, at, &path, true, paths).max(at + 1)
                    };
                }
                return at + 1;
            }
            "as" if in_use => at += 2,
            word if token.is_word() => {
                if !path.is_empty() {
                    path.push_str("::");
                }
                path.push_str(word);
                at += 1;
                if !in_use && tokens.get(at).is_none_or(|next| next.text != "::") {
                    break;
                }
            }
            _ => break,
        }
    }
    if !path.is_empty() {
        paths.push(NamedPath { line, path });
    }
    at
}

struct Token<'a> {
    text: &'a str,
    line: usize,
}

impl Token<'_> {
    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => quoted(rest, 1),
            'r' | 'b' | 'c' if literal_prefix(rest).is_some() => literal_prefix(rest).unwrap_or(1),
            '\'' => char_or_lifetime(rest),
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            ':' if rest.starts_with("::") => 2,
            c => c.len_utf8(),
        };
        let token = &rest[..length];
        let is_comment_or_literal = token.starts_with("//")
            || token.starts_with("/*")
            || token.ends_with(['"', '\'', '#']) && length > 1;
        if !first.is_whitespace() && !is_comment_or_literal {
            tokens.push(Token { text: token, line });
        }
        line += token.matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// Length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Length of a literal with escapes whose opening quote ends at `start`.
fn quoted(text: &str, start: usize) -> usize {
    let quote = text.as_bytes()[start - 1];
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Length of a literal that begins with r, b, c or two of them; `None` if it is an identifier.
fn literal_prefix(text: &str) -> Option<usize> {
    let letters = text.bytes().take_while(|b| b"rbc".contains(b)).take(2).count();
    let after = &text[letters..];
    let raw = text[..letters].contains('r');
    let hashes = if raw { after.bytes().take_while(|&b| b == b'#').count() } else { 0 };
    let body = letters + hashes;
    match text.as_bytes().get(body)? {
        b'"' if raw => {
            let end = format!("\"{}", "#".repeat(hashes));
            let length = text[body + 1..].find(&end).map(|at| body + 1 + at + end.len());
            Some(length.unwrap_or(text.len()))
        }
        b'"' => Some(quoted(text, body + 1)),
        b'\'' if &text[..letters] == "b" => Some(quoted(text, body + 1)),
        _ => None,
    }
}

/// Length of a character literal, or of the quote alone when it begins a lifetime.
fn char_or_lifetime(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => quoted(text, 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        named_paths(text).into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn a_build_script_is_beside_the_manifest() {
        let is_script =
            |path: &str| SourceFile { path: path.into(), text: String::new() }.is_build_script();
        assert!(is_script("crates/dashboard/build.rs"));
        assert!(!is_script("crates/config/src/build.rs") && !is_script("crates/a/rebuild.rs"));
    }

    #[test]
    fn use_trees_are_expanded() {
        let text = "use std::{fs, net::{IpAddr, TcpStream as S}, time::*};\nlet x = a::b(c);";
        let expected = ["std::fs", "std::net::IpAddr", "std::net::TcpStream", "std::time"];
        let found = paths(text);
        assert_eq!(found[..4], expected);
        assert!(found.contains(&"a::b".to_owned()) && found.contains(&"c".to_owned()));
    }

    #[test]
    fn comments_and_literals_name_nothing() {
        let text = r##"
            // std::fs
            /* std::fs /* nested */ std::fs */
            let a = "std::fs \" std::fs";
            let b = r#"std::fs " std::fs"#;
            let c = b'"'; let d = '"'; let e: &'static str = b"std::fs";
        "##;
        assert!(paths(text).iter().all(|path| !path.contains("fs")), "{:?}", paths(text));
    }

    #[test]
    fn lines_are_counted_over_literals() {
        let named = named_paths("let a = \"\n\n\";\nstd::fs::read(x)");
        let read = named.iter().find(|named| named.path == "std::fs::read").unwrap();
        assert_eq!(read.line, 4);
    }
}
