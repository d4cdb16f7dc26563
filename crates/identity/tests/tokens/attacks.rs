//! Known attacks on tokens, each made for real with keys that sign.

use aws_lc_rs::hmac::HMAC_SHA256;
use aws_lc_rs::signature::KeyPair as _;
use identity::{Denied, KeySet, Secrets};

use crate::signing::{CLAIMS, Signers, encoded, hmac, key_set, verify};

fn malformed(result: Result<identity::Claims, Denied>) -> bool {
    matches!(result, Err(Denied::Malformed(_)))
}

#[test]
fn honest_tokens_pass() {
    let signers = Signers::new();
    let keys = signers.all();
    for (algorithm, kid) in [
        ("RS256", "rsa"),
        ("PS256", "rsa"),
        ("ES256", "ec"),
        ("EdDSA", "ed"),
        ("HS256", "secret"),
        ("HS512", "secret"),
    ] {
        let token = signers.token(algorithm, &format!(r#","kid":"{kid}""#), CLAIMS);
        assert!(verify(&token, &keys).unwrap().contains("sub", "anna"), "{algorithm}");
        let token = signers.token(algorithm, "", CLAIMS);
        assert!(verify(&token, &keys).is_ok(), "{algorithm} without kid");
    }
}

#[test]
fn unsigned_tokens_are_refused_however_none_is_spelled() {
    let signers = Signers::new();
    let keys = signers.all();
    for name in ["none", "None", "NONE", "nOnE", "none ", "", "null", "HS256\0", "hs256", "rs256"] {
        for signature in ["", "AAAA"] {
            let header = encoded(format!(r#"{{"alg":"{name}","kid":"rsa"}}"#));
            let token = format!("{header}.{}.{signature}", encoded(CLAIMS));
            assert!(verify(&token, &keys).is_err(), "{name}");
        }
    }
    // Without a signature, though with an algorithm.
    let token = signers.token("RS256", "", CLAIMS);
    let stripped = &token[..=token.rfind('.').unwrap()];
    assert_eq!(verify(stripped, &keys), Err(Denied::Signature));
    assert!(malformed(verify(stripped.trim_end_matches('.'), &keys)));
}

#[test]
fn a_public_key_is_never_a_secret() {
    let signers = Signers::new();
    // Even if the rules allow HMAC and the set has a secret of its own.
    let keys = signers.all();
    let public_texts: Vec<Vec<u8>> = vec![
        signers.rsa.public_key().as_ref().to_vec(),
        signers.ec.public_key().as_ref().to_vec(),
        signers.ed.public_key().as_ref().to_vec(),
        signers.rsa_jwk("").into_bytes(),
        encoded(signers.rsa.public_key()).into_bytes(),
    ];
    for kid in ["", r#","kid":"rsa""#, r#","kid":"ec""#, r#","kid":"ed""#] {
        for secret in &public_texts {
            let header = format!(r#"{{"alg":"HS256"{kid}}}"#);
            let message = format!("{}.{}", encoded(header), encoded(CLAIMS));
            let signature = hmac(HMAC_SHA256, secret, message.as_bytes());
            let token = format!("{message}.{}", encoded(signature));
            assert!(verify(&token, &keys).is_err(), "{kid}");
        }
    }
}

#[test]
fn the_header_does_not_choose_the_algorithm_of_a_key() {
    let signers = Signers::new();
    let keys = signers.all();
    for (signed_with, claimed, kid) in [
        ("RS256", "PS256", "rsa"),
        ("PS256", "RS256", "rsa"),
        ("RS256", "RS512", "rsa"),
        ("ES256", "EdDSA", "ed"),
        ("HS256", "HS512", "secret"),
    ] {
        let header = format!(r#"{{"alg":"{claimed}","kid":"{kid}"}}"#);
        let token = signers.signed(signed_with, &header, CLAIMS);
        assert_eq!(verify(&token, &keys), Err(Denied::Signature), "{signed_with} as {claimed}");
    }
    for (algorithm, kid) in
        [("RS256", "ec"), ("ES256", "rsa"), ("HS256", "rsa"), ("EdDSA", "secret")]
    {
        let token = signers.token(algorithm, &format!(r#","kid":"{kid}""#), CLAIMS);
        assert_eq!(verify(&token, &keys), Err(Denied::Algorithm), "{algorithm} with {kid}");
    }
    // Ed25519 has two names for one algorithm (RFC 9864).
    for more in ["", r#","alg":"EdDSA""#, r#","alg":"Ed25519""#] {
        let keys = key_set(&[signers.ed_jwk(more)]);
        for name in ["EdDSA", "Ed25519"] {
            let token = signers.signed("EdDSA", &format!(r#"{{"alg":"{name}"}}"#), CLAIMS);
            assert!(verify(&token, &keys).is_ok(), "{name}");
        }
    }
    // A key with `alg` serves no other algorithm, though its type would.
    let only_rs256 = key_set(&[signers.rsa_jwk(r#","alg":"RS256""#)]);
    assert!(verify(&signers.token("RS256", "", CLAIMS), &only_rs256).is_ok());
    assert_eq!(verify(&signers.token("PS256", "", CLAIMS), &only_rs256), Err(Denied::Algorithm));
    let only_hs512 = key_set(&[signers.secret_jwk(r#","alg":"HS512""#)]);
    assert_eq!(verify(&signers.token("HS256", "", CLAIMS), &only_hs512), Err(Denied::Algorithm));
}

#[test]
fn keys_that_a_token_brings_along_are_ignored() {
    let (honest, attacker) = (Signers::new(), Signers::new());
    let keys = key_set(&[honest.rsa_jwk("")]);
    for more in [
        format!(r#","jwk":{}"#, attacker.rsa_jwk("")),
        r#","jku":"https://attacker.example/keys""#.to_owned(),
        r#","x5u":"https://attacker.example/chain""#.to_owned(),
        r#","x5c":["MIIB"]"#.to_owned(),
    ] {
        let token = attacker.token("RS256", &more, CLAIMS);
        assert_eq!(verify(&token, &keys), Err(Denied::Signature), "{more}");
        // They do no harm either.
        assert!(verify(&honest.token("RS256", &more, CLAIMS), &keys).is_ok(), "{more}");
    }
}

#[test]
fn identifiers_are_compared_and_nothing_else() {
    let signers = Signers::new();
    let keys = signers.all();
    for kid in ["../../dev/null", "rsa' OR '1'='1", "rsa\\u0000", "RSA", "", "|sleep 9", "rsa "] {
        let denied = verify(&signers.token("RS256", &format!(r#","kid":"{kid}""#), CLAIMS), &keys);
        assert!(matches!(denied, Err(Denied::UnknownKey { .. })), "{kid}");
    }
    for kid in ["1", "null", "[]", "{}", "true", "[\"rsa\"]"] {
        assert!(malformed(verify(
            &signers.token("RS256", &format!(r#","kid":{kid}"#), CLAIMS),
            &keys
        )));
    }
    let long = format!(r#","kid":"{}""#, "x".repeat(257));
    assert!(malformed(verify(&signers.token("RS256", &long, CLAIMS), &keys)));
    // What is logged has no control characters and is short.
    let hostile = format!(r#","kid":"\r\nadmin logged in\u001b[2J{}""#, "x".repeat(200));
    let denied = verify(&signers.token("RS256", &hostile, CLAIMS), &keys).unwrap_err();
    let shown = denied.to_string();
    assert!(!shown.contains(char::is_control) && shown.len() < 150, "{shown}");
    assert_eq!(denied.reason(), "token_unknown_key");
}

#[test]
fn several_keys_of_one_identifier_are_tried_within_bounds() {
    let (one, other) = (Signers::new(), Signers::new());
    let same = r#","kid":"k""#;
    let keys =
        key_set(&[one.rsa_jwk(same), one.ec_jwk(same), other.ec_jwk(same), other.rsa_jwk(same)]);
    for signers in [&one, &other] {
        for algorithm in ["RS256", "ES256"] {
            assert!(verify(&signers.token(algorithm, same, CLAIMS), &keys).is_ok());
        }
    }
    let third = Signers::new();
    assert_eq!(verify(&third.token("RS256", same, CLAIMS), &keys), Err(Denied::Signature));
    // The seventeenth is not tried any more.
    for (before, accepted) in [(15, true), (16, false)] {
        let mut list = vec![one.ec_jwk(same); before];
        list.push(other.ec_jwk(same));
        assert_eq!(verify(&other.token("ES256", same, CLAIMS), &key_set(&list)).is_ok(), accepted);
    }
}

#[test]
fn keys_without_identifier_serve_tokens_with_one() {
    let (one, other) = (Signers::new(), Signers::new());
    let keys = key_set(&[one.ec_jwk(""), one.rsa_jwk(r#","kid":"named""#)]);
    assert!(verify(&one.token("ES256", r#","kid":"any""#, CLAIMS), &keys).is_ok());
    // The issuer may have a new key, so a refetch may help.
    let denied = verify(&other.token("ES256", r#","kid":"any""#, CLAIMS), &keys);
    assert_eq!(denied, Err(Denied::UnknownKey { kid: "any".to_owned() }));
    // Not if the token names a key that exists.
    let denied = verify(&one.token("ES256", r#","kid":"named""#, CLAIMS), &keys);
    assert_eq!(denied, Err(Denied::Algorithm));
}

#[test]
fn extensions_are_refused() {
    let signers = Signers::new();
    let keys = signers.all();
    for more in [
        r#","crit":["exp"]"#,
        r#","crit":[]"#,
        r#","crit":null"#,
        r#","crit":["b64"],"b64":false"#,
        r#","b64":false"#,
        r#","b64":true"#,
    ] {
        assert!(malformed(verify(&signers.token("RS256", more, CLAIMS), &keys)), "{more}");
    }
}

#[test]
fn members_twice_are_refused() {
    let signers = Signers::new();
    let keys = signers.all();
    for header in [
        r#"{"alg":"RS256","alg":"RS256"}"#,
        r#"{"alg":"none","alg":"RS256"}"#,
        r#"{"alg":"RS256","kid":"rsa","kid":"rsa"}"#,
        r#"{"alg":"RS256","\u0061lg":"RS256"}"#,
    ] {
        assert!(malformed(verify(&signers.signed("RS256", header, CLAIMS), &keys)), "{header}");
    }
    for claims in [
        r#"{"sub":"anna","sub":"root","exp":1700000600}"#,
        r#"{"sub":"anna","exp":1700000600,"exp":9999999999}"#,
        r#"{"sub":"anna","s\u0075b":"root","exp":1700000600}"#,
        r#"{"sub":"anna","exp":1700000600,"a":{"roles":[],"roles":["admin"]}}"#,
    ] {
        assert!(malformed(verify(&signers.token("RS256", "", claims), &keys)), "{claims}");
    }
}

#[test]
fn signatures_of_zeros_and_of_wrong_length_are_refused() {
    let signers = Signers::new();
    let keys = signers.all();
    // The order of P-256.
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&order[2 * at..2 * at + 2], 16).unwrap()).collect();
    let (zero, mut one) = ([0; 32], [0; 32]);
    one[31] = 1;
    let message = |algorithm: &str| {
        format!("{}.{}", encoded(format!(r#"{{"alg":"{algorithm}"}}"#)), encoded(CLAIMS))
    };
    for [r, s] in [
        [&zero[..], &zero],
        [&zero, &one],
        [&one, &zero],
        [&order, &order],
        [&one, &order],
        [&one, &one],
    ] {
        let token = format!("{}.{}", message("ES256"), encoded([r, s].concat()));
        assert_eq!(verify(&token, &keys), Err(Denied::Signature));
    }
    for algorithm in ["RS256", "PS256", "ES256", "ES384", "EdDSA", "HS256", "HS512"] {
        for length in [1, 31, 32, 63, 64, 65, 96, 132, 255, 256, 257, 512, 1024, 1025, 4096] {
            for byte in [0, 0xff] {
                let token = format!("{}.{}", message(algorithm), encoded(vec![byte; length]));
                assert!(verify(&token, &keys).is_err(), "{algorithm} {length}");
            }
        }
    }
    // A part of the right signature, the signature with more behind it, and in DER.
    for algorithm in ["RS256", "ES256", "EdDSA", "HS256"] {
        let token = signers.token(algorithm, "", CLAIMS);
        let dot = token.rfind('.').unwrap();
        for cut in [dot + 2, dot + 5, token.len() - 4, token.len() - 1] {
            assert!(verify(&token[..cut], &keys).is_err(), "{algorithm}");
        }
        assert!(verify(&format!("{token}AAAA"), &keys).is_err());
        assert!(
            verify(&token.replace(&token[dot + 1..], &token[dot + 1..].repeat(2)), &keys).is_err()
        );
    }
}

#[test]
fn a_token_has_one_spelling() {
    let signers = Signers::new();
    let keys = signers.all();
    // 64 bytes: the last letter of the signature has four unused bits.
    let token = signers.token("ES256", "", CLAIMS);
    assert!(verify(&token, &keys).is_ok());
    let mut accepted = 0;
    for letter in ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']) {
        let other = format!("{}{letter}", &token[..token.len() - 1]);
        accepted += usize::from(verify(&other, &keys).is_ok());
    }
    assert_eq!(accepted, 1);
    let [header, payload, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!() };
    for other in [
        format!("{token}="),
        format!("{token}=="),
        format!("{token} "),
        format!(" {token}"),
        format!("{token}\n"),
        format!("{header}=.{payload}.{signature}"),
        format!("{header}.{payload}.{signature}."),
        format!(".{header}.{payload}.{signature}"),
        format!("{header}..{signature}"),
        format!(".{payload}.{signature}"),
        format!("{header}.{payload}"),
        format!("{header}.{payload}.{signature}.{signature}"),
        format!("{header}.{payload}.{signature}.a.b"),
        format!("{header}.{payload}.{signature}.a.b.c.d.e.f"),
        format!("{header}.{payload}.{signature}é"),
        token.replace('-', "+").replace('_', "/") + "+",
        String::new(),
        "..".to_owned(),
        ".".to_owned(),
    ] {
        assert!(verify(&other, &keys).is_err(), "{other}");
    }
    let encrypted = verify(&format!("{header}.a.b.c.d"), &keys).unwrap_err();
    assert!(encrypted.to_string().contains("encrypted"), "{encrypted}");
}

#[test]
fn sizes_and_depths_are_bounded() {
    let signers = Signers::new();
    let keys = signers.all();
    let megabyte = "x".repeat(1 << 20);
    for token in [megabyte.clone(), ".".repeat(1 << 20), format!("{megabyte}.{megabyte}.a")] {
        assert_eq!(verify(&token, &keys), Err(Denied::TooLong));
    }
    let claims = format!(r#"{{"exp":1700000600,"a":"{megabyte}"}}"#);
    assert_eq!(verify(&signers.token("RS256", "", &claims), &keys), Err(Denied::TooLong));
    let nested =
        |depth| format!(r#"{{"exp":1700000600,"a":{}1{}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert!(verify(&signers.token("RS256", "", &nested(15)), &keys).is_ok());
    assert!(malformed(verify(&signers.token("RS256", "", &nested(16)), &keys)));
    assert!(malformed(verify(&signers.token("RS256", "", &nested(5000)), &keys)));
    let header = format!(r#"{{"alg":"RS256","a":{}1{}}}"#, "[".repeat(3000), "]".repeat(3000));
    assert!(malformed(verify(&signers.signed("RS256", &header, CLAIMS), &keys)));
}

#[test]
fn headers_that_are_no_headers_are_refused() {
    let signers = Signers::new();
    let keys = signers.all();
    for header in [
        "",
        "{}",
        "[]",
        "null",
        "\"RS256\"",
        r#"{"alg":null}"#,
        r#"{"alg":["RS256"]}"#,
        r#"{"alg":1}"#,
        r#"{"Alg":"RS256"}"#,
        r#"{"alg":"RS256"}x"#,
        r#"{"alg":"RS256","typ":1}"#,
        "\u{feff}{\"alg\":\"RS256\"}",
    ] {
        assert!(malformed(verify(&signers.signed("RS256", header, CLAIMS), &keys)), "{header}");
    }
    for claims in
        ["", "null", "[]", "\"\"", "1", r#"{"exp":1700000600}{"#, "eyJhbGciOiJSUzI1NiJ9.e30.AAAA"]
    {
        assert!(malformed(verify(&signers.token("RS256", "", claims), &keys)), "{claims}");
    }
}

#[test]
fn a_key_of_another_set_does_not_help() {
    let (one, other) = (Signers::new(), Signers::new());
    for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
        assert_eq!(verify(&one.token(algorithm, "", CLAIMS), &other.all()), Err(Denied::Signature));
    }
    let empty = KeySet::parse(br#"{"keys":[]}"#, Secrets::Accepted);
    assert!(empty.is_err());
}
