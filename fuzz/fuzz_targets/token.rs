//! Any bytes as a token, which must be denied, and any header and claims in a token with a good
//! signature, divided by the first line break.
#![no_main]

use std::sync::LazyLock;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use identity::{Algorithm, Claim, KeySet, Rules, Secrets, token};
use libfuzzer_sys::fuzz_target;

const NOW_S: u64 = 1_700_000_000;

/// Of SHA-256, in base64url 43 times `A`.
const SECRET: [u8; 32] = [0; 32];

static KEYS: LazyLock<KeySet> = LazyLock::new(|| {
    let secret = BASE64_URL_SAFE_NO_PAD.encode(SECRET);
    let set = format!(r#"{{"keys":[{{"kty":"oct","kid":"k","k":"{secret}"}}]}}"#);
    KeySet::parse(set.as_bytes(), Secrets::Accepted).expect("a valid set")
});

fuzz_target!(|data: &[u8]| {
    let rules = Rules { algorithms: Algorithm::ALL.to_vec(), ..Rules::default() };
    if let Ok(token) = str::from_utf8(data) {
        let denied = token::verify(token, &KEYS, &rules, NOW_S).expect_err("a forged token");
        assert!(!denied.to_string().contains(char::is_control));
    }

    let middle = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (header, claims) = (&data[..middle], data.get(middle + 1..).unwrap_or_default());
    let [header, claims] = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part));
    let message = format!("{header}.{claims}");
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &SECRET), message.as_bytes());
    let token = format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature));
    let claims = match token::verify(&token, &KEYS, &rules, NOW_S) {
        Ok(claims) => claims,
        Err(denied) => return assert!(!denied.to_string().contains(char::is_control)),
    };

    assert!(claims.expires_at_s().is_some_and(|expires_at_s| expires_at_s + 60 > NOW_S));
    for path in ["sub", "aud", "a", "a.b", "a.b.c", "."] {
        if let Ok(Some(value)) = claims.header_value(path) {
            assert!(!value.is_empty() && !value.contains(char::is_control));
        }
        let Some(claim) = claims.claim(path) else { continue };
        match &claim {
            Claim::Text(text) => assert!(claims.contains(path, text)),
            Claim::List(items) => assert!(items.iter().all(|item| claims.contains(path, item))),
        }
    }
    // Nothing else is accepted once it has expired.
    assert!(token::verify(&token, &KEYS, &rules, u64::MAX).is_err());
});
