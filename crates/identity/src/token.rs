//! Signed tokens (JWT).

/// The longest token that is read.
pub const TOKEN_MAX_BYTES: usize = 16 * 1024;
