//! Durations, sizes and status ranges of the configuration's text.

use std::time::Duration;

use model::units::{self, NotAQuantity};

use crate::diagnostic::Wrong;

/// `300ms`, `1.5s`, `2m`, `1h`, `1d`. Configurations count in milliseconds.
pub(crate) fn duration(text: &str) -> Result<Duration, Wrong> {
    let duration = units::duration(text)?;
    if !duration.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(Wrong::new("not a whole number of milliseconds"));
    }
    Ok(duration)
}

/// `512B`, `16kB`, `1MiB`, in bytes.
pub(crate) fn size(text: &str) -> Result<u64, Wrong> {
    Ok(units::size(text)?)
}

impl From<NotAQuantity> for Wrong {
    fn from(error: NotAQuantity) -> Self {
        Wrong::new(error.why).help(error.help)
    }
}

/// `200`, `2xx` or `200-399`: an inclusive range of status codes.
pub(crate) fn status_range(text: &str) -> Result<(u16, u16), Wrong> {
    let wrong = || {
        Wrong::new("not a status or a range of statuses")
            .help("write 200, [200, 204], \"2xx\" or \"200-399\"")
    };
    let one = |text: &str| {
        let text = text.trim();
        let digits = text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| digits).ok_or_else(wrong)
    };
    let (low, high) = match (text.as_bytes(), text.split_once('-')) {
        ([class @ b'1'..=b'9', b'x' | b'X', b'x' | b'X'], _) => {
            let first = u16::from(class - b'0') * 100;
            (first, first + 99)
        }
        (_, Some((low, high))) => (one(low)?, one(high)?),
        (_, None) => (one(text)?, one(text)?),
    };
    if low > high {
        return Err(
            Wrong::new("the range ends before it begins").help(format!("write \"{high}-{low}\""))
        );
    }
    // 1xx are never final (RFC 9110 section 15.2), so no probe could succeed with one.
    if low < 200 || high > 599 {
        return Err(Wrong::new("a final status is between 200 and 599"));
    }
    Ok((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_milliseconds() {
        assert_eq!(duration("0.5s").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("2000us").unwrap(), Duration::from_millis(2));
        for text in ["20us", "1500us", "0.5ms"] {
            assert_eq!(duration(text).unwrap_err().why, "not a whole number of milliseconds");
        }
        assert_eq!(duration("5").unwrap_err().help.unwrap(), "write \"5s\" or \"5ms\"");
    }

    #[test]
    fn status_ranges_are_read_or_refused() {
        assert_eq!(status_range("200-399").unwrap(), (200, 399));
        assert_eq!(status_range("2xx").unwrap(), (200, 299));
        assert_eq!(status_range("5XX").unwrap(), (500, 599));
        for text in ["", "2000", "299-200", "100", "1xx", "6xx", "xxx", "5x", "200-", "+20", "²00"]
        {
            assert!(status_range(text).is_err(), "{text}");
        }
    }
}
