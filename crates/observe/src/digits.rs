//! Formats numbers into a buffer, as `std::fmt` does, at a fraction of its cost, for the access
//! line, which is written once per request.

use std::time::Duration;

/// Appends `number` in decimal.
pub(crate) fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    const PAIRS: [[u8; 2]; 100] = pairs();
    // The largest u64 has 20 digits.
    let mut text = [0_u8; 20];
    let mut at = text.len();
    while number >= 100 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
    }
    if number >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[number as usize]);
    } else {
        at -= 1;
        text[at] = b'0' + number as u8;
    }
    out.extend_from_slice(&text[at..]);
}

/// Appends `duration` in milliseconds with three decimals, truncated below a microsecond.
pub(crate) fn push_millis(out: &mut Vec<u8>, duration: Duration) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    push_u64(out, micros / 1_000);
    let below = (micros % 1_000) as u16;
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[b'.', digit(below / 100), digit(below / 10), digit(below)]);
}

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_std_writes() {
        let mut numbers = vec![0, 1, 9, 10, 11, 99, 100, 101, 999, 1_000, u64::MAX];
        numbers.extend((0..64).flat_map(|bit| [1_u64 << bit, (1_u64 << bit) - 1]));
        for number in numbers {
            let mut out = Vec::new();
            push_u64(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn milliseconds_keep_microseconds() {
        for (duration, text) in [
            (Duration::ZERO, "0.000"),
            (Duration::from_nanos(1_999), "0.001"),
            (Duration::from_micros(12_345), "12.345"),
            (Duration::from_micros(1_000_050), "1000.050"),
            (Duration::MAX, "18446744073709551.615"),
        ] {
            let mut out = Vec::new();
            push_millis(&mut out, duration);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
