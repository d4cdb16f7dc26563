//! Signed tokens (JWT, RFC 7519; JWS, RFC 7515), by the rules of RFC 8725.

mod claims;
mod compact;
mod denied;

use std::time::Duration;

pub use self::claims::{Claim, Claims};
use self::compact::Compact;
pub use self::compact::TOKEN_MAX_BYTES;
pub use self::denied::Denied;
use crate::algorithm::Algorithm;
use crate::json::Json;
use crate::keys::{KeySet, Mismatch};

/// The largest leeway that is granted for differences between clocks.
pub const LEEWAY_MAX: Duration = Duration::from_secs(300);

/// The last second of the year 9999. Times after it are mistakes, mostly milliseconds.
const TIME_MAX_S: u64 = 253_402_300_799;

/// What a token must be, besides signed by a key of the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The algorithms accepted. By default all but the symmetric ones.
    pub algorithms: Vec<Algorithm>,
    /// The issuers accepted (`iss`, compared exactly). If empty, the issuer is not checked.
    pub issuers: Vec<String>,
    /// The audiences accepted: one of them must be in `aud`. If empty, the audience is not checked,
    /// and tokens that were issued for other services pass.
    pub audiences: Vec<String>,
    /// The types accepted (`typ`, without regard to case and to the prefix `application/`), for
    /// example `at+jwt` (RFC 9068). If empty, the type is not checked.
    pub types: Vec<String>,
    /// How far the clocks of issuer and this host may differ, at most [`LEEWAY_MAX`]. By default one
    /// minute.
    pub leeway: Duration,
    /// Whether a token must expire (`exp`). By default it must.
    pub requires_expiry: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        let algorithms = Algorithm::ALL.into_iter().filter(|algorithm| !algorithm.is_symmetric());
        Rules {
            algorithms: algorithms.collect(),
            issuers: Vec::new(),
            audiences: Vec::new(),
            types: Vec::new(),
            leeway: Duration::from_secs(60),
            requires_expiry: true,
        }
    }
}

/// Verifies a token at `now_s`, in seconds since 1970, and returns its claims.
///
/// A token must be a JWS in compact form with one of the algorithms of the rules. The algorithm is
/// bound to the key: an RSA key never verifies an HMAC, whatever the token says. Base64 must be
/// canonical and JSON without duplicate members, so that all programs read the same claims. Keys
/// inside the token are ignored; extensions (`crit`) and encrypted tokens are refused. Claims are
/// looked at only after the signature has been verified.
///
/// The text of a token does not identify it: an ECDSA signature has two valid forms. A
/// list of tokens must use `jti` instead.
///
/// Takes tens of microseconds, with RSA of 8192 bits and many keys of one `kid` some milliseconds:
/// it may run on the thread that serves the request.
///
/// # Errors
///
/// See [`Denied`].
pub fn verify(token: &str, keys: &KeySet, rules: &Rules, now_s: u64) -> Result<Claims, Denied> {
    let compact = Compact::parse(token)?;
    if !rules.algorithms.contains(&compact.algorithm) {
        return Err(Denied::Algorithm);
    }
    check_signature(&compact, keys)?;
    let mut claims = Claims::new(compact.payload()?);
    check_type(compact.typ.as_deref(), rules)?;
    claims.expires_at_s = check_times(&claims, rules, now_s)?;
    check_issuer(&claims, rules)?;
    check_audience(&claims, rules)?;
    Ok(claims)
}

fn check_signature(compact: &Compact<'_>, keys: &KeySet) -> Result<(), Denied> {
    let kid = compact.kid.as_deref();
    keys.check(compact.algorithm, kid, compact.message, &compact.signature).map_err(|mismatch| {
        match mismatch {
            Mismatch::UnknownKey => Denied::UnknownKey { kid: kid.unwrap_or_default().to_owned() },
            Mismatch::Algorithm => Denied::Algorithm,
            Mismatch::Signature => Denied::Signature,
        }
    })
}

/// Explicit typing (RFC 8725 section 3.11); names of types as in RFC 7515 section 4.1.9.
fn check_type(typ: Option<&str>, rules: &Rules) -> Result<(), Denied> {
    let short = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.strip_prefix("application/").unwrap_or(&name).to_owned()
    };
    let typ = typ.map(short);
    if rules.types.is_empty() || rules.types.iter().any(|known| Some(short(known)) == typ) {
        return Ok(());
    }
    Err(Denied::Type)
}

/// Returns when the token expires, if it does.
fn check_times(claims: &Claims, rules: &Rules, now_s: u64) -> Result<Option<u64>, Denied> {
    let leeway_s = rules.leeway.min(LEEWAY_MAX).as_secs();
    let latest_s = now_s.saturating_add(leeway_s);
    // Fractions are rounded to the stricter side.
    let expires_at_s = time(claims, "exp", f64::floor)?;
    match expires_at_s {
        None if rules.requires_expiry => return Err(Denied::MissingClaim("exp")),
        Some(expires_at_s) if now_s >= expires_at_s.saturating_add(leeway_s) => {
            return Err(Denied::Expired);
        }
        _ => {}
    }
    if time(claims, "nbf", f64::ceil)?.is_some_and(|not_before_s| not_before_s > latest_s) {
        return Err(Denied::NotYetValid);
    }
    if time(claims, "iat", f64::ceil)?.is_some_and(|issued_at_s| issued_at_s > latest_s) {
        return Err(Denied::IssuedInFuture);
    }
    Ok(expires_at_s)
}

/// Reads a time (`NumericDate`, RFC 7519 section 2): seconds, possibly with a fraction.
fn time(claims: &Claims, name: &'static str, round: fn(f64) -> f64) -> Result<Option<u64>, Denied> {
    let seconds = match claims.member(name) {
        None => return Ok(None),
        Some(Json::Integer(seconds)) => u64::try_from(*seconds).ok(),
        // Rounded numbers in this range are exact.
        Some(Json::Float(seconds)) if (0.0..=TIME_MAX_S as f64).contains(seconds) => {
            Some(round(*seconds) as u64)
        }
        Some(_) => None,
    };
    match seconds.filter(|&seconds| seconds <= TIME_MAX_S) {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(Denied::BadClaim(name)),
    }
}

fn check_issuer(claims: &Claims, rules: &Rules) -> Result<(), Denied> {
    if rules.issuers.is_empty() {
        return Ok(());
    }
    let issuer = claims.member("iss").ok_or(Denied::MissingClaim("iss"))?;
    let issuer = issuer.as_text().ok_or(Denied::BadClaim("iss"))?;
    if rules.issuers.iter().any(|known| known == issuer) { Ok(()) } else { Err(Denied::Issuer) }
}

/// An audience is a string or an array of strings (RFC 7519 section 4.1.3).
fn check_audience(claims: &Claims, rules: &Rules) -> Result<(), Denied> {
    if rules.audiences.is_empty() {
        return Ok(());
    }
    let is_ours = |name: &str| rules.audiences.iter().any(|known| known == name);
    let found = match claims.member("aud").ok_or(Denied::MissingClaim("aud"))? {
        Json::Text(name) => is_ours(name),
        Json::List(names) => {
            let names: Option<Vec<&str>> = names.iter().map(Json::as_text).collect();
            names.ok_or(Denied::BadClaim("aud"))?.into_iter().any(is_ours)
        }
        _ => return Err(Denied::BadClaim("aud")),
    };
    if found { Ok(()) } else { Err(Denied::Audience) }
}
