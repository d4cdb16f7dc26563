//! The distribution of many times as a few figures, and in full in the encoding of `HdrHistogram`'s
//! tools.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Times of many requests, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// How many were measured.
    pub count: u64,
    /// The shortest, ms.
    pub min_ms: f64,
    /// Arithmetic mean, ms.
    pub mean_ms: f64,
    /// Standard deviation, ms.
    pub stddev_ms: f64,
    /// Half took at most this long, ms.
    pub p50_ms: f64,
    /// 75 % took at most this long, ms.
    pub p75_ms: f64,
    /// 90 % took at most this long, ms.
    pub p90_ms: f64,
    /// 95 % took at most this long, ms.
    pub p95_ms: f64,
    /// 99 % took at most this long, ms.
    pub p99_ms: f64,
    /// 99.9 % took at most this long, ms.
    pub p99_9_ms: f64,
    /// 99.99 % took at most this long, ms.
    pub p99_99_ms: f64,
    /// The longest, ms.
    pub max_ms: f64,
    /// All of them: a histogram in nanoseconds, `HdrHistogram`'s V2 encoding, compressed (it begins
    /// with `HISTFAAAA`), base64. Empty when nothing was measured.
    pub histogram: String,
}

/// Nanoseconds as milliseconds.
fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

impl Summary {
    /// The figures of a histogram whose values are nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Summary {
        if histogram.is_empty() {
            return Summary::default();
        }
        let at = |quantile: f64| ms(histogram.value_at_quantile(quantile));
        Summary {
            count: histogram.len(),
            min_ms: ms(histogram.min()),
            mean_ms: histogram.mean() / 1e6,
            stddev_ms: histogram.stdev() / 1e6,
            p50_ms: at(0.5),
            p75_ms: at(0.75),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p99_9_ms: at(0.999),
            p99_99_ms: at(0.9999),
            max_ms: ms(histogram.max()),
            histogram: encode(histogram),
        }
    }

    /// The whole distribution, in nanoseconds; `None` when there is none, or it cannot be read.
    pub fn distribution(&self) -> Option<Histogram<u64>> {
        let bytes = BASE64_STANDARD.decode(&self.histogram).ok()?;
        Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
    }
}

/// V2, compressed, base64.
fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => BASE64_STANDARD.encode(bytes),
        // Writing to memory cannot fail, and a histogram that exists has a size that fits.
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_distribution_agree() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for thousandth in 1..=1000_u64 {
            histogram.record(thousandth * 1_000_000).unwrap();
        }
        let summary = Summary::of(&histogram);
        assert_eq!(summary.count, 1000);
        for (figure, wanted) in [
            (summary.min_ms, 1.0),
            (summary.mean_ms, 500.5),
            (summary.p50_ms, 500.0),
            (summary.p99_ms, 990.0),
            (summary.p99_9_ms, 999.0),
            (summary.max_ms, 1000.0),
        ] {
            assert!((figure / wanted - 1.0).abs() < 0.001, "{figure} is not {wanted}");
        }
        assert!(summary.histogram.starts_with("HISTFAAA"), "{}", summary.histogram);
        assert_eq!(summary.distribution().unwrap(), histogram);
    }

    #[test]
    fn nothing_measured_is_no_distribution() {
        let summary = Summary::of(&Histogram::<u64>::new(3).unwrap());
        assert_eq!(summary, Summary::default());
        assert!(summary.distribution().is_none());
    }

    #[test]
    fn what_is_no_histogram_is_none() {
        for text in ["!", "HISTFAAAAAAA", "aGVsbG8gd29ybGQ="] {
            let summary = Summary { histogram: text.to_owned(), ..Summary::default() };
            assert!(summary.distribution().is_none(), "{text}");
        }
    }
}
