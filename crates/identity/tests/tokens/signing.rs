//! Keys made for one test run, which sign what the tests want them to.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use identity::{Claims, Denied, KeySet, Rules, Secrets, token};

/// 2023-11-14, when the tests' tokens are valid.
pub(crate) const NOW_S: u64 = 1_700_000_000;

/// The claims of an ordinary token.
pub(crate) const CLAIMS: &str = r#"{"sub":"anna","exp":1700000600}"#;

/// A key pair of each kind.
pub(crate) struct Signers {
    pub(crate) rsa: RsaKeyPair,
    pub(crate) ec: EcdsaKeyPair,
    pub(crate) ed: Ed25519KeyPair,
    pub(crate) secret: [u8; 64],
}

impl Signers {
    pub(crate) fn new() -> Signers {
        Signers {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            ec: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            ed: Ed25519KeyPair::generate().unwrap(),
            secret: std::array::from_fn(|at| at as u8),
        }
    }

    /// Returns a token of `algorithm` whose header has more members, each with a comma before it.
    pub(crate) fn token(&self, algorithm: &str, more: &str, claims: &str) -> String {
        self.signed(algorithm, &format!(r#"{{"alg":"{algorithm}"{more}}}"#), claims)
    }

    /// Returns a token with exactly this header, signed with `algorithm` whatever the header says.
    pub(crate) fn signed(&self, algorithm: &str, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = self.signature(algorithm, message.as_bytes());
        format!("{message}.{}", encoded(signature))
    }

    fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        let mut rsa_signature = vec![0; self.rsa.public_modulus_len()];
        match algorithm {
            "RS256" => {
                self.rsa.sign(&RSA_PKCS1_SHA256, &random, message, &mut rsa_signature).unwrap();
                rsa_signature
            }
            "PS256" => {
                self.rsa.sign(&RSA_PSS_SHA256, &random, message, &mut rsa_signature).unwrap();
                rsa_signature
            }
            "ES256" => self.ec.sign(&random, message).unwrap().as_ref().to_vec(),
            "EdDSA" => self.ed.sign(message).as_ref().to_vec(),
            "HS256" => hmac(hmac::HMAC_SHA256, &self.secret, message),
            "HS512" => hmac(hmac::HMAC_SHA512, &self.secret, message),
            other => panic!("{other}"),
        }
    }

    /// Returns the RSA key with more members, each with a comma before it.
    pub(crate) fn rsa_jwk(&self, more: &str) -> String {
        let (n, e) = rsa_numbers(self.rsa.public_key().as_ref());
        format!(r#"{{"kty":"RSA","n":"{}","e":"{}"{more}}}"#, encoded(n), encoded(e))
    }

    pub(crate) fn ec_jwk(&self, more: &str) -> String {
        let point = self.ec.public_key().as_ref();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"{more}}}"#)
    }

    pub(crate) fn ed_jwk(&self, more: &str) -> String {
        let x = encoded(self.ed.public_key().as_ref());
        format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"{more}}}"#)
    }

    pub(crate) fn secret_jwk(&self, more: &str) -> String {
        format!(r#"{{"kty":"oct","k":"{}"{more}}}"#, encoded(self.secret))
    }

    /// Returns a set of all keys, each with its kind as `kid`.
    pub(crate) fn all(&self) -> KeySet {
        key_set(&[
            self.rsa_jwk(r#","kid":"rsa""#),
            self.ec_jwk(r#","kid":"ec""#),
            self.ed_jwk(r#","kid":"ed""#),
            self.secret_jwk(r#","kid":"secret""#),
        ])
    }
}

pub(crate) fn hmac(algorithm: hmac::Algorithm, secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, secret), message).as_ref().to_vec()
}

/// Returns modulus and exponent of an `RSAPublicKey` in DER: a sequence of two integers.
pub(crate) fn rsa_numbers(der: &[u8]) -> (Vec<u8>, Vec<u8>) {
    fn content(der: &[u8]) -> (&[u8], &[u8]) {
        let (length, from) = match der[1] {
            0x82 => (usize::from(der[2]) << 8 | usize::from(der[3]), 4),
            0x81 => (usize::from(der[2]), 3),
            short => (usize::from(short), 2),
        };
        der[from..].split_at(length)
    }
    let (n, rest) = content(content(der).0);
    let (e, _) = content(rest);
    (n[usize::from(n[0] == 0)..].to_vec(), e.to_vec())
}

pub(crate) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn key_set(keys: &[String]) -> KeySet {
    KeySet::parse(format!(r#"{{"keys":[{}]}}"#, keys.join(",")).as_bytes(), Secrets::Accepted)
        .unwrap()
}

/// Rules that accept all algorithms.
pub(crate) fn rules() -> Rules {
    Rules { algorithms: identity::Algorithm::ALL.to_vec(), ..Rules::default() }
}

/// Verifies with [`rules`] at [`NOW_S`].
pub(crate) fn verify(token: &str, keys: &KeySet) -> Result<Claims, Denied> {
    token::verify(token, keys, &rules(), NOW_S)
}
