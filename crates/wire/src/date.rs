//! The Date field's format (IMF-fixdate, RFC 9110 section 5.6.7). Formatting only: callers write
//! once a second and keep the bytes.

/// The length of an IMF-fixdate in bytes.
pub const IMF_FIXDATE_BYTES: usize = 29;

/// The last second that has an IMF-fixdate: 9999-12-31T23:59:59Z.
pub const UNIX_SECONDS_MAX: u64 = 253_402_300_799;

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// `Sun, 06 Nov 1994 08:49:37 GMT` for seconds since 1970-01-01T00:00:00Z. Times after the year
/// 9999 yield its last second.
pub fn imf_fixdate(unix_seconds: u64) -> [u8; IMF_FIXDATE_BYTES] {
    let seconds = unix_seconds.min(UNIX_SECONDS_MAX);
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_from_days(days);

    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    out[0..3].copy_from_slice(DAYS[(days % 7) as usize]);
    two_digits(&mut out[5..7], day);
    out[8..11].copy_from_slice(MONTHS[(month - 1) as usize]);
    two_digits(&mut out[12..14], year / 100);
    two_digits(&mut out[14..16], year % 100);
    two_digits(&mut out[17..19], second_of_day / 3_600);
    two_digits(&mut out[20..22], second_of_day / 60 % 60);
    two_digits(&mut out[23..25], second_of_day % 60);
    out
}

fn two_digits(out: &mut [u8], value: u64) {
    out[0] = b'0' + (value / 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

/// Year, month (1 to 12) and day (1 to 31) of a day counted from 1970-01-01, in the proleptic
/// Gregorian calendar. Years are counted from March, so that the leap day is the last of a year
/// and months follow a linear rule.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seconds: u64) -> String {
        String::from_utf8(imf_fixdate(seconds).to_vec()).unwrap()
    }

    #[test]
    fn known_dates() {
        assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT"); // RFC 9110's own example
        assert_eq!(text(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(text(951_868_800), "Wed, 01 Mar 2000 00:00:00 GMT");
        assert_eq!(text(1_709_164_799), "Wed, 28 Feb 2024 23:59:59 GMT");
        assert_eq!(text(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT"); // 2100 is no leap year
        assert_eq!(text(UNIX_SECONDS_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(text(u64::MAX), text(UNIX_SECONDS_MAX));
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let leap =
            |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(civil_from_days(days), (year, month, day));
            let length = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }
}
