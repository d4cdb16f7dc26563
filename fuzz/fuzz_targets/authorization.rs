//! Any bytes as an `Authorization` field, a realm and an identity in a header.
#![no_main]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use identity::authorization::{BASIC_MAX_BYTES, basic, bearer};
use identity::challenge::{self, BearerError};
use identity::header_value;
use identity::token::TOKEN_MAX_BYTES;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(credentials) = basic(data) {
        assert!(data.len() <= BASIC_MAX_BYTES);
        let (user, password) = (credentials.user(), credentials.password());
        assert!(!user.is_empty() && !user.contains(':') && !user.contains(char::is_control));
        assert!(!password.iter().any(u8::is_ascii_control));
        // There is one spelling, but for the scheme and spaces.
        let encoded = BASE64_STANDARD.encode([user.as_bytes(), b":", password].concat());
        assert!(data.ends_with(encoded.as_bytes()));
        assert_eq!(basic(format!("Basic {encoded}").as_bytes()), Ok(credentials));
        assert!(bearer(data).is_err());
    }
    if let Ok(token) = bearer(data) {
        assert!(!token.is_empty() && token.len() <= TOKEN_MAX_BYTES);
        assert!(token.bytes().all(|b| b.is_ascii_graphic() && b != b',' && b != b'"'));
        assert_eq!(bearer(format!("Bearer {token}").as_bytes()), Ok(token));
    }

    let text = String::from_utf8_lossy(data);
    check_challenge(&challenge::basic(&text), 2);
    check_challenge(&challenge::bearer(&text, None), 1);
    check_challenge(&challenge::bearer(&text, Some(BearerError::InvalidToken(&text))), 3);

    if let Ok(value) = header_value::check(&text) {
        assert_eq!(value, text);
        assert!(!value.contains(char::is_control) && value.trim() == value && !value.is_empty());
    }
    let elements: Vec<&str> = text.split('|').collect();
    if let Ok(joined) = header_value::join(elements.iter().copied()) {
        assert_eq!(joined.split(',').collect::<Vec<_>>(), elements);
    }
});

/// Whether `value` is printable ASCII with `count` quoted strings, all of them closed.
fn check_challenge(value: &str, count: usize) {
    assert!(value.bytes().all(|b| matches!(b, b' '..=b'~')) && value.len() < 1000);
    let (mut quotes, mut is_escaped) = (0, false);
    for byte in value.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => quotes += 1,
            _ => {}
        }
    }
    assert_eq!(quotes, 2 * count);
    assert!(!is_escaped);
}
