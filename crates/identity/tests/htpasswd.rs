//! Htpasswd files: hashes that real tools made (`data/htpasswd.txt`), and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)]

use identity::Verdict::{Accepted, PasswordTooLong, UnknownUser, WrongPassword};
use identity::users::{FILE_MAX_BYTES, MISTAKES_MAX, USERS_MAX};
use identity::{CostBounds, Mistake, Users};

/// Passwords, users and lines of `data/htpasswd.txt`.
fn cases() -> Vec<(Vec<u8>, String, String)> {
    let text = include_str!("data/htpasswd.txt");
    let cases = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (password, line) = line.split_once('\t').unwrap();
        let user = line.split_once(':').unwrap().0;
        (percent_decoded(password), user.to_owned(), line.to_owned())
    });
    cases.collect()
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if let (b'%', [a, b, after @ ..]) = (first, after) {
            let hex = String::from_utf8(vec![*a, *b]).unwrap();
            bytes.push(u8::from_str_radix(&hex, 16).unwrap());
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

fn mistakes(contents: &[u8]) -> Vec<(usize, String)> {
    let mistakes = Users::parse(contents).unwrap_err();
    mistakes.into_iter().map(|Mistake { line, message }| (line, message)).collect()
}

/// Returns the message about `hash`.
fn refused(hash: &str) -> String {
    let [(1, message)] = &mistakes(format!("u:{hash}").as_bytes())[..] else {
        panic!("one mistake on line 1: {hash}");
    };
    let secret: String = hash.chars().skip(8).collect();
    assert!(secret.is_empty() || !message.contains(&secret), "a hash in a message: {message}");
    message.clone()
}

const BCRYPT: &str = "$2y$05$/uFW/VE9eEcMEy1UgfRJR.EbPKHgAXms96YkNtycjwSeKPxXTOw8O";
const ARGON2: &str = "$argon2id$v=19$m=1024,t=2,p=1$c2FsdCBvZiBhIHVzZXIuLg$wkk0SOIzhVZmVOfVYx7cbQuLhpODW/cuU4d6fwKAjWk";
const SHA256: &str = "$5$saltofauser5$wzI7489Tn1zREa6VMVgNQMSDMgjCH5phpcKZIxmjei9";

#[test]
fn hashes_of_real_tools_accept_their_password_and_no_other() {
    let cases = cases();
    let contents: Vec<String> = cases.iter().map(|(.., line)| line.clone()).collect();
    let users = Users::parse(contents.join("\n").as_bytes()).unwrap();
    assert_eq!(users.len(), cases.len());
    assert!(cases.len() > 25);
    for (password, user, _) in &cases {
        assert_eq!(users.verify(user, password), Accepted, "{user}");
        let mut other = password.clone();
        match other.last_mut() {
            Some(last) => *last ^= 1,
            None => other.push(b'x'),
        }
        assert_eq!(users.verify(user, &other), WrongPassword, "{user}");
        assert_eq!(users.verify(&user.to_uppercase(), password), UnknownUser, "{user}");
    }
}

#[test]
fn a_file_may_have_comments_crlf_a_bom_and_more_fields() {
    let contents = format!(
        "\u{feff}# users\r\n\r\nanna:{BCRYPT}\r\nbob:{SHA256}:Bob Miller:x  \n   \n #c d:{BCRYPT}\n"
    );
    assert_eq!(mistakes(contents.as_bytes())[0].0, 6, "an indented comment is a user's name");
    let contents = contents.replace(" #c", "c");
    let users = Users::parse(contents.as_bytes()).unwrap();
    let password = b"correct horse battery staple";
    for user in ["anna", "bob", "c d"] {
        assert_eq!(users.verify(user, password), Accepted, "{user}");
    }
}

#[test]
fn an_empty_file_lets_no_one_in() {
    let users = Users::parse(b"# none yet\n").unwrap();
    assert!(users.is_empty());
    assert_eq!(users.verify("", b""), UnknownUser);
    assert_eq!(users.memory_max_bytes(), 0);
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let contents = format!(
        "anna:{BCRYPT}\nnocolon\n:{BCRYPT}\nanna:{SHA256}\nb\u{7}b:{BCRYPT}\n lead:{BCRYPT}\n{}:{BCRYPT}\n",
        "n".repeat(256)
    );
    let mut contents = contents.into_bytes();
    contents.extend_from_slice(b"caf\xe9:x\n");
    let expected = [
        (2, "the line has no colon; each line must be `USER:HASH`"),
        (3, "the user's name is missing before the colon"),
        (4, "user `anna` is already on line 1"),
        (5, "the user's name contains a control character"),
        (6, "the user's name begins or ends with white space; remove it"),
        (7, "the user's name is longer than 255 bytes"),
        (8, "the line is not UTF-8"),
    ];
    assert_eq!(mistakes(&contents), expected.map(|(line, text)| (line, text.to_owned())));
    let shown = Users::parse(&contents).unwrap_err()[0].to_string();
    assert_eq!(shown, "line 2: the line has no colon; each line must be `USER:HASH`");
}

#[test]
fn weak_and_unknown_forms_are_refused_with_a_remedy() {
    for (hash, word) in [
        ("$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00", "MD5"),
        ("$1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00", "MD5"),
        ("{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "SHA-1"),
        ("{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "SHA-1"),
        ("rqXexS6ZhobKA", "DES"),
        ("secret", "plain text"),
        ("correct horse battery staple", "plain text"),
        ("", "missing"),
        ("$2x$05$/uFW/VE9eEcMEy1UgfRJR.EbPKHgAXms96YkNtycjwSeKPxXTOw8O", "faulty"),
        ("$2$05$/uFW/VE9eEcMEy1UgfRJR.EbPKHgAXms96YkNtycjwSeKPxXTOw8O", "faulty"),
        ("$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7", "yescrypt"),
        ("$pbkdf2-sha256$29000$aaaaaaaaaaaaaaaa$bbbbbbbbbbbbbbbbbbbbb", "PBKDF2"),
        ("$9$what", "unknown"),
        ("$", "unknown"),
        ("é", "plain text"),
    ] {
        let message = refused(hash);
        assert!(message.contains(word), "{message}");
        assert!(message.contains("htpasswd -B"), "{message}");
    }
}

#[test]
fn hashes_that_cost_too_much_are_refused() {
    for (hash, words) in [
        (BCRYPT.replace("$05$", "$15$"), "cost 15 is above the maximum of 14"),
        (BCRYPT.replace("$05$", "$31$"), "cost 31"),
        (BCRYPT.replace("$05$", "$99$"), "cost 99"),
        (ARGON2.replace("m=1024", "m=262145"), "memory (m) is 262145"),
        (ARGON2.replace("m=1024", "m=4294967295"), "memory (m)"),
        (ARGON2.replace("m=1024", "m=99999999999999999999"), "memory (m)"),
        (ARGON2.replace("t=2", "t=65"), "passes (t)"),
        (ARGON2.replace("p=1", "p=17"), "lanes (p)"),
        (ARGON2.replace("m=1024,t=2", "m=262144,t=5"), "memory times passes"),
        (SHA256.replace("$5$", "$5$rounds=1000001$"), "1000000 rounds"),
        (SHA256.replace("$5$", "$5$rounds=99999999999999999999$"), "1000000 rounds"),
    ] {
        let message = refused(&hash);
        assert!(message.contains(words) && message.contains("make the hash again"), "{message}");
    }
}

#[test]
fn hashes_of_tenants_may_cost_less() {
    for (max, beyond, words) in [
        (BCRYPT.replace("$05$", "$12$"), BCRYPT.replace("$05$", "$13$"), "maximum of 12 here"),
        (
            ARGON2.replace("m=1024,t=2", "m=65536,t=4"),
            ARGON2.replace("m=1024,t=2", "m=65536,t=5"),
            "memory times passes (m * t) is 327680, above the maximum of 262144 here",
        ),
        (
            ARGON2.replace("m=1024,t=2", "m=65536,t=1"),
            ARGON2.replace("m=1024,t=2", "m=65537,t=1"),
            "maximum of 65536 here",
        ),
        (
            SHA256.replace("$5$", "$5$rounds=250000$"),
            SHA256.replace("$5$", "$5$rounds=250001$"),
            "maximum of 250000 rounds here",
        ),
    ] {
        let parse =
            |hash: &str| Users::parse_within(format!("u:{hash}").as_bytes(), &CostBounds::TENANT);
        assert!(parse(&max).is_ok(), "{max}");
        let message = parse(&beyond).unwrap_err().remove(0).message;
        assert!(message.contains(words) && message.contains("shares threads"), "{message}");
        assert!(Users::parse(format!("u:{beyond}").as_bytes()).is_ok(), "{beyond}");
    }
}

#[test]
fn damaged_hashes_are_refused() {
    for hash in [
        BCRYPT[..59].to_owned(),
        format!("{BCRYPT}x"),
        BCRYPT.replace("$05$", "$5$"),
        BCRYPT.replace("$05$", "$+5$"),
        BCRYPT.replace("$05$", "$03$"),
        BCRYPT.replace("uFW", "u*W"),
        format!("{BCRYPT}$"),
        "$2y$05$ééééééééééééééééééééééééééé".to_owned(),
        "$2y".to_owned(),
        "$2y$".to_owned(),
        "$argon2".to_owned(),
        "$argon2id$".to_owned(),
        ARGON2.replace("argon2id", "argon2x"),
        ARGON2.replace("v=19", "v=20"),
        ARGON2.replace("t=2,", ""),
        ARGON2.replace("t=2", "t=0"),
        ARGON2.replace("t=2", "t="),
        ARGON2.replace("t=2", "t=-1"),
        ARGON2.replace("t=2", "t=2,t=2"),
        ARGON2.replace("p=1", "p=1,keyid=aaaa"),
        ARGON2.replace("p=1", "p=0"),
        ARGON2.replace("m=1024", "m=1"),
        ARGON2.replace("c2FsdCBvZiBhIHVzZXIuLg", "c2Fs"),
        ARGON2.replace("c2FsdCBvZiBhIHVzZXIuLg", "c2FsdCBvZiBhIHVzZXIuLg=="),
        ARGON2[..ARGON2.len() - 1].to_owned(),
        format!("{ARGON2}$x"),
        SHA256[..SHA256.len() - 1].to_owned(),
        SHA256.replace("$5$", "$6$"),
        SHA256.replace("$5$", "$5$rounds=999$"),
        SHA256.replace("$5$", "$5$rounds=$"),
        SHA256.replace("$5$", "$5$rounds=-1000$"),
        SHA256.replace("saltofauser5", "saltofauser5saltofauser5"),
        SHA256.replace("wzI", "w!I"),
        "$5$".to_owned(),
        "$6$rounds=5000".to_owned(),
    ] {
        let message = refused(&hash);
        assert!(
            message.contains("damaged") && message.contains("htpasswd -B"),
            "{hash}: {message}"
        );
    }
}

#[test]
fn bcrypt_refuses_what_it_would_cut_off() {
    let (long, user, line) = cases().into_iter().find(|case| case.1 == "apache-long72").unwrap();
    let users = Users::parse(line.as_bytes()).unwrap();
    assert_eq!(users.verify(&user, &long), Accepted);
    assert_eq!(users.verify(&user, &[&long[..], b"z"].concat()), PasswordTooLong);
    assert_eq!(users.verify(&user, &long[..71]), WrongPassword);
    // Bcrypt repeats the password with its final NUL, so `x` and `x`, NUL, `x` have one hash.
    let users = Users::parse(format!("u:{BCRYPT}").as_bytes()).unwrap();
    let repeated = b"correct horse battery staple\0correct horse battery staple";
    assert_eq!(users.verify("u", repeated), WrongPassword);
    assert_eq!(users.verify("u", b"correct horse battery staple\0x"), WrongPassword);
    assert_eq!(users.verify("u", b"correct horse battery staple\0"), WrongPassword);
}

#[test]
fn long_passwords_are_refused_before_any_work() {
    for hash in [BCRYPT, ARGON2, SHA256] {
        let users = Users::parse(format!("u:{hash}").as_bytes()).unwrap();
        assert_eq!(users.verify("u", &[b'x'; 513]), PasswordTooLong);
        assert_eq!(users.verify("v", &[b'x'; 513]), UnknownUser);
        assert_eq!(users.verify("u", &vec![b'x'; 1 << 20]), PasswordTooLong);
    }
}

#[test]
fn a_long_password_does_not_multiply_the_cost_of_many_rounds() {
    for (rounds, max) in [(1000, 512), (250_000, 512), (500_000, 256), (1_000_000, 128)] {
        let hash = SHA256.replace("$5$", &format!("$5$rounds={rounds}$"));
        let users = Users::parse(format!("u:{hash}").as_bytes()).unwrap();
        assert_eq!(users.verify("u", &vec![b'x'; max + 1]), PasswordTooLong, "{rounds}");
        if rounds == 1000 {
            assert_eq!(users.verify("u", &vec![b'x'; max]), WrongPassword);
        }
    }
}

#[test]
fn sizes_are_bounded() {
    let large = vec![b'#'; FILE_MAX_BYTES + 1];
    assert_eq!(mistakes(&large).len(), 1);
    let many: Vec<String> = (0..=USERS_MAX).map(|n| format!("u{n}:{BCRYPT}")).collect();
    let found = mistakes(many.join("\n").as_bytes());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, USERS_MAX + 1);
    assert_eq!(mistakes("x\n".repeat(1000).as_bytes()).len(), MISTAKES_MAX);
}

#[test]
fn neither_names_nor_hashes_are_in_debug_output() {
    let users = Users::parse(format!("anna:{BCRYPT}").as_bytes()).unwrap();
    let shown = format!("{users:?}");
    assert!(!shown.contains("anna") && !shown.contains("uFW"), "{shown}");
}

#[test]
fn the_memory_of_a_verification_is_known() {
    let users = Users::parse(format!("a:{BCRYPT}\nb:{ARGON2}\n").as_bytes()).unwrap();
    assert_eq!(users.memory_max_bytes(), 1024 * 1024);
}

/// Only a lower bound is checked, which no busy machine breaks: the hash is computed at all.
#[test]
#[expect(clippy::disallowed_methods, reason = "measures time")]
fn an_unknown_user_costs_a_hash_too() {
    let (_, user, line) = cases().into_iter().find(|case| case.1 == "apache-cost10").unwrap();
    let users = Users::parse(line.as_bytes()).unwrap();
    let time = |user: &str| {
        let times = (0..5).map(|_| {
            let start = std::time::Instant::now();
            assert!(!users.verify(user, b"guess").is_accepted());
            start.elapsed()
        });
        times.min().unwrap()
    };
    let (known, unknown) = (time(&user), time("mallory"));
    assert!(unknown > known / 4, "{unknown:?} against {known:?}");
}
