//! Numbers in 16 bits: whole numbers, exact up to 4,095, above that within 0.025 %.

use serde::{Deserialize, Serialize};

/// A whole number, or nothing. Five bits of exponent, eleven bits of mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Quantised(u16);

const MANTISSA_BITS: u32 = 11;

const IMPLIED: u64 = 1 << MANTISSA_BITS;

impl Quantised {
    /// No value.
    pub(crate) const NONE: Quantised = Quantised(u16::MAX);

    pub(crate) const ZERO: Quantised = Quantised(0);

    /// The largest number, 4.4 × 10^12, stands for everything above it.
    const MAX: Quantised = Quantised(u16::MAX - 1);

    /// Rounds to the nearest number that there is.
    pub(crate) fn new(value: u64) -> Quantised {
        if value < IMPLIED {
            return Quantised(value as u16);
        }
        let shift = value.ilog2() - MANTISSA_BITS;
        let half = (1_u64 << shift) >> 1;
        // Rounding up may reach the next power of two.
        let rounded = value.saturating_add(half);
        let shift = rounded.ilog2() - MANTISSA_BITS;
        let mantissa = (rounded >> shift) - IMPLIED;
        let bits = (u64::from(shift) + 1) << MANTISSA_BITS | mantissa;
        if bits >= u64::from(Quantised::MAX.0) { Quantised::MAX } else { Quantised(bits as u16) }
    }

    /// Returns the number; `None` for [`Quantised::NONE`].
    pub(crate) fn get(self) -> Option<u64> {
        if self == Quantised::NONE {
            return None;
        }
        let (exponent, mantissa) = (self.0 >> MANTISSA_BITS, u64::from(self.0) & (IMPLIED - 1));
        Some(if exponent == 0 { mantissa } else { (IMPLIED + mantissa) << (exponent - 1) })
    }
}

impl From<Option<u64>> for Quantised {
    fn from(value: Option<u64>) -> Quantised {
        value.map_or(Quantised::NONE, Quantised::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_within_a_quarter_of_a_thousandth() {
        for value in 0..=4_096 {
            assert_eq!(Quantised::new(value).get(), Some(value));
        }
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..100_000 {
            let below = 1 << rng.u32(12..42);
            let value = rng.u64(..below);
            let read = Quantised::new(value).get().unwrap();
            assert!(read.abs_diff(value) as f64 <= value as f64 * 0.000_25, "{value} {read}");
        }
    }

    #[test]
    fn extremes_are_in_order() {
        assert_eq!(Quantised::NONE.get(), None);
        assert_eq!(Quantised::from(None), Quantised::NONE);
        let most = Quantised::new(u64::MAX);
        assert_eq!(most, Quantised::MAX);
        assert!(most.get().unwrap() > 4_000_000_000_000);
        for shift in 11..42 {
            let [before, at] = [(1_u64 << shift) - 1, 1 << shift].map(|v| Quantised::new(v).get());
            assert!(before <= at && at == Some(1 << shift), "{shift}");
        }
    }
}
