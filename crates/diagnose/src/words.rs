//! Figures for people: thousands apart, units chosen, three digits that count.

use std::time::Duration;

/// `1234567` → `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate or a share with three digits that count: `0.0123`, `4.57`, `123`, `12,345`.
pub fn number(figure: f64) -> String {
    let size = figure.abs();
    if !figure.is_finite() {
        return "unknown".to_owned();
    }
    if size >= 99.95 {
        let sign = if figure < 0.0 { "-" } else { "" };
        return format!("{sign}{}", thousands(size.round() as u64));
    }
    let decimals = if size >= 9.995 {
        1
    } else if size >= 0.9995 {
        2
    } else if size >= 0.0095 {
        3
    } else {
        5
    };
    let text = format!("{figure:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in the largest binary unit that fits: `32 GiB`, `85.3 KiB`, `4,095 bytes`.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|&&(_, size)| count >= size) {
        Some(&(unit, size)) => format!("{} {unit}", number(count as f64 / size as f64)),
        None => plural(count, "byte"),
    }
}

/// A share of one as per cent: `0.031` → `3.1 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// A duration in the largest unit that fits: `1.5 s`, `20 ms`, `350 µs`.
pub fn duration(duration: Duration) -> String {
    let micros = duration.as_micros() as f64;
    if micros >= 999_500.0 {
        format!("{} s", number(micros / 1e6))
    } else if micros >= 999.5 {
        format!("{} ms", number(micros / 1e3))
    } else {
        format!("{} µs", number(micros))
    }
}

/// `1 socket`, `2 sockets`.
pub fn plural(count: u64, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} {thing}{s}", thousands(count))
}

/// Returns the sum of figures from outside, at most the largest number.
pub(crate) fn sum(figures: impl IntoIterator<Item = u64>) -> u64 {
    figures.into_iter().fold(0, u64::saturating_add)
}

/// `a`, `a and b`, `a, b and c`; beyond `shown_max`, how many more.
pub fn list(things: &[String], shown_max: usize) -> String {
    let more = things.len().saturating_sub(shown_max);
    if more > 0 {
        return format!("{} and {} more", things[..shown_max].join(", "), thousands(more as u64));
    }
    match things {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// Returns the command that takes a server out: `weir drain shop 10.0.0.2:80`.
pub(crate) fn drain(service: &str, server: model::Address) -> String {
    format!("weir drain {service} {server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_that_count() {
        let cases = [
            (0.0, "0"),
            (0.000_12, "0.00012"),
            (0.0123, "0.012"),
            (0.5, "0.5"),
            (1.0, "1"),
            (3.456, "3.46"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1,235"),
            (-2.5, "-2.5"),
            (f64::NAN, "unknown"),
        ];
        for (figure, expected) in cases {
            assert_eq!(number(figure), expected);
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(8_388_608), "8,388,608");
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn bytes_have_their_unit() {
        assert_eq!(bytes(8_388_608 * 4096), "32 GiB");
        assert_eq!(bytes(873_800), "853 KiB");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(1023), "1,023 bytes");
    }

    #[test]
    fn durations_have_the_unit_that_fits() {
        let cases = [
            (350, "350 µs"),
            (20_100, "20.1 ms"),
            (999_400, "999 ms"),
            (999_600, "1 s"),
            (1_502_000, "1.5 s"),
        ];
        for (micros, expected) in cases {
            assert_eq!(duration(Duration::from_micros(micros)), expected);
        }
    }

    #[test]
    fn lists_end_somewhere() {
        let things: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(list(&things, 3), "a, b and c");
        assert_eq!(list(&things, 2), "a, b and 1 more");
        assert_eq!(list(&things[..1], 2), "a");
    }
}
