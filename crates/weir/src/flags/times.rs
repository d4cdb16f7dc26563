//! Times as they are typed: as in the configuration.

use std::time::Duration;

/// A time that is longer than 0.
pub(super) fn duration_above_zero(text: &str) -> Result<Duration, String> {
    match duration(text) {
        Ok(time) if time.is_zero() => Err("longer than 0".to_owned()),
        read => read,
    }
}

/// A time as it is written in the configuration: `300ms`, `5s`, `2m`, `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("a time is a whole number and a unit: 300ms, 5s, 2m, 1h".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "no number before the unit".to_owned())?;
    number
        .checked_mul(scale_ms)
        .map(Duration::from_millis)
        .ok_or_else(|| "longer than Weir can count".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_in_the_configuration() {
        assert_eq!(duration("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(duration("1h"), Ok(Duration::from_hours(1)));
        assert!(duration("18446744073709551615h").is_err());
        assert!(duration("-1s").is_err());
    }
}
