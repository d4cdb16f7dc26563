//! A key bound to one algorithm: the only thing that can verify a signature.

use aws_lc_rs::hmac;
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384,
    RSA_PSS_2048_8192_SHA512, RsaParameters,
};

use crate::algorithm::Algorithm;

/// A parsed key for one algorithm.
pub(super) struct Verifier {
    pub(super) algorithm: Algorithm,
    key: Key,
}

enum Key {
    Public(ParsedPublicKey),
    Secret(Box<hmac::Key>),
}

/// The public numbers or the secret of a key, as yet for any algorithm of its type.
pub(super) enum Material {
    /// Modulus and exponent, big-endian without leading zeros.
    Rsa(Vec<u8>, Vec<u8>),
    /// A point on P-256, uncompressed.
    P256(Vec<u8>),
    /// A point on P-384, uncompressed.
    P384(Vec<u8>),
    /// A point on P-521, uncompressed.
    P521(Vec<u8>),
    /// A point on edwards25519, compressed.
    Ed25519(Vec<u8>),
    /// The secret of an HMAC.
    Secret(Vec<u8>),
}

impl Material {
    /// Returns the algorithms that may be used with a key of this type (RFC 7518 section 3.1).
    pub(super) fn algorithms(&self) -> &'static [Algorithm] {
        use Algorithm::{
            EdDsa, Es256, Es384, Es512, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384,
            Rs512,
        };
        match self {
            Material::Rsa(..) => &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512],
            Material::P256(_) => &[Es256],
            Material::P384(_) => &[Es384],
            Material::P521(_) => &[Es512],
            Material::Ed25519(_) => &[EdDsa],
            // A secret must be at least as long as the hash (RFC 7518 section 3.2).
            Material::Secret(secret) => match secret.len() {
                ..32 => &[],
                32..48 => &[Hs256],
                48..64 => &[Hs256, Hs384],
                64.. => &[Hs256, Hs384, Hs512],
            },
        }
    }

    /// Returns the key for `algorithm`; none if the two do not fit or the key is not valid, for
    /// example a point that is not on its curve.
    pub(super) fn verifier(&self, algorithm: Algorithm) -> Option<Verifier> {
        let key = match (self, algorithm) {
            (Material::Rsa(n, e), _) => {
                let parameters = rsa_parameters(algorithm)?;
                let components = PublicKeyComponents { n, e };
                Key::Public(components.to_parsed_public_key(parameters).ok()?)
            }
            (Material::P256(point), Algorithm::Es256) => {
                Key::Public(ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok()?)
            }
            (Material::P384(point), Algorithm::Es384) => {
                Key::Public(ParsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).ok()?)
            }
            (Material::P521(point), Algorithm::Es512) => {
                Key::Public(ParsedPublicKey::new(&ECDSA_P521_SHA512_FIXED, point).ok()?)
            }
            (Material::Ed25519(point), Algorithm::EdDsa) => {
                Key::Public(ParsedPublicKey::new(&ED25519, point).ok()?)
            }
            (Material::Secret(secret), _) => {
                Key::Secret(Box::new(hmac::Key::new(hmac_algorithm(algorithm)?, secret)))
            }
            _ => return None,
        };
        Some(Verifier { algorithm, key })
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::Rs256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::Rs384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::Rs512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::Ps256 => Some(&RSA_PSS_2048_8192_SHA256),
        Algorithm::Ps384 => Some(&RSA_PSS_2048_8192_SHA384),
        Algorithm::Ps512 => Some(&RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn hmac_algorithm(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::Hs256 => Some(hmac::HMAC_SHA256),
        Algorithm::Hs384 => Some(hmac::HMAC_SHA384),
        Algorithm::Hs512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

impl Verifier {
    /// Whether `signature` is that of `message`. Constant time for an HMAC.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.key {
            Key::Public(key) => key.verify_sig(message, signature).is_ok(),
            Key::Secret(key) => hmac::verify(key, message, signature).is_ok(),
        }
    }
}
