//! Formats wall-clock times as RFC 3339. The time is an argument; always in UTC.

use std::fmt;
use std::time::Duration;

/// A moment in UTC with milliseconds: `2026-11-20T06:13:00.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp([u8; 24]);

impl Timestamp {
    /// Returns the text as ASCII bytes.
    pub fn as_bytes(&self) -> &[u8; 24] {
        &self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only digits and punctuation, all ASCII.
        f.write_str(str::from_utf8(&self.0).unwrap_or_default())
    }
}

/// Creates [`Timestamp`]s, and recomputes the calendar only when the second changes. One per
/// worker.
#[derive(Clone, Debug)]
pub struct TimestampCache {
    second: u64,
    text: Timestamp,
}

impl Default for TimestampCache {
    fn default() -> TimestampCache {
        TimestampCache { second: 0, text: Timestamp(*b"1970-01-01T00:00:00.000Z") }
    }
}

/// The last second of a four-digit year, the maximum of RFC 3339.
const SECOND_MAX: u64 = 253_402_300_799;

impl TimestampCache {
    /// Returns the text for `since_epoch`, the time since 1970-01-01T00:00:00Z without leap
    /// seconds.
    pub fn at(&mut self, since_epoch: Duration) -> Timestamp {
        let second = since_epoch.as_secs().min(SECOND_MAX);
        if second != self.second {
            self.second = second;
            self.write_second();
        }
        let mut text = self.text;
        put(&mut text.0[20..23], since_epoch.subsec_millis());
        text
    }

    fn write_second(&mut self) {
        let (year, month, day) = civil((self.second / 86_400) as u32);
        let of_day = (self.second % 86_400) as u32;
        let text = &mut self.text.0;
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        put(&mut text[11..13], of_day / 3_600);
        put(&mut text[14..16], of_day / 60 % 60);
        put(&mut text[17..19], of_day % 60);
    }
}

/// Returns year, month and day of the `day`-th day after 1970-01-01, in the Gregorian calendar.
///
/// Years are counted from the 1st of March, so that a leap day is a year's last, and in eras of 400
/// years, after which the calendar repeats.
fn civil(day: u32) -> (u32, u32, u32) {
    const ERA_DAYS: u32 = 146_097;
    // 1970-01-01 is this many days after 0000-03-01.
    let day = day + 719_468;
    let (era, day_of_era) = (day / ERA_DAYS, day % ERA_DAYS);
    // Removes the leap days: one in 4 years, none in 100, one in 400.
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (ERA_DAYS - 1);
    let year_of_era = (day_of_era - leap_days) / 365;
    let first_day = 365 * year_of_era + year_of_era / 4 - year_of_era / 100;
    let day_of_year = day_of_era - first_day;
    // From March on, five months in turn have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) =
        if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (era * 400 + year_of_era + next_year, month, day_of_month)
}

/// Writes `number` into all of `digits`, with leading zeros.
fn put(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cache: &mut TimestampCache, seconds: u64, millis: u64) -> String {
        let at = cache.at(Duration::from_secs(seconds) + Duration::from_millis(millis));
        String::from_utf8(at.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn known_times_read_as_they_should() {
        let mut cache = TimestampCache::default();
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 1, "2000-02-29T00:00:00.001Z"),
            (951_868_800, 0, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800, 0, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599, 0, "2024-12-31T23:59:59.000Z"),
            (1_763_619_180, 123, "2025-11-20T06:13:00.123Z"),
            (1_763_619_180, 7, "2025-11-20T06:13:00.007Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (SECOND_MAX, 0, "9999-12-31T23:59:59.000Z"),
            (u64::MAX / 2, 0, "9999-12-31T23:59:59.000Z"),
            (0, 5, "1970-01-01T00:00:00.005Z"),
        ] {
            assert_eq!(text(&mut cache, seconds, millis), expected);
        }
    }

    #[test]
    fn every_day_of_a_thousand_years_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for n in 0..366_000 {
            assert_eq!(civil(n), (year, month, day));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = match month {
                4 | 6 | 9 | 11 => 30,
                2 if leap => 29,
                2 => 28,
                _ => 31,
            };
            day += 1;
            if day > days {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
