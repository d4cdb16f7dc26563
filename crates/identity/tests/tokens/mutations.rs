//! Random changes of tokens and key sets: none is accepted, none makes the program fail.

use identity::keys::KEYS_MAX;
use identity::{KeySet, Secrets, Users, authorization};

use crate::signing::{NOW_S, Signers, rules, verify};

/// Changes one to three places of `bytes`.
fn mutate(random: &mut fastrand::Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..random.usize(1..=3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        match random.u8(..8) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes[at] = random.choice(b"AZaz09-_.={}[]\",:\\".iter().copied()).unwrap_or(b'A'),
            3 => drop(bytes.remove(at)),
            4 => bytes.insert(at, random.choice(b"AZaz09-_.=\"".iter().copied()).unwrap_or(b'A')),
            5 => bytes.truncate(at),
            6 => {
                let end = random.usize(at..bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.usize(..bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                let end = at.max(random.usize(..=other.len())).min(other.len()).min(bytes.len());
                if at < end {
                    bytes.splice(at..end, other[at..end].iter().copied());
                }
            }
        }
    }
}

/// Returns a generator and prints its seed: `WEIR_SEED` replays it.
fn rng() -> fastrand::Rng {
    let given = std::env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("WEIR_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

#[test]
fn no_changed_token_is_accepted() {
    let mut random = rng();
    let signers = Signers::new();
    let keys = signers.all();
    let claims = r#"{"sub":"anna","exp":1700000600,"groups":["users"]}"#;
    let other = r#"{"sub":"root","exp":1700000900,"groups":["admin"]}"#;
    let tokens: Vec<(String, String)> = ["RS256", "PS256", "ES256", "EdDSA", "HS256"]
        .map(|algorithm| {
            let token = |claims| signers.token(algorithm, r#","typ":"JWT""#, claims);
            (token(claims), token(other))
        })
        .into();
    for _ in 0..20_000 {
        let (token, other) = &tokens[random.usize(..tokens.len())];
        let mut changed = token.clone().into_bytes();
        mutate(&mut random, &mut changed, other.as_bytes());
        let Ok(changed) = String::from_utf8(changed) else { continue };
        if changed == *token || changed == *other {
            continue;
        }
        assert!(verify(&changed, &keys).is_err(), "{changed}");
        let _ = authorization::bearer(format!("Bearer {changed}").as_bytes());
    }
}

#[test]
fn changed_claims_are_read_or_refused_without_failing() {
    let mut random = rng();
    let signers = Signers::new();
    let keys = signers.all();
    let claims = r#"{"iss":"i","aud":["a","b"],"sub":"\u00e9","exp":1.7000006e9,"nbf":0,"a":{"b":[1,true]}}"#;
    let mut read = 0;
    for _ in 0..20_000 {
        let mut changed = claims.as_bytes().to_vec();
        mutate(&mut random, &mut changed, claims.as_bytes());
        let Ok(changed) = String::from_utf8(changed) else { continue };
        let token = signers.token("HS256", "", &changed);
        let mut strict = rules();
        strict.audiences.push("a".to_owned());
        if let Ok(claims) = identity::token::verify(&token, &keys, &strict, NOW_S) {
            read += 1;
            for path in ["sub", "a.b", "aud", "a", "iss"] {
                if let Ok(Some(value)) = claims.header_value(path) {
                    assert!(!value.is_empty() && !value.contains(char::is_control));
                }
            }
        }
    }
    assert!(read > 100, "{read}");
}

#[test]
fn changed_key_sets_and_htpasswd_files_are_read_or_refused_without_failing() {
    let mut random = rng();
    let set = include_bytes!("../data/tokens.jwks.json");
    let file = include_bytes!("../data/htpasswd.txt");
    for _ in 0..2_000 {
        let mut changed = set.to_vec();
        mutate(&mut random, &mut changed, set);
        if let Ok(keys) = KeySet::parse(&changed, Secrets::Accepted) {
            // Every key of the set is either used or listed as skipped. Copied pieces can make it
            // long enough for the bound, which adds one entry for all others.
            let set: serde_json::Value = serde_json::from_slice(&changed).unwrap();
            let listed = set["keys"].as_array().unwrap().len();
            let expected = listed.min(KEYS_MAX) + usize::from(listed > KEYS_MAX);
            assert_eq!(keys.len() + keys.skipped().len(), expected);
            assert!(keys.len() > 0);
        }
        let mut changed = file.to_vec();
        mutate(&mut random, &mut changed, file);
        if let Err(mistakes) = Users::parse(&changed) {
            assert!(!mistakes.is_empty());
        }
    }
}
