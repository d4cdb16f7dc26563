//! Key sets (JWKS, RFC 7517): the keys that verify tokens.

mod jwk;
mod verifier;

use std::fmt;

pub use self::jwk::KID_MAX_BYTES;
use self::jwk::Key;
pub(crate) use self::jwk::visible;
use crate::algorithm::Algorithm;
use crate::json::{self, Json};

/// The largest key set that is read.
pub const KEY_SET_MAX_BYTES: usize = 512 * 1024;

/// The most keys that are read; later ones are skipped.
pub const KEYS_MAX: usize = 100;

/// The most keys that are tried for one token: several may have the same `kid`, and a token may
/// have none.
pub const KEYS_TRIED_MAX: usize = 16;

/// The keys of one set that can verify signatures, each bound to its algorithms.
///
/// Immutable: a fetch makes a new one. Share it between threads (`Arc`).
pub struct KeySet {
    keys: Vec<Key>,
    skipped: Vec<Skipped>,
}

/// Whether symmetric keys (`oct`) of a set are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// For a file that no other user can read: a secret that verifies tokens can also sign them.
    Accepted,
    /// For everything else, in particular for what was fetched.
    Skipped,
}

/// A key of a set that is not used. Key sets often have such keys, for example for encryption; an
/// operator whose tokens are refused wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The position in the set, counted from 1.
    pub position: usize,
    /// The key's identifier, if it has a usable one.
    pub kid: Option<String>,
    /// Why the key is not used.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}", self.position)?;
        if let Some(kid) = &self.kid {
            write!(f, " (kid `{}`)", visible(kid))?;
        }
        write!(f, " is not used: {}", self.reason)
    }
}

/// Why contents are not a key set with at least one usable key. The caller keeps the keys that it
/// has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadKeySet(String);

impl fmt::Display for BadKeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadKeySet {}

/// Why no key verifies a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The set has no key with this identifier.
    UnknownKey,
    /// The keys in question must not be used with the token's algorithm.
    Algorithm,
    /// No key in question made the signature.
    Signature,
}

impl KeySet {
    /// Parses the contents of a key set: a file, or the body of a response. Keys that cannot be
    /// used are skipped and listed in [`KeySet::skipped`].
    ///
    /// Accepted are RSA keys of 2048 to 8192 bits, the curves P-256, P-384, P-521 and Ed25519, and,
    /// with [`Secrets::Accepted`], symmetric keys (`oct`) at least as long as the hash.
    ///
    /// # Errors
    ///
    /// The contents are too large, are not a JSON object with a list `keys`, have a member twice, or
    /// have no key that can be used.
    pub fn parse(contents: &[u8], secrets: Secrets) -> Result<KeySet, BadKeySet> {
        if contents.len() > KEY_SET_MAX_BYTES {
            let message = format!("the key set is larger than {KEY_SET_MAX_BYTES} bytes");
            return Err(BadKeySet(message));
        }
        let set = json::parse_object(contents)
            .map_err(|fault| BadKeySet(format!("the key set {fault}")))?;
        let Some(Json::List(list)) = set.get("keys") else {
            return Err(BadKeySet("the key set has no list `keys` (RFC 7517)".to_owned()));
        };
        let mut keys = Vec::new();
        let mut skipped = Vec::new();
        for (at, jwk) in list.iter().take(KEYS_MAX).enumerate() {
            match jwk::parse(jwk, secrets) {
                Ok(key) => keys.push(key),
                Err(reason) => {
                    let kid = jwk::kid(jwk).map(str::to_owned);
                    skipped.push(Skipped { position: at + 1, kid, reason });
                }
            }
        }
        if list.len() > KEYS_MAX {
            let reason = format!("the set has {} keys; {KEYS_MAX} are read", list.len());
            skipped.push(Skipped { position: KEYS_MAX + 1, kid: None, reason });
        }
        if keys.is_empty() {
            let why = skipped.first().map_or("it is empty".to_owned(), Skipped::to_string);
            return Err(BadKeySet(format!("the key set has no key that can be used: {why}")));
        }
        Ok(KeySet { keys, skipped })
    }

    /// Returns the number of keys that can be used; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a set is never empty")]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the identifiers of the keys that can be used.
    pub fn kids(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(|key| key.kid.as_deref())
    }

    /// Returns whether a key can verify signatures of this algorithm.
    pub fn serves(&self, algorithm: Algorithm) -> bool {
        let mut verifiers = self.keys.iter().flat_map(|key| &key.verifiers);
        verifiers.any(|verifier| verifier.algorithm == algorithm)
    }

    /// Returns the keys that are not used, at most [`KEYS_MAX`] and one more that stands for all
    /// that were not read.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Checks the signature of `message`.
    ///
    /// A token with a `kid` is verified with the keys that have the same, or, if there are none,
    /// with keys that have no identifier at all; a token without `kid` with all keys. Of these, only
    /// keys that are bound to `algorithm` are tried, and at most [`KEYS_TRIED_MAX`].
    pub(crate) fn check(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), Mismatch> {
        let has_named = kid.is_some() && self.kids().any(|known| Some(known) == kid);
        let in_question = |key: &&Key| match kid {
            Some(_) if has_named => key.kid.as_deref() == kid,
            Some(_) => key.kid.is_none(),
            None => true,
        };
        let verifiers = self.keys.iter().filter(in_question).flat_map(|key| &key.verifiers);
        let mut fitting = verifiers.filter(|verifier| verifier.algorithm == algorithm).peekable();
        let is_algorithm_known = fitting.peek().is_some();
        if fitting.take(KEYS_TRIED_MAX).any(|verifier| verifier.verifies(message, signature)) {
            return Ok(());
        }
        Err(match (kid, has_named) {
            (Some(_), false) => Mismatch::UnknownKey,
            _ if is_algorithm_known => Mismatch::Signature,
            _ => Mismatch::Algorithm,
        })
    }
}

impl fmt::Debug for KeySet {
    /// Writes the number of keys; a key may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySet")
            .field("len", &self.len())
            .field("skipped", &self.skipped.len())
            .finish_non_exhaustive()
    }
}
