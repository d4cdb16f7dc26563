//! Parses a server's promise in the Keep-Alive field.

use std::time::Duration;

/// The longest promise that is accepted: a day.
const TIMEOUT_MAX_S: u64 = 24 * 60 * 60;

/// A response's `Keep-Alive: timeout=5, max=100` (RFC 2068 section 19.7.1.1; the field survives in
/// practice, its parameters as in draft-thomson-hybi-http-timeout).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promise {
    /// The minimum time for which the server leaves the connection open.
    pub timeout: Option<Duration>,
    /// How many more requests it will accept on it.
    pub requests_left: Option<u32>,
}

impl Promise {
    /// No promise.
    pub const NONE: Promise = Promise { timeout: None, requests_left: None };

    /// Parses the field's value. Unknown parameters are ignored; of two of one name the lower
    /// counts.
    pub fn parse(value: &[u8]) -> Promise {
        let mut promise = Promise::NONE;
        for parameter in value.split(|&byte| byte == b',') {
            let Some(equals) = parameter.iter().position(|&byte| byte == b'=') else { continue };
            let (name, number) = (parameter[..equals].trim_ascii(), &parameter[equals + 1..]);
            let Some(number) = number_of(number.trim_ascii()) else { continue };
            if name.eq_ignore_ascii_case(b"timeout") {
                let timeout = Duration::from_secs(number.min(TIMEOUT_MAX_S));
                promise.timeout = Some(promise.timeout.map_or(timeout, |t| t.min(timeout)));
            } else if name.eq_ignore_ascii_case(b"max") {
                let max = u32::try_from(number).unwrap_or(u32::MAX);
                promise.requests_left = Some(promise.requests_left.map_or(max, |m| m.min(max)));
            }
        }
        promise
    }
}

/// Parses a decimal number, quoted or not.
fn number_of(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(text);
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = text.iter().map(|byte| u64::from(byte - b'0'));
    Some(digits.fold(0, |number: u64, digit| number.saturating_mul(10).saturating_add(digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_servers_send_them() {
        let promise = |timeout: Option<u64>, requests_left| Promise {
            timeout: timeout.map(Duration::from_secs),
            requests_left,
        };
        for (value, expected) in [
            ("timeout=5", promise(Some(5), None)),
            ("timeout=5, max=100", promise(Some(5), Some(100))),
            ("Timeout = \"15\",MAX=0", promise(Some(15), Some(0))),
            ("max=3", promise(None, Some(3))),
            ("timeout=60, timeout=5", promise(Some(5), None)),
            ("timeout=99999999999999999999999", promise(Some(86_400), None)),
            ("300", Promise::NONE),
            ("timeout", Promise::NONE),
            ("timeout=", Promise::NONE),
            ("timeout=-1", Promise::NONE),
            ("timeout=5s", Promise::NONE),
            ("timeout=\"", Promise::NONE),
            (",,=,", Promise::NONE),
            ("", Promise::NONE),
        ] {
            assert_eq!(Promise::parse(value.as_bytes()), expected, "{value}");
        }
    }
}
