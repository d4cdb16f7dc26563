//! The identity of one start of a process.

use std::fmt;

/// 16 random bytes that the shell draws when the process starts. It separates the starts of one member: each
/// has its own key for its datagrams, and what a member sent before its restart differs from what it sends now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartId(pub [u8; StartId::BYTES]);

impl StartId {
    /// Its length in datagrams.
    pub const BYTES: usize = 16;

    /// Returns half of it, which separates the starts of one member as well.
    pub fn low(&self) -> u64 {
        u128::from_be_bytes(self.0) as u64
    }
}

/// Hexadecimal digits.
impl fmt::Display for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
