//! Argon2 (RFC 9106) in the text form of the PHC:
//! `$argon2id$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH`, with base64 without padding.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;

use super::{CostBounds, damaged, same};

/// The most passes accepted.
const PASSES_MAX: u32 = 64;

/// The most lanes accepted. They are computed one after the other.
const LANES_MAX: u32 = 16;

/// Lengths of salts and hashes that are accepted.
const SALT_BYTES: std::ops::RangeInclusive<usize> = 8..=64;
const HASH_BYTES: std::ops::RangeInclusive<usize> = 16..=64;

/// An Argon2 hash.
pub(crate) struct Argon2Hash {
    algorithm: Algorithm,
    version: Version,
    params: Params,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// The parts of the text, before the bounds are checked.
struct Parts {
    algorithm: Algorithm,
    version: Version,
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Argon2Hash {
    /// Parses the variants `argon2id`, `argon2i` and `argon2d`, versions 1.0 (`v=16`, or no `v`) and
    /// 1.3 (`v=19`).
    pub(super) fn parse(text: &str, bounds: &CostBounds) -> Result<Argon2Hash, String> {
        let parts = split(text).ok_or_else(|| damaged("argon2"))?;
        check_cost(&parts, bounds)?;
        let Parts { algorithm, version, memory_kib, passes, lanes, salt, hash } = parts;
        let params = Params::new(memory_kib, passes, lanes, Some(hash.len()))
            .map_err(|_| damaged("argon2"))?;
        Ok(Argon2Hash { algorithm, version, params, salt, hash })
    }

    /// Whether `password` has this hash.
    pub(super) fn matches(&self, password: &[u8]) -> bool {
        let mut hash = vec![0; self.hash.len()];
        Argon2::new(self.algorithm, self.version, self.params.clone())
            .hash_password_into(password, &self.salt, &mut hash)
            .is_ok_and(|()| same(&hash, &self.hash))
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.params.block_count() * 1024
    }
}

fn split(text: &str) -> Option<Parts> {
    let mut parts = text.split('$').skip(1).peekable();
    let algorithm = Algorithm::new(parts.next()?).ok()?;
    let version = match parts.next_if(|part| part.starts_with("v=")) {
        None | Some("v=16") => Version::V0x10,
        Some("v=19") => Version::V0x13,
        Some(_) => return None,
    };
    let (mut memory_kib, mut passes, mut lanes) = (None, None, None);
    for parameter in parts.next()?.split(',') {
        let (name, value) = parameter.split_once('=')?;
        let known = match name {
            "m" => &mut memory_kib,
            "t" => &mut passes,
            "p" => &mut lanes,
            _ => return None,
        };
        if !value.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        // More digits than fit are a cost beyond the bounds, not damage.
        let value = value.parse().unwrap_or(if value.is_empty() { 0 } else { u32::MAX });
        if known.replace(value).is_some() {
            return None;
        }
    }
    let salt = BASE64_STANDARD_NO_PAD.decode(parts.next()?).ok()?;
    let hash = BASE64_STANDARD_NO_PAD.decode(parts.next()?).ok()?;
    let is_whole = parts.next().is_none()
        && SALT_BYTES.contains(&salt.len())
        && HASH_BYTES.contains(&hash.len());
    is_whole.then_some(Parts {
        algorithm,
        version,
        memory_kib: memory_kib?,
        passes: passes?,
        lanes: lanes?,
        salt,
        hash,
    })
}

fn check_cost(parts: &Parts, of: &CostBounds) -> Result<(), String> {
    let work_kib = parts.memory_kib.saturating_mul(parts.passes);
    let bounds = [
        ("memory (m)", parts.memory_kib, of.argon2_memory_max_kib),
        ("number of passes (t)", parts.passes, PASSES_MAX),
        ("number of lanes (p)", parts.lanes, LANES_MAX),
        ("memory times passes (m * t)", work_kib, of.argon2_work_max_kib),
    ];
    for (name, value, max) in bounds {
        if value > max {
            return Err(format!(
                "the argon2 {name} is {value}, above the maximum of {max}{}; make the hash again with \
                 a lower cost (m=65536,t=3,p=4)",
                of.why
            ));
        }
    }
    Ok(())
}
