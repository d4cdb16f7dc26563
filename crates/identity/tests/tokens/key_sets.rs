//! Key sets: which keys are used, which are skipped and why, and hostile sets.

use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RsaKeyPair};
use identity::keys::{KEY_SET_MAX_BYTES, KEYS_MAX};
use identity::{KeySet, Secrets};

use crate::signing::{CLAIMS, Signers, encoded, key_set, rsa_numbers, verify};

/// Returns why the only key of a set is refused.
fn refused(key: &str) -> String {
    let set = format!(r#"{{"keys":[{key}]}}"#);
    KeySet::parse(set.as_bytes(), Secrets::Accepted)
        .err()
        .unwrap_or_else(|| panic!("accepted: {key}"))
        .to_string()
}

#[test]
fn unusable_keys_are_skipped_with_their_reason() {
    let signers = Signers::new();
    let keys = key_set(&[
        signers.rsa_jwk(r#","use":"enc","kid":"for encryption""#),
        signers.ec_jwk(r#","kid":"good","use":"sig","key_ops":["verify"]"#),
        r#"{"kty":"quantum","kid":"new"}"#.to_owned(),
    ]);
    assert_eq!(keys.len(), 1);
    assert_eq!(keys.kids().collect::<Vec<_>>(), ["good"]);
    let reasons: Vec<String> = keys.skipped().iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "key 1 (kid `for encryption`) is not used: `use` is `enc`, not `sig`",
            "key 3 (kid `new`) is not used: `kty` is `quantum`, which is not supported",
        ]
    );
    assert!(verify(&signers.token("ES256", "", CLAIMS), &keys).is_ok());
    assert!(verify(&signers.token("RS256", "", CLAIMS), &keys).is_err());
}

#[test]
fn keys_are_refused_for_what_they_are() {
    let signers = Signers::new();
    let ec = signers.ec_jwk("");
    let ed = signers.ed_jwk("");
    let rsa = signers.rsa_jwk("");
    let n_of = |bits: usize| encoded([&[0x80][..], &vec![0xff; bits / 8 - 1]].concat());
    for (key, word) in [
        ("1".to_owned(), "not a JSON object"),
        ("{}".to_owned(), "`kty` is missing"),
        (r#"{"kty":1}"#.to_owned(), "`kty` is not a string"),
        (signers.ec_jwk(r#","alg":"RS256""#), "does not fit the key"),
        (signers.ec_jwk(r#","alg":"ES384""#), "does not fit the key"),
        (signers.rsa_jwk(r#","alg":"HS256""#), "does not fit the key"),
        (signers.rsa_jwk(r#","alg":"RSA-OAEP""#), "`RSA-OAEP`"),
        (signers.rsa_jwk(r#","alg":"none""#), "`none`"),
        (signers.secret_jwk(r#","alg":"RS256""#), "does not fit the key"),
        (signers.ec_jwk(r#","alg":5"#), "`alg` is not a string"),
        (signers.ec_jwk(r#","use":"enc""#), "`use` is `enc`"),
        (signers.ec_jwk(r#","use":null"#), "`use` is not a string"),
        (signers.ec_jwk(r#","key_ops":["sign"]"#), "does not contain `verify`"),
        (signers.ec_jwk(r#","key_ops":[]"#), "does not contain `verify`"),
        (signers.ec_jwk(r#","key_ops":"verify""#), "not a list"),
        (signers.ec_jwk(r#","kid":7"#), "`kid` is not a string"),
        (signers.ec_jwk(&format!(r#","kid":"{}""#, "x".repeat(257))), "longer than 256"),
        (signers.ec_jwk(r#","d":"AAAA""#), "private key"),
        (signers.rsa_jwk(r#","d":"AAAA""#), "private key"),
        (ec.replace("P-256", "P-384"), "instead of 48"),
        (ec.replace("P-256", "secp256k1"), "not supported"),
        (ec.replace(r#""crv":"P-256","#, ""), "`crv` is missing"),
        (ec.replace(r#""y":"#, r#""z":"#), "`y` is missing"),
        (ec.replace(r#""y":""#, r#""y":"+"#), "base64url"),
        (ec.replace(r#""y":""#, r#""y":"AAAA"#), "35 bytes"),
        (ed.replace("Ed25519", "X25519"), "not supported"),
        (ed.replace("Ed25519", "Ed448"), "not supported"),
        (rsa.replace("AQAB", "AQ"), "not a valid key"),
        (rsa.replace("AQAB", "AA"), "not a valid key"),
        (rsa.replace("AQAB", "AQAA"), "not a valid key"),
        (rsa.replace("AQAB", "AQAAAAAAAAAB"), "not a valid key"),
        (rsa.replace("AQAB", ""), "not a valid key"),
        (rsa.replace("AQAB", "AQAB=="), "base64url"),
        (format!(r#"{{"kty":"RSA","e":"AQAB","n":"{}"}}"#, n_of(1024)), "has 1024 bits"),
        (format!(r#"{{"kty":"RSA","e":"AQAB","n":"{}"}}"#, n_of(2040)), "has 2040 bits"),
        (format!(r#"{{"kty":"RSA","e":"AQAB","n":"{}"}}"#, n_of(8200)), "has 8200 bits"),
        (r#"{"kty":"RSA","e":"AQAB","n":""}"#.to_owned(), "has 0 bits"),
        (r#"{"kty":"RSA","e":"AQAB"}"#.to_owned(), "`n` is missing"),
        (r#"{"kty":"oct","k":"c2hvcnQ"}"#.to_owned(), "shorter than 32"),
        (format!(r#"{{"kty":"oct","k":"{}"}}"#, encoded([0; 1025])), "longer than 1024"),
        (r#"{"kty":"oct"}"#.to_owned(), "`k` is missing"),
    ] {
        let message = refused(&key);
        assert!(message.contains(word), "{key}: {message}");
    }
}

#[test]
fn points_must_be_on_their_curve() {
    for (curve, bytes) in [("P-256", 32), ("P-384", 48), ("P-521", 66)] {
        for byte in [0, 1, 0xff] {
            let x = encoded(vec![byte; bytes]);
            let key = format!(r#"{{"kty":"EC","crv":"{curve}","x":"{x}","y":"{x}"}}"#);
            assert!(refused(&key).contains("not a valid key"), "{curve}");
        }
    }
}

#[test]
fn secrets_are_used_only_if_allowed_and_long_enough_for_the_hash() {
    let signers = Signers::new();
    let set = format!(r#"{{"keys":[{}]}}"#, signers.secret_jwk(""));
    let refusal = KeySet::parse(set.as_bytes(), Secrets::Skipped).unwrap_err().to_string();
    assert!(refusal.contains("symmetric"), "{refusal}");
    // 40 bytes are enough for SHA-256 only.
    let short = encoded(&signers.secret[..40]);
    let key = |more: &str| format!(r#"{{"kty":"oct","k":"{short}"{more}}}"#);
    assert!(refused(&key(r#","alg":"HS512""#)).contains("does not fit"));
    assert!(refused(&key(r#","alg":"HS384""#)).contains("does not fit"));
    assert_eq!(key_set(&[key(r#","alg":"HS256""#)]).len(), 1);
    assert!(!format!("{:?}", key_set(&[key("")])).contains(&short));
    assert!(!refusal.contains(&encoded(signers.secret)));
}

#[test]
fn large_and_zero_padded_rsa_keys_work() {
    let pair = RsaKeyPair::generate(KeySize::Rsa4096).unwrap();
    let (n, e) = rsa_numbers(pair.public_key().as_ref());
    let padded = encoded([&[0][..], &n].concat());
    assert_eq!(
        key_set(&[format!(r#"{{"kty":"RSA","n":"{padded}","e":"{}"}}"#, encoded(e))]).len(),
        1
    );
    let signers = Signers::new();
    let (n, e) = rsa_numbers(signers.rsa.public_key().as_ref());
    let padded = encoded([&[0, 0][..], &n].concat());
    let keys = key_set(&[format!(r#"{{"kty":"RSA","n":"{padded}","e":"{}"}}"#, encoded(e))]);
    assert!(verify(&signers.token("RS256", "", CLAIMS), &keys).is_ok());
}

#[test]
fn sets_that_are_no_sets_are_refused() {
    let signers = Signers::new();
    let key = signers.ec_jwk("");
    for set in [
        String::new(),
        "null".to_owned(),
        format!("[{key}]"),
        key.clone(),
        r#"{"keys":{}}"#.to_owned(),
        r#"{"keys":null}"#.to_owned(),
        r#"{"keys":[]}"#.to_owned(),
        r#"{"Keys":[]}"#.to_owned(),
        format!(r#"{{"keys":[],"keys":[{key}]}}"#),
        format!(r#"{{"keys":[{}]}}"#, signers.ec_jwk(r#","kid":"a","kid":"b""#)),
        format!(r#"{{"keys":[{key}]}} <html>"#),
        format!(r#"{{"keys":[{key}"#),
        format!(r#"{{"keys":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000)),
        "<!DOCTYPE html><title>Sign in</title>".to_owned(),
        format!(r#"{{"keys":[{key}],"x":"{}"}}"#, "x".repeat(KEY_SET_MAX_BYTES)),
    ] {
        let error = KeySet::parse(set.as_bytes(), Secrets::Accepted).expect_err(&set).to_string();
        assert!(error.starts_with("the key set ") && error.len() < 200, "{error}");
    }
    // Other members of the set are ignored (RFC 7517 section 5).
    assert!(
        KeySet::parse(format!(r#"{{"a":[1],"keys":[{key}]}}"#).as_bytes(), Secrets::Accepted)
            .is_ok()
    );
}

#[test]
fn the_number_of_keys_is_bounded() {
    let signers = Signers::new();
    let keys = key_set(&vec![signers.ed_jwk(""); KEYS_MAX + 50]);
    assert_eq!(keys.len(), KEYS_MAX);
    let [rest] = keys.skipped() else { panic!("{:?}", keys.skipped()) };
    assert_eq!(rest.to_string(), "key 101 is not used: the set has 150 keys; 100 are read");
    let mut many = vec!["{}".to_owned(); 5000];
    many[0] = signers.ed_jwk("");
    assert_eq!(key_set(&many).skipped().len(), KEYS_MAX);
}

#[test]
fn texts_of_a_set_are_made_visible() {
    let kind = format!("\\u001b[2J\\n{}", "x".repeat(1000));
    let message = refused(&format!(r#"{{"kty":"{kind}","kid":"\r\nfake log line"}}"#));
    assert!(!message.contains(char::is_control) && message.len() < 250, "{message}");
}
