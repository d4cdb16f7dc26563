//! The `Date` field's value (IMF-fixdate, RFC 9110 section 5.6.7), formatted by `httpdate`.

use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use httpdate::HttpDate;

/// The last second that has an IMF-fixdate: 9999-12-31T23:59:59Z.
pub const UNIX_SECONDS_MAX: u64 = 253_402_300_799;

/// Appends `Sun, 06 Nov 1994 08:49:37 GMT` for seconds since 1970-01-01T00:00:00Z. Later times
/// than [`UNIX_SECONDS_MAX`], which `httpdate` refuses with a panic, are written as that second.
pub fn put_imf_fixdate(out: &mut Vec<u8>, unix_seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(unix_seconds.min(UNIX_SECONDS_MAX));
    // Writing to a Vec cannot fail. `HttpDate` formats on the stack.
    let _ = write!(out, "{}", HttpDate::from(time));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        let text = |seconds| {
            let mut out = b"Date: ".to_vec();
            put_imf_fixdate(&mut out, seconds);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0), "Date: Thu, 01 Jan 1970 00:00:00 GMT");
        // RFC 9110's own example.
        assert_eq!(text(784_111_777), "Date: Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(951_782_400), "Date: Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(text(4_107_542_400), "Date: Mon, 01 Mar 2100 00:00:00 GMT");
        assert_eq!(text(UNIX_SECONDS_MAX), "Date: Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(text(u64::MAX), text(UNIX_SECONDS_MAX));
    }
}
