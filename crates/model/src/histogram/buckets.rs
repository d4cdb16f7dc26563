//! The buckets of histograms: their bounds, and the bucket of a value.

/// The schema of the native histograms (Prometheus's data model): 2^3 buckets per factor of two.
pub const SCHEMA: i32 = 3;

/// Buckets per factor of two.
const PER_OCTAVE: i32 = 1 << SCHEMA;

/// Upper bounds of the classic exposition's buckets, in microseconds.
pub const CLASSIC_BOUNDS_US: [u64; 17] = [
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// The shortest durations have one bucket, up to 2^-16 s (15 µs). It is the zero bucket of native
/// histograms.
const OCTAVE_MIN: i32 = -16;

/// The last bucket ends at 2^12 s (68 minutes); it includes everything longer.
const OCTAVE_MAX: i32 = 12;

/// Upper bound of the first bucket, in seconds.
pub const ZERO_THRESHOLD_SECONDS: f64 = 1.0 / (1_u64 << -OCTAVE_MIN) as f64;

/// The first bucket and those of the schema.
const EXPONENTIAL: usize = 1 + ((OCTAVE_MAX - OCTAVE_MIN) * PER_OCTAVE) as usize;

/// Number of buckets. Three classic bounds (0.25, 0.5 and 1 s) are also bounds of the schema.
pub const BUCKETS: usize = EXPONENTIAL + CLASSIC_BOUNDS_US.len() - 3;

/// 2^(i/8).
const EIGHTHS: [f64; PER_OCTAVE as usize] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    std::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429,
    1.834_008_086_409_342_4,
];

/// A bucket: its upper bound in microseconds, and its index in the schema.
#[derive(Clone, Copy)]
struct Bucket {
    up_to_us: u64,
    native: i16,
}

const TABLE: [Bucket; BUCKETS] = table();

/// Returns the upper bound of the schema's bucket `native`, rounded down to microseconds. Exact
/// apart from that, since the factors are powers of two.
const fn native_bound_us(native: i32) -> u64 {
    let octave = native.div_euclid(PER_OCTAVE);
    let eighth = EIGHTHS[native.rem_euclid(PER_OCTAVE) as usize];
    let micros = eighth * 1e6;
    (if octave < 0 {
        micros / (1_u64 << -octave) as f64
    } else {
        micros * (1_u64 << octave) as f64
    }) as u64
}

const fn table() -> [Bucket; BUCKETS] {
    let mut table = [Bucket { up_to_us: 0, native: 0 }; BUCKETS];
    let (mut filled, mut classic) = (0, 0);
    let mut native = OCTAVE_MIN * PER_OCTAVE;
    while filled < BUCKETS {
        let bound_us = native_bound_us(native);
        // A classic bound in the middle of a bucket splits it.
        if classic < CLASSIC_BOUNDS_US.len() && CLASSIC_BOUNDS_US[classic] < bound_us {
            let up_to_us = CLASSIC_BOUNDS_US[classic];
            table[filled] = Bucket { up_to_us, native: native as i16 };
            classic += 1;
        } else {
            if classic < CLASSIC_BOUNDS_US.len() && CLASSIC_BOUNDS_US[classic] == bound_us {
                classic += 1;
            }
            table[filled] = Bucket { up_to_us: bound_us, native: native as i16 };
            native += 1;
        }
        filled += 1;
    }
    table
}

/// For values with the same highest bit and the same three bits below it: the bucket of the smallest.
/// The others' bucket is one of the next few.
const STARTS: [u8; LEADS] = starts();

/// Number of combinations of highest bits, for values up to the last bound (less than 2^33 µs).
const LEADS: usize = 33 * LEADS_EACH;

/// Combinations with the same highest bit: those of three bits.
const LEADS_EACH: usize = 8;

const fn lead(micros: u64) -> usize {
    let highest = micros.ilog2();
    let below = if highest < 3 { micros << (3 - highest) } else { micros >> (highest - 3) };
    highest as usize * LEADS_EACH + below as usize % LEADS_EACH
}

const fn starts() -> [u8; LEADS] {
    let mut starts = [0; LEADS];
    let mut at = 0;
    while at < LEADS {
        let (highest, below) = ((at / LEADS_EACH) as u32, (at % LEADS_EACH + LEADS_EACH) as u64);
        let smallest = if highest < 3 { below >> (3 - highest) } else { below << (highest - 3) };
        let mut bucket = 0;
        while bucket < BUCKETS - 1 && TABLE[bucket].up_to_us < smallest {
            bucket += 1;
        }
        starts[at] = bucket as u8;
        at += 1;
    }
    starts
}

/// Returns the bucket of a number of microseconds: the one whose bounds contain it, or the last.
#[inline]
pub fn bucket_of(micros: u64) -> usize {
    let micros = micros.clamp(1, TABLE[BUCKETS - 1].up_to_us);
    let mut bucket = usize::from(STARTS[lead(micros)]);
    while TABLE[bucket].up_to_us < micros {
        bucket += 1;
    }
    bucket
}

/// Returns the range of a bucket, in microseconds: more than the first, up to and including the
/// second. The first bucket includes zero.
pub fn bounds(bucket: usize) -> (u64, u64) {
    let above = bucket.checked_sub(1).map_or(0, |previous| TABLE[previous].up_to_us);
    (above, TABLE[bucket].up_to_us)
}

/// Returns a bucket's index in the schema; `None` for the zero bucket. Those of a split bucket share
/// one.
pub(super) fn native_index(bucket: usize) -> Option<i32> {
    (bucket > 0).then(|| i32::from(TABLE[bucket].native))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_and_contain_their_values() {
        for bucket in 0..BUCKETS {
            let (above, up_to) = bounds(bucket);
            assert!(above < up_to, "{bucket}: {above} {up_to}");
            assert_eq!(bucket_of(above + 1), bucket);
            assert_eq!(bucket_of(up_to), bucket);
            // The middle is within 4.4 % of anything in it, or within a microsecond.
            let middle = above + (up_to - above).div_ceil(2);
            let off = middle - above;
            assert!(
                bucket == 0 || off <= 1 || off as f64 <= 0.0443 * middle as f64 + 1.0,
                "{above}"
            );
        }
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bounds(0), (0, 15));
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(bounds(BUCKETS - 1).1, 4096 * 1_000_000);
    }

    #[test]
    fn bounds_are_those_of_the_schema_and_the_classic_ones() {
        for bucket in 1..BUCKETS {
            let up_to = bounds(bucket).1;
            let native = native_index(bucket).unwrap();
            // By definition: at most base^index, base = 2^(2^-schema).
            let bound = 2_f64.powf(f64::from(native) / 8.0) * 1e6;
            assert!(up_to as f64 <= bound + 0.5, "{bucket}");
            let split = CLASSIC_BOUNDS_US.contains(&up_to);
            assert!(
                split || bound - up_to as f64 <= 1.0 + bound * 1e-12,
                "{bucket} {bound} {up_to}"
            );
        }
        for bound in CLASSIC_BOUNDS_US {
            assert_eq!(bounds(bucket_of(bound)).1, bound);
        }
        assert_eq!(native_index(0), None);
        assert_eq!(native_index(bucket_of(1_000_000)), Some(0));
        assert_eq!(native_index(bucket_of(1_000_001)), Some(1));
    }
}
