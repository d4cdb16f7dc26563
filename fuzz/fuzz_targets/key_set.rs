//! Any bytes as a key set. What is listed is bounded and visible, and no key verifies a signature of
//! zeros.
#![no_main]

use identity::keys::{KEYS_MAX, KID_MAX_BYTES};
use identity::{Algorithm, KeySet, Rules, Secrets, token};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let keys = match KeySet::parse(data, Secrets::Accepted) {
        Ok(keys) => keys,
        Err(bad) => {
            let shown = bad.to_string();
            assert!(!shown.contains(char::is_control) && shown.len() < 2000);
            assert!(KeySet::parse(data, Secrets::Skipped).is_err());
            return;
        }
    };
    assert!((1..=KEYS_MAX).contains(&keys.len()));
    assert!(keys.skipped().len() <= KEYS_MAX + 1);
    assert!(keys.kids().all(|kid| kid.len() <= KID_MAX_BYTES));
    for skipped in keys.skipped() {
        assert!(!skipped.to_string().contains(char::is_control));
    }
    if let Ok(fewer) = KeySet::parse(data, Secrets::Skipped) {
        assert!(fewer.len() <= keys.len());
    }
    let rules = Rules { algorithms: Algorithm::ALL.to_vec(), ..Rules::default() };
    // {"alg":"RS256"}, {"alg":"ES256"}, {"alg":"HS256"}, {"exp":9e9}
    for header in ["eyJhbGciOiJSUzI1NiJ9", "eyJhbGciOiJFUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9"] {
        for length in [32, 64, 256] {
            let token = format!("{header}.eyJleHAiOjllOX0.{}", "AAAA".repeat(length / 4));
            assert!(token::verify(&token, &keys, &rules, 1_700_000_000).is_err());
        }
    }
});
