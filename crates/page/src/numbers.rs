//! Numbers and times as text.

/// Writes a number with at most so many decimals, without zeros at the end: `1.5`, `2`.
pub fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match decimals {
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// Writes seconds with at most so many decimals: `0.25 s`.
pub fn seconds(seconds: f64, decimals: usize) -> String {
    format!("{} s", trimmed(seconds, decimals))
}

/// Writes a time with three significant digits, from 1 s on in seconds: `0.123 ms`, `12.3 ms`, `1.23 s`.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 1_000.0 => format!("{:.2} s", ms / 1e3),
        ms if ms >= 100.0 => format!("{ms:.0} ms"),
        ms if ms >= 10.0 => format!("{ms:.1} ms"),
        ms if ms >= 1.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.3} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_needless_zeros() {
        for (value, decimals, text) in
            [(1.5, 3, "1.5"), (2.0, 3, "2"), (100.0, 0, "100"), (0.123_456, 3, "0.123")]
        {
            assert_eq!(trimmed(value, decimals), text);
        }
        assert_eq!(seconds(0.25, 3), "0.25 s");
        let times = [0.123, 1.234, 12.34, 123.4, 1_234.0, 12_340.0];
        let texts = ["0.123 ms", "1.23 ms", "12.3 ms", "123 ms", "1.23 s", "12.3 s"];
        assert_eq!(times.map(milliseconds), texts);
    }
}
