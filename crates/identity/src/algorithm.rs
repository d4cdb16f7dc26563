//! The signature algorithms of tokens (RFC 7518 section 3, RFC 8037).

use std::fmt;

/// A signature algorithm. There is none for unsigned tokens (`none`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// HMAC with SHA-256
    Hs256,
    /// HMAC with SHA-384
    Hs384,
    /// HMAC with SHA-512
    Hs512,
    /// RSASSA-PKCS1-v1_5 with SHA-256
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512
    Rs512,
    /// RSASSA-PSS with SHA-256
    Ps256,
    /// RSASSA-PSS with SHA-384
    Ps384,
    /// RSASSA-PSS with SHA-512
    Ps512,
    /// ECDSA on P-256 with SHA-256
    Es256,
    /// ECDSA on P-384 with SHA-384
    Es384,
    /// ECDSA on P-521 with SHA-512
    Es512,
    /// Ed25519, written `EdDSA` or `Ed25519` (RFC 9864)
    EdDsa,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 13] = [
        Algorithm::Hs256,
        Algorithm::Hs384,
        Algorithm::Hs512,
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::Ps384,
        Algorithm::Ps512,
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::Es512,
        Algorithm::EdDsa,
    ];

    /// Returns the name in tokens and keys.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Hs256 => "HS256",
            Algorithm::Hs384 => "HS384",
            Algorithm::Hs512 => "HS512",
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::Es512 => "ES512",
            Algorithm::EdDsa => "EdDSA",
        }
    }

    /// Returns the algorithm of a name, which must have exactly its case.
    pub fn parse(name: &str) -> Option<Algorithm> {
        if name == "Ed25519" {
            return Some(Algorithm::EdDsa);
        }
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Whether the key that verifies a token can also sign one.
    pub fn is_symmetric(self) -> bool {
        matches!(self, Algorithm::Hs256 | Algorithm::Hs384 | Algorithm::Hs512)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
