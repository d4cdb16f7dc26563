//! A text of the configuration that may be a secret.

use std::fmt;
use std::ops::Deref;

/// A text that a configuration gives, which is not shown if it is a secret. To use the text itself,
/// dereference it. There is no `Display`: what is formatted could be meant for a person or for a peer.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text {
    // Compared first, so that texts are in their own order.
    text: String,
    is_secret: bool,
}

impl Text {
    /// Stands for a secret where it would be shown.
    pub const SECRET: &str = "(secret)";

    /// Returns a text that is never shown.
    pub fn secret(text: String) -> Text {
        Text { text, is_secret: true }
    }

    /// Returns whether it is never shown.
    pub fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// Returns what may be shown: the text, unless it is a secret.
    pub fn shown(&self) -> &str {
        if self.is_secret { Text::SECRET } else { &self.text }
    }

    /// Returns `said` with [`Text::SECRET`] in place of this text: what a peer says may repeat what it was sent.
    pub fn redacted_in(&self, said: &[u8]) -> Vec<u8> {
        if self.text.is_empty() {
            return said.to_vec();
        }
        String::from_utf8_lossy(said).replace(&*self.text, Text::SECRET).into_bytes()
    }

    /// Returns it as one that may be shown: for comparing it with others.
    #[must_use]
    pub fn revealed(&self) -> Text {
        Text { text: self.text.clone(), is_secret: false }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text { text, is_secret: false }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        text.to_owned().into()
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_secret { f.write_str(Text::SECRET) } else { self.text.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_used_but_not_shown() {
        let secret = Text::secret("hunter2".to_owned());
        assert_eq!(&*secret, "hunter2");
        assert_eq!(format!("{secret:?} {}", secret.shown()), "(secret) (secret)");
        let plain = Text::from("hunter2");
        assert_eq!(format!("{plain:?} {}", plain.shown()), "\"hunter2\" hunter2");
        assert!(secret != plain && secret.revealed() == plain);
        assert!(Text::secret("a".to_owned()) < Text::from("b"), "in order of the text");
        assert_eq!(secret.redacted_in(b"no hunter2 here"), b"no (secret) here");
        assert_eq!(Text::secret(String::new()).redacted_in(b"as it is"), b"as it is");
    }
}
