//! The parts of a token: JWS in compact serialization (RFC 7515 section 7.1).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use super::denied::Denied;
use crate::algorithm::Algorithm;
use crate::json::{self, Object};
use crate::keys::KID_MAX_BYTES;

/// The longest token that is read. Requests with longer ones exceed most servers' limits of heads.
pub const TOKEN_MAX_BYTES: usize = 16 * 1024;

/// The longest signature: that of an RSA key of 8192 bits.
const SIGNATURE_MAX_BYTES: usize = 1024;

/// A token whose header was read and whose signature was not verified.
pub(super) struct Compact<'a> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) typ: Option<String>,
    /// What is signed: header and payload as they were sent.
    pub(super) message: &'a [u8],
    pub(super) signature: Vec<u8>,
    payload: &'a str,
}

impl<'a> Compact<'a> {
    /// Splits a token and reads its header. Keys in the header and addresses of keys (`jwk`, `jku`,
    /// `x5c`, `x5u`) are ignored: only the caller's key set verifies.
    pub(super) fn parse(token: &'a str) -> Result<Compact<'a>, Denied> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(Denied::TooLong);
        }
        let parts: Vec<&str> = token.splitn(6, '.').collect();
        let [header, payload, signature] = parts[..] else {
            return Err(Denied::Malformed(match parts.len() {
                5 => "it is encrypted (JWE), not signed",
                _ => "it does not have three parts",
            }));
        };
        let message = &token.as_bytes()[..header.len() + 1 + payload.len()];
        let header = decode(header, "the header is not base64url")?;
        let header = json::parse_object(&header).map_err(Denied::Malformed)?;
        // An extension that must be understood (RFC 7515 section 4.1.11); Weir understands none.
        // `b64` is one that changes what is signed (RFC 7797).
        if header.contains_key("crit") || header.contains_key("b64") {
            return Err(Denied::Malformed("the header has extensions (`crit`, `b64`)"));
        }
        let name = text(&header, "alg")?.ok_or(Denied::Malformed("the header has no `alg`"))?;
        let algorithm = Algorithm::parse(&name).ok_or(Denied::Algorithm)?;
        let kid = text(&header, "kid")?;
        if kid.as_ref().is_some_and(|kid| kid.len() > KID_MAX_BYTES) {
            return Err(Denied::Malformed("`kid` is too long"));
        }
        let signature = decode(signature, "the signature is not base64url")?;
        if signature.is_empty() || signature.len() > SIGNATURE_MAX_BYTES {
            return Err(Denied::Signature);
        }
        let typ = text(&header, "typ")?;
        Ok(Compact { algorithm, kid, typ, message, signature, payload })
    }

    /// Reads the payload. Only for a token whose signature was verified.
    pub(super) fn payload(&self) -> Result<Object, Denied> {
        let payload = decode(self.payload, "the payload is not base64url")?;
        json::parse_object(&payload).map_err(Denied::Malformed)
    }
}

/// Decodes base64url without padding in its one spelling, so that a token has one spelling.
fn decode(part: &str, fault: &'static str) -> Result<Vec<u8>, Denied> {
    BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Denied::Malformed(fault))
}

fn text(header: &Object, name: &str) -> Result<Option<String>, Denied> {
    match header.get(name).map(|value| value.as_text()) {
        None => Ok(None),
        Some(Some(text)) => Ok(Some(text.to_owned())),
        Some(None) => Err(Denied::Malformed("a member of the header is not a string")),
    }
}
