//! The version of a server's application: as its label in the configuration says, or as its responses state.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

const WORDS: usize = 8;

/// A version of up to 64 visible ASCII characters. Copied like a number, since it is compared with every
/// response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion([u8; ServerVersion::LENGTH_MAX]);

impl ServerVersion {
    /// The maximum length in bytes.
    pub const LENGTH_MAX: usize = 8 * WORDS;

    /// Returns the version that a text states: 1 to 64 visible ASCII characters. `None`: it states none.
    pub fn parse(text: &[u8]) -> Option<ServerVersion> {
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let is_visible = text.iter().all(u8::is_ascii_graphic);
        (is_visible && !text.is_empty()).then_some(ServerVersion(bytes))
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(Self::LENGTH_MAX);
        // All of it is ASCII.
        std::str::from_utf8(&self.0[..length]).unwrap_or_default()
    }

    fn words(&self) -> [u64; WORDS] {
        let (words, _) = self.0.as_chunks();
        std::array::from_fn(|at| u64::from_ne_bytes(words[at]))
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerVersion").field(&self.as_str()).finish()
    }
}

/// The version that a server's responses have stated last. Takes the same memory whatever a server states,
/// and however often that changes.
#[derive(Debug, Default)]
pub struct StatedVersion {
    /// Zeros: none yet.
    words: [AtomicU64; WORDS],
    writing: Mutex<()>,
}

impl StatedVersion {
    /// Takes in the value of a response. Fast path: eight relaxed loads if it states what the last one did. A
    /// value that is no version changes nothing.
    #[inline]
    pub fn note(&self, value: &[u8]) {
        let Some(version) = ServerVersion::parse(value) else { return };
        let stated = version.words();
        // If another thread writes at this moment, the comparison may fail, and the same is written again.
        if self.words.iter().zip(stated).any(|(word, stated)| word.load(Relaxed) != stated) {
            self.set(version);
        }
    }

    /// Sets it.
    #[cold]
    pub fn set(&self, version: ServerVersion) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        for (word, stated) in self.words.iter().zip(version.words()) {
            word.store(stated, Relaxed);
        }
    }

    /// Forgets it.
    pub fn clear(&self) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        self.words.iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Returns it; `None`: no response has stated one. Locks, so that it is not half of one and half of
    /// another.
    pub fn get(&self) -> Option<ServerVersion> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [0; ServerVersion::LENGTH_MAX];
        let (words, _) = bytes.as_chunks_mut();
        for (bytes, word) in words.iter_mut().zip(&self.words) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        (bytes[0] != 0).then_some(ServerVersion(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_ascii_of_bounded_length_is_a_version() {
        let longest = [b'v'; ServerVersion::LENGTH_MAX];
        assert_eq!(ServerVersion::parse(b"2.8.1").unwrap().as_str(), "2.8.1");
        assert_eq!(ServerVersion::parse(&longest).unwrap().as_str().len(), 64);
        for not in [&b""[..], b"2.8 1", b"2.8\x1b[31m", b"\0", "2.8é".as_bytes(), &[b'v'; 65]] {
            assert_eq!(ServerVersion::parse(not), None, "{not:?}");
        }
    }

    #[test]
    fn the_last_version_that_was_stated_counts() {
        let stated = StatedVersion::default();
        assert_eq!(stated.get(), None);
        for (value, expected) in [
            ("2.8.0", "2.8.0"),
            ("2.8.0-rc.1+longer", "2.8.0-rc.1+longer"),
            ("", "2.8.0-rc.1+longer"),
            ("3", "3"),
        ] {
            stated.note(value.as_bytes());
            assert_eq!(stated.get().unwrap().as_str(), expected);
        }
    }

    #[test]
    fn servers_that_alternate_never_yield_a_mixture() {
        let stated = StatedVersion::default();
        let versions = [[b'a'; 64], [b'b'; 64]];
        std::thread::scope(|scope| {
            for version in &versions {
                scope.spawn(|| (0..2_000).for_each(|_| stated.note(version)));
            }
            for _ in 0..2_000 {
                let seen = stated.get();
                assert!(seen.is_none_or(|seen| versions.contains(&seen.0)), "{seen:?}");
            }
        });
    }
}
