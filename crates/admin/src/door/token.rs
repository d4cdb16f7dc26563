//! The API's token: reads it from a file, and compares it with what a client presents.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use os::secret_file::{self, Links, SecretError};
use subtle::ConstantTimeEq;

/// Minimum length: shorter tokens can be guessed.
const LENGTH_MIN_BYTES: usize = 16;

/// Maximum length.
const LENGTH_MAX_BYTES: usize = 512;

/// Allowance for a line end and surrounding white space.
const FILE_MAX_BYTES: u64 = LENGTH_MAX_BYTES as u64 + 8;

/// A secret that every request must present. Padded with zeros to the maximum length, so that a
/// comparison always takes the same time.
#[derive(Clone)]
pub struct Token {
    padded: [u8; LENGTH_MAX_BYTES],
    length: usize,
}

impl Token {
    /// Reads the token from the file at `path`, without surrounding white space. Refuses a file that
    /// users other than the owner and the group may read or change.
    ///
    /// # Errors
    /// The file cannot be read, others may read or change it, or it holds no usable token.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let error = |why| TokenError { path: path.to_path_buf(), why };
        let secret = secret_file::read(path, FILE_MAX_BYTES, Links::Followed);
        let text = secret.map_err(|why| error(Why::File(why)))?.bytes;
        Token::parse(text.trim_ascii()).ok_or_else(|| error(Why::NoToken))
    }

    /// Parses a token: 16 to 512 of the characters allowed in an Authorization field (RFC 6750 section
    /// 2.1).
    pub fn parse(text: &[u8]) -> Option<Token> {
        let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-._~+/=".contains(b);
        if !(LENGTH_MIN_BYTES..=LENGTH_MAX_BYTES).contains(&text.len()) || !text.iter().all(allowed)
        {
            return None;
        }
        Some(Token { padded: padded(text), length: text.len() })
    }

    /// Returns whether `presented` is this token, in constant time.
    pub fn is(&self, presented: &[u8]) -> bool {
        let same_length = (presented.len() as u64).ct_eq(&(self.length as u64));
        let same_bytes = padded(presented).ct_eq(&self.padded);
        (same_length & same_bytes).into()
    }
}

/// Returns the bytes of `text` padded with zeros to a token's maximum length.
fn padded(text: &[u8]) -> [u8; LENGTH_MAX_BYTES] {
    let mut padded = [0; LENGTH_MAX_BYTES];
    let length = text.len().min(LENGTH_MAX_BYTES);
    padded[..length].copy_from_slice(&text[..length]);
    padded
}

/// Prints nothing: it is a secret.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why no token could be read from a file. Prints as one line.
#[derive(Debug)]
pub struct TokenError {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    File(SecretError),
    NoToken,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::File(why @ SecretError::Unreadable(source))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                let line = why.line("token file", &self.path);
                write!(f, "{line}; `(umask 077; openssl rand -hex 32 > {path})` makes one")
            }
            Why::File(SecretError::TooLarge { .. }) | Why::NoToken => write!(
                f,
                "there is no token in {path}: {LENGTH_MIN_BYTES} to {LENGTH_MAX_BYTES} letters, \
                 digits and -._~+/=, such as `openssl rand -hex 32` makes"
            ),
            Why::File(why) => f.write_str(&why.line("token file", &self.path)),
        }
    }
}

impl std::error::Error for TokenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.why {
            Why::File(why) => Some(why),
            Why::NoToken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing::Directory;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn file(directory: &Directory, text: &str, mode: u32) -> PathBuf {
        let path = directory.path("token");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn only_the_very_token_is_it() {
        let token = Token::parse(SECRET.as_bytes()).unwrap();
        assert!(token.is(SECRET.as_bytes()));
        let long = format!("{SECRET}{}", "\0".repeat(600));
        let zero = format!("{SECRET}\0");
        for other in ["", "0", &SECRET[1..], &SECRET[..31], &zero, &long, &SECRET.to_uppercase()] {
            assert!(!token.is(other.as_bytes()), "{other:?}");
        }
        let longest = Token::parse(&[b'x'; LENGTH_MAX_BYTES]).unwrap();
        assert!(longest.is(&[b'x'; LENGTH_MAX_BYTES]));
        assert!(!longest.is(&[b'x'; LENGTH_MAX_BYTES + 1]));
        assert_eq!(format!("{token:?}"), "Token(…)");
    }

    #[test]
    fn a_file_holds_a_token_and_white_space() {
        let directory = Directory::new("token");
        for text in [SECRET.to_owned(), format!("{SECRET}\n"), format!(" {SECRET} \r\n")] {
            let path = file(&directory, &text, 0o640);
            assert!(Token::read(&path).unwrap().is(SECRET.as_bytes()), "{text:?}");
        }
        let too_long = "x".repeat(LENGTH_MAX_BYTES + 1);
        for text in ["", "short", "with space 0123456789", "ümlaut-0123456789", &too_long] {
            let message = Token::read(&file(&directory, text, 0o600)).unwrap_err().to_string();
            assert!(message.contains("openssl rand"), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let directory = Directory::new("token-others");
        for mode in [0o604, 0o666, 0o602] {
            let message = Token::read(&file(&directory, SECRET, mode)).unwrap_err().to_string();
            assert!(message.contains("chmod 600"), "{mode:o}: {message}");
            assert!(!message.contains(SECRET));
        }
    }

    #[test]
    fn a_missing_file_is_one_line_that_says_how_to_make_it() {
        let directory = Directory::new("token-missing");
        let message = Token::read(&directory.path("none")).unwrap_err().to_string();
        assert!(message.contains("openssl rand -hex 32 >"), "{message}");
        let message = Token::read(&directory.path("")).unwrap_err().to_string();
        assert!(message.contains("not a regular file"), "{message}");
    }
}
