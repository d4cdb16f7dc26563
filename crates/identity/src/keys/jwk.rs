//! One key of a key set (RFC 7517 section 4, RFC 7518 section 6).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::Secrets;
use super::verifier::{Material, Verifier};
use crate::algorithm::Algorithm;
use crate::json::{Json, Object};

/// The longest key identifier accepted.
pub const KID_MAX_BYTES: usize = 256;

/// The sizes of RSA moduli accepted.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The longest RSA exponent accepted, as in the library that verifies.
const RSA_EXPONENT_MAX_BITS: usize = 33;

/// The longest secret accepted.
const SECRET_MAX_BYTES: usize = 1024;

/// A key that can verify signatures.
pub(super) struct Key {
    pub(super) kid: Option<String>,
    /// One for each algorithm that the key may be used with; never empty.
    pub(super) verifiers: Vec<Verifier>,
}

/// Returns the identifier of a key, whether or not the key is usable.
pub(super) fn kid(jwk: &Json) -> Option<&str> {
    let Json::Object(jwk) = jwk else { return None };
    jwk.get("kid")?.as_text().filter(|kid| kid.len() <= KID_MAX_BYTES)
}

/// Parses one key.
///
/// # Errors
///
/// Why the key is not used, for people.
pub(super) fn parse(jwk: &Json, secrets: Secrets) -> Result<Key, String> {
    let Json::Object(jwk) = jwk else {
        return Err("the key is not a JSON object".to_owned());
    };
    let kid = text(jwk, "kid")?;
    if kid.is_some_and(|kid| kid.len() > KID_MAX_BYTES) {
        return Err(format!("`kid` is longer than {KID_MAX_BYTES} bytes"));
    }
    check_purpose(jwk)?;
    let material = material(jwk, secrets)?;
    let fitting = material.algorithms();
    let algorithms = match text(jwk, "alg")? {
        None => fitting.to_vec(),
        Some(name) => match Algorithm::parse(name).filter(|named| fitting.contains(named)) {
            Some(algorithm) => vec![algorithm],
            None => {
                return Err(format!("`alg` is `{}`, which does not fit the key", visible(name)));
            }
        },
    };
    let verifiers: Vec<_> =
        algorithms.into_iter().filter_map(|algorithm| material.verifier(algorithm)).collect();
    if verifiers.is_empty() {
        return Err("the key's numbers are not a valid key".to_owned());
    }
    Ok(Key { kid: kid.map(str::to_owned), verifiers })
}

/// Checks that the key is meant for verifying signatures (RFC 7517 sections 4.2 and 4.3).
fn check_purpose(jwk: &Object) -> Result<(), String> {
    if let Some(purpose) = text(jwk, "use")?
        && purpose != "sig"
    {
        return Err(format!("`use` is `{}`, not `sig`", visible(purpose)));
    }
    match jwk.get("key_ops") {
        None => Ok(()),
        Some(Json::List(operations)) => {
            let verifies = operations.iter().any(|name| name.as_text() == Some("verify"));
            verifies.then_some(()).ok_or_else(|| "`key_ops` does not contain `verify`".to_owned())
        }
        Some(_) => Err("`key_ops` is not a list".to_owned()),
    }
}

fn material(jwk: &Object, secrets: Secrets) -> Result<Material, String> {
    let kind = text(jwk, "kty")?.ok_or("`kty` is missing")?;
    if kind != "oct" && jwk.contains_key("d") {
        return Err("it is a private key; publish only the public part".to_owned());
    }
    match kind {
        "RSA" => rsa(jwk),
        "EC" => elliptic(jwk),
        "OKP" => match text(jwk, "crv")? {
            Some("Ed25519") => Ok(Material::Ed25519(exactly(jwk, "x", 32)?)),
            other => Err(unknown_curve(other)),
        },
        "oct" if secrets == Secrets::Skipped => {
            Err("symmetric keys (`oct`) are not allowed here".to_owned())
        }
        "oct" => {
            let secret = bytes(jwk, "k")?;
            match secret.len() {
                ..32 => Err("the secret is shorter than 32 bytes".to_owned()),
                32..=SECRET_MAX_BYTES => Ok(Material::Secret(secret)),
                _ => Err(format!("the secret is longer than {SECRET_MAX_BYTES} bytes")),
            }
        }
        other => Err(format!("`kty` is `{}`, which is not supported", visible(other))),
    }
}

fn rsa(jwk: &Object) -> Result<Material, String> {
    // Some issuers write a leading zero byte, although RFC 7518 section 2 forbids it. It does not
    // change the number.
    let number = |name| {
        let bytes = bytes(jwk, name)?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        Ok::<_, String>(bytes[zeros..].to_vec())
    };
    let (modulus, exponent) = (number("n")?, number("e")?);
    let bits = bit_length(&modulus);
    if !RSA_BITS.contains(&bits) {
        let (min, max) = (RSA_BITS.start(), RSA_BITS.end());
        return Err(format!("the RSA key has {bits} bits; {min} to {max} are accepted"));
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|byte| byte % 2 == 1);
    // With an exponent of 1 every message would be its own signature.
    let is_exponent = exponent != [1] && bit_length(&exponent) <= RSA_EXPONENT_MAX_BITS;
    if !is_exponent || !is_odd(&exponent) || !is_odd(&modulus) {
        return Err("the RSA key's numbers are not a valid key".to_owned());
    }
    Ok(Material::Rsa(modulus, exponent))
}

fn elliptic(jwk: &Object) -> Result<Material, String> {
    let curve = text(jwk, "crv")?;
    let point = |bytes: usize| {
        let coordinates = [exactly(jwk, "x", bytes)?, exactly(jwk, "y", bytes)?];
        // The form "uncompressed" of SEC 1 section 2.3.3.
        Ok::<_, String>([&[4][..], &coordinates.concat()].concat())
    };
    match curve {
        Some("P-256") => Ok(Material::P256(point(32)?)),
        Some("P-384") => Ok(Material::P384(point(48)?)),
        Some("P-521") => Ok(Material::P521(point(66)?)),
        other => Err(unknown_curve(other)),
    }
}

fn unknown_curve(curve: Option<&str>) -> String {
    match curve {
        Some(curve) => format!("the curve `{}` is not supported", visible(curve)),
        None => "`crv` is missing".to_owned(),
    }
}

fn bit_length(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

/// Returns a member that must be a string if it is there.
fn text<'a>(jwk: &'a Object, name: &str) -> Result<Option<&'a str>, String> {
    match jwk.get(name) {
        None => Ok(None),
        Some(value) => match value.as_text() {
            Some(text) => Ok(Some(text)),
            None => Err(format!("`{name}` is not a string")),
        },
    }
}

fn bytes(jwk: &Object, name: &str) -> Result<Vec<u8>, String> {
    let text = text(jwk, name)?.ok_or_else(|| format!("`{name}` is missing"))?;
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(text);
    decoded.map_err(|_| format!("`{name}` is not base64url without padding"))
}

fn exactly(jwk: &Object, name: &str, length: usize) -> Result<Vec<u8>, String> {
    let bytes = bytes(jwk, name)?;
    if bytes.len() == length {
        return Ok(bytes);
    }
    Err(format!("`{name}` has {} bytes instead of {length}", bytes.len()))
}

/// Returns the beginning of a text from a key set, fit for a log line.
pub(crate) fn visible(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect()
}
