//! Signed tokens (JWT) and their keys, made by openssl.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::Scene;

/// An issuer of tokens with an Ed25519 key made by openssl.
pub struct Issuer {
    folder: PathBuf,
    kid: &'static str,
}

impl Issuer {
    /// Makes one, whose key has this identifier.
    pub fn new(scene: &Scene, kid: &'static str) -> Issuer {
        let issuer = Issuer { folder: scene.folder().to_path_buf(), kid };
        let key = issuer.path("pem");
        issuer.openssl(&["genpkey", "-algorithm", "ed25519", "-out", &shown(&key)], b"");
        issuer
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.kid))
    }

    fn openssl(&self, words: &[&str], input: &[u8]) -> Vec<u8> {
        // Signing needs a file of known length.
        let given = self.path("in");
        std::fs::write(&given, input).unwrap();
        let given = std::fs::File::open(&given).unwrap();
        let made = Command::new("openssl").args(words).stdin(given).stderr(Stdio::null()).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{words:?}: {made:?}");
        made.stdout
    }

    /// The public key as a JWK (RFC 8037).
    pub fn jwk(&self) -> Value {
        let key = shown(&self.path("pem"));
        let der = self.openssl(&["pkey", "-in", &key, "-pubout", "-outform", "DER"], b"");
        let public = URL_SAFE_NO_PAD.encode(&der[der.len() - 32..]);
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.kid, "use": "sig", "x": public })
    }

    /// A token with these claims, which expires in a minute unless they say otherwise; of an issuer
    /// `https://login.example.com`, for `api` and another audience.
    pub fn token(&self, claims: Value) -> String {
        self.signed(&json!({ "alg": "EdDSA", "kid": self.kid }), claims)
    }

    /// As [`Issuer::token`], with another header.
    pub fn signed(&self, header: &Value, mut claims: Value) -> String {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let object = claims.as_object_mut().unwrap();
        object.entry("exp").or_insert(json!(now_s + 60));
        object.entry("iss").or_insert(json!("https://login.example.com"));
        object.entry("aud").or_insert(json!(["other", "api"]));
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(header), encode(&claims));
        let (key, given) = (shown(&self.path("pem")), shown(&self.path("in")));
        let words = ["pkeyutl", "-sign", "-rawin", "-inkey", &key, "-in", &given];
        let signature = self.openssl(&words, message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A key set (RFC 7517) with the keys of these issuers.
pub fn key_set<'a>(issuers: impl IntoIterator<Item = &'a Issuer>) -> String {
    let keys: Vec<_> = issuers.into_iter().map(Issuer::jwk).collect();
    json!({ "keys": keys }).to_string()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
