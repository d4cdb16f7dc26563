//! The lines of an htpasswd file: names and hashes, or every mistake with its line.

use std::collections::HashMap;
use std::fmt;

use super::hash::{CostBounds, Hash};

/// The largest file accepted.
pub const FILE_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The most users accepted.
pub const USERS_MAX: usize = 20_000;

/// The longest name accepted, as in Apache.
pub const USER_MAX_BYTES: usize = 255;

/// The most mistakes reported; later lines are not read.
pub const MISTAKES_MAX: usize = 20;

/// A mistake in an htpasswd file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong and what to do. Contains no hash.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// A line that was accepted.
pub(super) struct Line<'a> {
    pub(super) user: &'a str,
    pub(super) hash: Hash,
    pub(super) hash_text: &'a str,
}

/// Parses all lines.
pub(super) fn parse<'a>(
    contents: &'a [u8],
    bounds: &CostBounds,
) -> Result<Vec<Line<'a>>, Vec<Mistake>> {
    if contents.len() > FILE_MAX_BYTES {
        let message = format!("the file is larger than the maximum of {FILE_MAX_BYTES} bytes");
        return Err(vec![Mistake { line: 1, message }]);
    }
    let contents = contents.strip_prefix(b"\xef\xbb\xbf").unwrap_or(contents);
    let mut lines = Vec::new();
    let mut mistakes = Vec::new();
    let mut first_lines = HashMap::new();
    for (at, bytes) in contents.split(|&byte| byte == b'\n').enumerate() {
        let number = at + 1;
        let parsed = parse_line(bytes, bounds).and_then(|line| {
            let Some(line) = line else { return Ok(None) };
            let first = *first_lines.entry(line.user).or_insert(number);
            if first != number {
                return Err(format!("user `{}` is already on line {first}", line.user));
            }
            if first_lines.len() > USERS_MAX {
                return Err(format!("the file has more than the maximum of {USERS_MAX} users"));
            }
            Ok(Some(line))
        });
        match parsed {
            Ok(line) => lines.extend(line),
            Err(message) => mistakes.push(Mistake { line: number, message }),
        }
        if mistakes.len() == MISTAKES_MAX {
            break;
        }
    }
    if mistakes.is_empty() { Ok(lines) } else { Err(mistakes) }
}

/// Returns nothing for an empty line and a comment.
fn parse_line<'a>(bytes: &'a [u8], bounds: &CostBounds) -> Result<Option<Line<'a>>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "the line is not UTF-8".to_owned())?;
    let text = text.trim_ascii_end();
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let Some((user, rest)) = text.split_once(':') else {
        return Err("the line has no colon; each line must be `USER:HASH`".to_owned());
    };
    if user.is_empty() {
        return Err("the user's name is missing before the colon".to_owned());
    }
    if user.len() > USER_MAX_BYTES {
        return Err(format!("the user's name is longer than {USER_MAX_BYTES} bytes"));
    }
    if user.chars().any(char::is_control) {
        return Err("the user's name contains a control character".to_owned());
    }
    if user.trim() != user {
        return Err("the user's name begins or ends with white space; remove it".to_owned());
    }
    let hash_text = rest.split(':').next().unwrap_or_default();
    let hash = Hash::parse(hash_text, bounds)?;
    Ok(Some(Line { user, hash, hash_text }))
}
