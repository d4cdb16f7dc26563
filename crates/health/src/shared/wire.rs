//! Results of probes as bytes: a batch that fits in one datagram.
//!
//! ```text
//! batch    version (1)  entry × 0..=39
//! entry    probe (16)  outcome (1)  detail (2)  elapsed, µs (4)  age, ms (2)  run (2)  in a row (1)
//! ```
//!
//! Numbers are little-endian. The hash is complete: half of it would allow 58 entries instead of 39,
//! but then those who know the key could make two probes collide within hours. A status is the only
//! detail; its place is zero otherwise. Causes are not numbered on the wire, since their numbers
//! change from version to version.

use std::time::Duration;

use model::Cause;

use super::identity::ProbeHash;
use super::result::{Heard, Outcome};
use crate::evidence::Failure;

/// The version of this format.
pub const VERSION: u8 = 1;
/// Maximum length of a batch, in bytes.
pub const BATCH_MAX_BYTES: usize = 1_100;
/// Maximum number of results in a batch.
pub const ENTRIES_MAX: usize = (BATCH_MAX_BYTES - 1) / ENTRY_BYTES;

const ENTRY_BYTES: usize = 28;

/// The evidence for a failure that another balancer reports without its cause.
const BROKEN: Failure = Failure::Said("no connection or no valid response, at another balancer");
const REFUSED_BY_PROTOCOL: Failure =
    Failure::Said("TLS or the service refused, at another balancer");

const SUCCESS: u8 = 0;
const TIMEOUT: u8 = 1;
const STATUS: u8 = 2;
const CONNECTION_REFUSED: u8 = 3;
const BROKEN_CODE: u8 = 4;
const SAID: u8 = 5;
const UNKNOWN: u8 = 255;

/// Why a batch is refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has no byte, or is longer than [`BATCH_MAX_BYTES`].
    Length,
    /// Its format has another version.
    Version(u8),
    /// Its last entry is incomplete.
    Incomplete,
}

/// Appends as many of `results` as fit to `out`, which is cleared first; returns their number. Ages
/// and elapsed times beyond their fields (65 s, 71 minutes) become the largest value.
pub fn encode(results: &[(ProbeHash, Heard)], out: &mut Vec<u8>) -> usize {
    out.clear();
    out.push(VERSION);
    let fit = results.len().min(ENTRIES_MAX);
    for (probe, heard) in results.iter().take(fit) {
        let (code, detail) = code(heard.outcome);
        let elapsed = u32::try_from(heard.elapsed.as_micros()).unwrap_or(u32::MAX);
        let age = u16::try_from(heard.age_at_sending.as_millis()).unwrap_or(u16::MAX);
        out.extend_from_slice(&probe.0);
        out.push(code);
        out.extend_from_slice(&detail.to_le_bytes());
        out.extend_from_slice(&elapsed.to_le_bytes());
        out.extend_from_slice(&age.to_le_bytes());
        out.extend_from_slice(&heard.run.to_le_bytes());
        out.push(heard.in_a_row);
    }
    fit
}

/// Reads a batch. An outcome that this version does not know is [`Outcome::Unknown`].
///
/// # Errors
///
/// Why the whole batch is refused.
pub fn decode(bytes: &[u8]) -> Result<impl Iterator<Item = (ProbeHash, Heard)> + '_, Refused> {
    let (version, entries) = match bytes {
        [version, entries @ ..] if bytes.len() <= BATCH_MAX_BYTES => (*version, entries),
        _ => return Err(Refused::Length),
    };
    if version != VERSION {
        return Err(Refused::Version(version));
    }
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    if rest.is_empty() { Ok(entries.iter().map(entry)) } else { Err(Refused::Incomplete) }
}

fn entry(bytes: &[u8; ENTRY_BYTES]) -> (ProbeHash, Heard) {
    let mut rest = bytes.as_slice();
    let probe = take(&mut rest);
    let [code] = take(&mut rest);
    let detail = u16::from_le_bytes(take(&mut rest));
    let elapsed = u32::from_le_bytes(take(&mut rest));
    let age = u16::from_le_bytes(take(&mut rest));
    let run = u16::from_le_bytes(take(&mut rest));
    let [in_a_row] = take(&mut rest);
    let heard = Heard {
        outcome: outcome(code, detail),
        elapsed: Duration::from_micros(elapsed.into()),
        age_at_sending: Duration::from_millis(age.into()),
        run,
        in_a_row: in_a_row.max(1),
    };
    (ProbeHash(probe), heard)
}

/// Returns the next bytes; zeros beyond the end, which an entry's fields never reach.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((first, after)) = rest.split_first_chunk::<N>() else {
        return [0; N];
    };
    *rest = after;
    *first
}

fn code(outcome: Outcome) -> (u8, u16) {
    match outcome {
        Outcome::Success => (SUCCESS, 0),
        Outcome::Failure(Failure::Timeout) => (TIMEOUT, 0),
        Outcome::Failure(Failure::Status(status)) => (STATUS, status),
        Outcome::Failure(Failure::Broken(Cause::ConnectionRefused)) => (CONNECTION_REFUSED, 0),
        Outcome::Failure(failure) if failure.is_local() => (UNKNOWN, 0),
        Outcome::Failure(failure) if failure == REFUSED_BY_PROTOCOL => (SAID, 0),
        Outcome::Failure(failure) if failure == BROKEN => (BROKEN_CODE, 0),
        Outcome::Failure(Failure::Broken(_)) => (BROKEN_CODE, 0),
        Outcome::Failure(Failure::Said(_)) => (SAID, 0),
        Outcome::Unknown => (UNKNOWN, 0),
    }
}

fn outcome(code: u8, detail: u16) -> Outcome {
    match code {
        SUCCESS => Outcome::Success,
        TIMEOUT => Outcome::Failure(Failure::Timeout),
        STATUS => Outcome::Failure(Failure::Status(detail)),
        CONNECTION_REFUSED => Outcome::Failure(Failure::Broken(Cause::ConnectionRefused)),
        BROKEN_CODE => Outcome::Failure(BROKEN),
        SAID => Outcome::Failure(REFUSED_BY_PROTOCOL),
        _ => Outcome::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(outcome: Outcome) -> Heard {
        Heard {
            outcome,
            elapsed: Duration::from_micros(1_234),
            age_at_sending: Duration::from_millis(56),
            run: 65_535,
            in_a_row: 3,
        }
    }

    fn batch(number: usize) -> Vec<(ProbeHash, Heard)> {
        let outcomes = [
            Outcome::Success,
            Outcome::Failure(Failure::Timeout),
            Outcome::Failure(Failure::Status(503)),
            Outcome::Failure(Failure::Broken(Cause::ConnectionRefused)),
            Outcome::Failure(BROKEN),
            Outcome::Failure(REFUSED_BY_PROTOCOL),
            Outcome::Unknown,
        ];
        let entry = |n: usize| (ProbeHash([n as u8; 16]), heard(outcomes[n % outcomes.len()]));
        (0..number).map(entry).collect()
    }

    fn read(bytes: &[u8]) -> Result<Vec<(ProbeHash, Heard)>, Refused> {
        decode(bytes).map(Iterator::collect)
    }

    #[test]
    fn a_batch_is_read_as_it_was_written_and_fits_in_a_datagram() {
        let mut out = Vec::new();
        assert_eq!(encode(&batch(100), &mut out), 39);
        assert!(out.len() <= BATCH_MAX_BYTES, "{}", out.len());
        assert_eq!(read(&out), Ok(batch(39)));
        assert_eq!(encode(&[], &mut out), 0);
        assert_eq!(read(&out), Ok(Vec::new()));
    }

    #[test]
    fn what_a_field_cannot_hold_becomes_its_largest_value() {
        let long = Heard {
            elapsed: Duration::from_secs(1_000_000),
            age_at_sending: Duration::from_secs(1_000),
            ..heard(Outcome::Success)
        };
        let mut out = Vec::new();
        encode(&[(ProbeHash([1; 16]), long)], &mut out);
        let (_, read) = read(&out).expect("a batch")[0];
        assert_eq!(read.elapsed.as_micros(), u128::from(u32::MAX));
        assert_eq!(read.age_at_sending.as_millis(), u128::from(u16::MAX));
    }

    #[test]
    fn a_failure_of_the_sender_itself_says_nothing() {
        let local = Failure::Broken(Cause::ConnectionLimitReached);
        assert_eq!(Outcome::of(Err(local)), Outcome::Unknown);
        let mut out = Vec::new();
        encode(&[(ProbeHash([1; 16]), heard(Outcome::Failure(local)))], &mut out);
        assert_eq!(read(&out).expect("a batch")[0].1.outcome, Outcome::Unknown);
    }

    #[test]
    fn outcomes_of_newer_versions_are_unknown_and_other_formats_are_refused() {
        let mut out = Vec::new();
        encode(&batch(1), &mut out);
        out[17] = 77;
        assert_eq!(read(&out).expect("a batch")[0].1.outcome, Outcome::Unknown);
        assert_eq!(read(&[2, 0, 0]), Err(Refused::Version(2)));
        assert_eq!(read(&[]), Err(Refused::Length));
        assert_eq!(read(&[VERSION; 1_101]), Err(Refused::Length));
        assert_eq!(read(&out[..20]), Err(Refused::Incomplete));
    }

    #[test]
    fn mutated_bytes_are_read_within_bounds_or_refused() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut out = Vec::new();
        for _ in 0..50_000 {
            encode(&batch(rng.usize(0..45)), &mut out);
            for _ in 0..rng.usize(0..8) {
                let at = rng.usize(0..out.len());
                out[at] = rng.u8(..);
            }
            out.truncate(rng.usize(0..=out.len()));
            let more = rng.usize(0..40);
            out.extend(std::iter::repeat_with(|| rng.u8(..)).take(more));
            if let Ok(entries) = read(&out) {
                assert!(entries.len() <= ENTRIES_MAX);
                assert!(entries.iter().all(|(_, heard)| heard.in_a_row >= 1));
                // What was read is written in the same way again, but for what is unknown.
                let mut again = Vec::new();
                encode(&entries, &mut again);
                assert_eq!(read(&again), Ok(entries));
            }
        }
    }
}
