//! Examples of the specifications, and tokens of other libraries (`data/tokens.txt`).

use identity::{Claim, Denied, KeySet, Rules, Secrets, token};

use crate::signing::{rules, verify};

/// Shortly before the tokens of RFC 7515 expire.
const YEAR_2011_S: u64 = 1_300_819_000;

/// Header, payload and signature of RFC 7515 appendix A.1, the token of RFC 7519 section 3.1.
const A1: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const A1_KEY: &str = r#"{"keys":[{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}]}"#;

/// Appendix A.2.
const A2: &str = "eyJhbGciOiJSUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujG\
    bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K\
    0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6\
    LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
const A2_KEY: &str = r#"{"keys":[{"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"}]}"#;

/// Appendix A.3.
const A3: &str = "eyJhbGciOiJFUzI1NiJ9.\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
const A3_KEY: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

/// Appendix A.4, whose payload is not JSON.
const A4: &str = "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA.\
    AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwF\
    KdCAPZgoXD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn";
const A4_KEY: &str = r#"{"keys":[{"kty":"EC","crv":"P-521","x":"AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk","y":"ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2"}]}"#;

/// RFC 8037 appendix A.4, whose payload is not JSON either.
const ED25519: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
    hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
const ED25519_KEY: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

fn keys(text: &str) -> KeySet {
    KeySet::parse(text.as_bytes(), Secrets::Accepted).unwrap()
}

#[test]
fn tokens_of_rfc_7515_are_accepted_until_they_expire() {
    for (token, key) in [(A1, A1_KEY), (A2, A2_KEY), (A3, A3_KEY)] {
        let claims = token::verify(token, &keys(key), &rules(), YEAR_2011_S).unwrap();
        assert!(claims.contains("iss", "joe"));
        assert!(claims.contains("http://example.com/is_root", "true"));
        assert_eq!(claims.expires_at_s(), Some(1_300_819_380));
        // One minute of leeway.
        let at = |now_s| token::verify(token, &keys(key), &rules(), now_s);
        assert!(at(1_300_819_380 + 59).is_ok());
        assert_eq!(at(1_300_819_380 + 60), Err(Denied::Expired));
    }
}

#[test]
fn signatures_over_other_payloads_are_verified_before_the_payload_is_read() {
    for (token, key) in [(A4, A4_KEY), (ED25519, ED25519_KEY)] {
        let denied = verify(token, &keys(key));
        assert_eq!(denied, Err(Denied::Malformed("is not valid JSON")));
        let forged = token.replacen(".U", ".V", 1).replacen(".R", ".S", 1);
        assert_ne!(forged, token);
        assert_eq!(verify(&forged, &keys(key)), Err(Denied::Signature));
    }
}

#[test]
fn the_unsecured_token_of_rfc_7519_is_refused() {
    let token = "eyJhbGciOiJub25lIn0.\
        eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.";
    assert_eq!(verify(token, &keys(A1_KEY)), Err(Denied::Algorithm));
}

#[test]
fn tokens_of_other_libraries_are_accepted() {
    let keys = keys(include_str!("../data/tokens.jwks.json"));
    assert_eq!((keys.len(), keys.skipped().len()), (13, 0));
    let lines: Vec<_> = include_str!("../data/tokens.txt").lines().collect();
    assert_eq!(lines.len(), 26);
    for line in lines {
        let (name, token) = line.split_once('\t').unwrap();
        let strict = Rules {
            issuers: vec!["https://issuer.example".to_owned()],
            audiences: vec!["weir".to_owned()],
            ..rules()
        };
        let claims = token::verify(token, &keys, &strict, 1_700_000_000)
            .unwrap_or_else(|denied| panic!("{name}: {denied}"));
        assert_eq!(claims.claim("sub"), Some(Claim::Text("anna".into())));
        let roles = claims.header_value("realm_access.roles").unwrap();
        assert_eq!(roles.as_deref(), Some("admin,user"));
        // The rules must allow the algorithm, too.
        let (_, algorithm) = name.split_once(' ').unwrap();
        let only = Rules { algorithms: vec![], ..strict.clone() };
        let refused = token::verify(token, &keys, &only, 1_700_000_000);
        assert_eq!(refused, Err(Denied::Algorithm), "{algorithm}");
    }
}

#[test]
fn symmetric_algorithms_are_off_unless_asked_for() {
    assert_eq!(
        token::verify(A1, &keys(A1_KEY), &Rules::default(), YEAR_2011_S),
        Err(Denied::Algorithm)
    );
    assert!(token::verify(A3, &keys(A3_KEY), &Rules::default(), YEAR_2011_S).is_ok());
    assert!(KeySet::parse(A1_KEY.as_bytes(), Secrets::Skipped).is_err());
}
