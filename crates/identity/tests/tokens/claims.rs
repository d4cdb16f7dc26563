//! The rules about claims: times, issuer, audience, type.

use std::time::Duration;

use identity::{Claims, Denied, Rules, token};

use crate::signing::{NOW_S, Signers, rules};

struct Judge {
    signers: Signers,
    keys: identity::KeySet,
    rules: Rules,
}

impl Judge {
    fn new(rules: Rules) -> Judge {
        let signers = Signers::new();
        let keys = signers.all();
        Judge { signers, keys, rules }
    }

    fn of(&self, claims: &str) -> Result<Claims, Denied> {
        self.with(claims, "")
    }

    fn with(&self, claims: &str, header: &str) -> Result<Claims, Denied> {
        token::verify(&self.signers.token("EdDSA", header, claims), &self.keys, &self.rules, NOW_S)
    }
}

#[test]
fn a_token_must_expire_unless_the_rules_say_otherwise() {
    let mut judge = Judge::new(rules());
    assert_eq!(judge.of(r#"{"sub":"anna"}"#), Err(Denied::MissingClaim("exp")));
    assert_eq!(judge.of(r#"{"exp":null}"#), Err(Denied::BadClaim("exp")));
    judge.rules.requires_expiry = false;
    assert_eq!(judge.of(r#"{"sub":"anna"}"#).unwrap().expires_at_s(), None);
    assert_eq!(judge.of(r#"{"exp":1}"#), Err(Denied::Expired));
}

#[test]
fn times_count_with_leeway() {
    let judge = Judge::new(rules());
    for (claims, denied) in [
        (r#"{"exp":1699999941}"#, None),
        (r#"{"exp":1699999940}"#, Some(Denied::Expired)),
        (r#"{"exp":1699999941.9}"#, None),
        (r#"{"exp":1699999940.9}"#, Some(Denied::Expired)),
        (r#"{"exp":1.7000001e9}"#, None),
        (r#"{"exp":0}"#, Some(Denied::Expired)),
        (r#"{"exp":9e9,"nbf":1700000060}"#, None),
        (r#"{"exp":9e9,"nbf":1700000061}"#, Some(Denied::NotYetValid)),
        (r#"{"exp":9e9,"nbf":1700000060.1}"#, Some(Denied::NotYetValid)),
        (r#"{"exp":9e9,"iat":1700000060}"#, None),
        (r#"{"exp":9e9,"iat":1700000061}"#, Some(Denied::IssuedInFuture)),
        (r#"{"exp":9e9,"iat":0,"nbf":0}"#, None),
    ] {
        assert_eq!(judge.of(claims).err(), denied, "{claims}");
    }
}

#[test]
fn leeway_is_bounded_and_may_be_zero() {
    let mut judge = Judge::new(Rules { leeway: Duration::ZERO, ..rules() });
    assert!(judge.of(r#"{"exp":1700000001}"#).is_ok());
    assert_eq!(judge.of(r#"{"exp":1700000000}"#), Err(Denied::Expired));
    judge.rules.leeway = Duration::MAX;
    assert!(judge.of(r#"{"exp":1699999701}"#).is_ok());
    assert_eq!(judge.of(r#"{"exp":1699999700}"#), Err(Denied::Expired));
    // At the ends of time.
    let token = judge.signers.token("EdDSA", "", r#"{"exp":253402300799,"nbf":0}"#);
    let at = |now_s| token::verify(&token, &judge.keys, &judge.rules, now_s).err();
    assert_eq!((at(0), at(u64::MAX)), (None, Some(Denied::Expired)));
}

#[test]
fn times_that_are_no_times_are_refused() {
    let judge = Judge::new(rules());
    for value in [
        "-1",
        "-1700000600",
        "1e300",
        "-1e300",
        "1.7e12",
        "1700000600000",
        "18446744073709551615",
        "99999999999999999999999",
        "253402300800",
        "-0.5",
        "\"1700000600\"",
        "true",
        "[1700000600]",
        "{}",
        "\"\"",
        "9223372036854775808",
    ] {
        for name in ["exp", "nbf", "iat"] {
            let exp = if name == "exp" { "" } else { r#""exp":9e9,"# };
            let denied = judge.of(&format!(r#"{{{exp}"{name}":{value}}}"#));
            assert_eq!(denied, Err(Denied::BadClaim(name)), "{name} {value}");
        }
    }
    // Numbers that JSON readers cannot hold.
    assert!(matches!(judge.of(r#"{"exp":1e999}"#), Err(Denied::Malformed(_))));
    assert!(matches!(judge.of(r#"{"exp":Infinity}"#), Err(Denied::Malformed(_))));
}

#[test]
fn the_issuer_is_compared_exactly() {
    let issuers = vec!["https://issuer.example".to_owned(), "https://other.example/".to_owned()];
    let judge = Judge::new(Rules { issuers, ..rules() });
    for (issuer, denied) in [
        (r#""iss":"https://issuer.example","#, None),
        (r#""iss":"https://other.example/","#, None),
        (r#""iss":"https://issuer.example/","#, Some(Denied::Issuer)),
        (r#""iss":"HTTPS://issuer.example","#, Some(Denied::Issuer)),
        (r#""iss":"https://issuer.example.attacker.example","#, Some(Denied::Issuer)),
        (r#""iss":"","#, Some(Denied::Issuer)),
        (r#""iss":["https://issuer.example"],"#, Some(Denied::BadClaim("iss"))),
        (r#""iss":null,"#, Some(Denied::BadClaim("iss"))),
        ("", Some(Denied::MissingClaim("iss"))),
    ] {
        assert_eq!(judge.of(&format!(r#"{{{issuer}"exp":9e9}}"#)).err(), denied, "{issuer}");
    }
}

#[test]
fn the_audience_is_a_text_or_a_list_of_texts() {
    let judge =
        Judge::new(Rules { audiences: vec!["weir".to_owned(), "api".to_owned()], ..rules() });
    for (audience, denied) in [
        (r#""aud":"weir","#, None),
        (r#""aud":["other","api"],"#, None),
        (r#""aud":["weir"],"#, None),
        (r#""aud":"weir other","#, Some(Denied::Audience)),
        (r#""aud":"WEIR","#, Some(Denied::Audience)),
        (r#""aud":"weir2","#, Some(Denied::Audience)),
        (r#""aud":[],"#, Some(Denied::Audience)),
        (r#""aud":["other"],"#, Some(Denied::Audience)),
        (r#""aud":["weir",1],"#, Some(Denied::BadClaim("aud"))),
        (r#""aud":[["weir"]],"#, Some(Denied::BadClaim("aud"))),
        (r#""aud":{"weir":true},"#, Some(Denied::BadClaim("aud"))),
        (r#""aud":true,"#, Some(Denied::BadClaim("aud"))),
        ("", Some(Denied::MissingClaim("aud"))),
    ] {
        assert_eq!(judge.of(&format!(r#"{{{audience}"exp":9e9}}"#)).err(), denied, "{audience}");
    }
}

#[test]
fn the_type_is_checked_on_request() {
    let mut judge = Judge::new(Rules { types: vec!["at+jwt".to_owned()], ..rules() });
    let claims = r#"{"exp":9e9}"#;
    for (header, denied) in [
        (r#","typ":"at+jwt""#, None),
        (r#","typ":"application/AT+JWT""#, None),
        (r#","typ":"JWT""#, Some(Denied::Type)),
        (r#","typ":"""#, Some(Denied::Type)),
        ("", Some(Denied::Type)),
    ] {
        assert_eq!(judge.with(claims, header).err(), denied, "{header}");
    }
    judge.rules.types.clear();
    assert!(judge.with(claims, r#","typ":"dpop+jwt""#).is_ok());
}

#[test]
fn reasons_are_distinct_words_and_texts_have_no_part_of_the_token() {
    let all = [
        Denied::TooLong,
        Denied::Malformed("x"),
        Denied::Algorithm,
        Denied::UnknownKey { kid: "k".to_owned() },
        Denied::Signature,
        Denied::Type,
        Denied::MissingClaim("exp"),
        Denied::BadClaim("exp"),
        Denied::Expired,
        Denied::NotYetValid,
        Denied::IssuedInFuture,
        Denied::Issuer,
        Denied::Audience,
    ];
    let reasons: std::collections::HashSet<_> = all.iter().map(Denied::reason).collect();
    assert_eq!(reasons.len(), all.len());
    for denied in &all {
        assert!(denied.reason().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert!(!denied.to_string().is_empty());
        // RFC 6750 section 3: printable ASCII without quotes and backslashes.
        assert!(
            denied.description().bytes().all(|b| matches!(b, b' '..=b'~') && !b"\"\\".contains(&b))
        );
    }
}
