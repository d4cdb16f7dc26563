//! Directories that misbehave: every wait and size is bounded, and the message says what is wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acme::{Event, StartError, State};
use model::{Acme, ExternalAccount};
use support::{Folder, Pki, Running, Server, https, material, settings, unused_port};
use tls::Challenges;

#[allow(clippy::unnecessary_wraps, reason = "a server may also not answer")]
fn answer(status: &str, fields: &str, body: &str) -> Option<Vec<u8>> {
    let length = body.len();
    Some(
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{fields}\r\n{body}").into_bytes(),
    )
}

/// A directory whose resources are at `port`.
fn directory(port: u16) -> String {
    let url = |path: &str| format!("\"{path}\":\"https://localhost:{port}/{path}\"");
    let all = ["newNonce", "newAccount", "newOrder", "revokeCert", "keyChange"].map(url);
    format!("{{{}}}", all.join(","))
}

/// A directory that answers everything but its own page and requests for nonces with a problem.
fn refusing(pki: &Pki, port: u16, status: &'static str, fields: &str, problem: &str) -> Server {
    let fields = format!("Content-Type: application/problem+json\r\n{fields}");
    let problem = problem.to_owned();
    https(port, pki, move |request| match request {
        _ if request.starts_with("GET /dir ") => answer("200 OK", "", &directory(port)),
        _ if request.starts_with("HEAD ") => {
            Some(b"HTTP/1.1 200 OK\r\nReplay-Nonce: n1\r\nContent-Length: 0\r\n\r\n".to_vec())
        }
        _ => answer(status, &fields, &problem),
    })
}

fn of(folder: &Folder, pki: &Pki, port: u16) -> Acme {
    let url = format!("https://localhost:{port}/dir");
    settings(&url, &pki.ca, &folder.0.join("state"), &["a.example"])
}

#[test]
fn answers_of_no_acme_server_are_failures_with_a_reason() {
    let (folder, pki) = (Folder::new("answers"), Pki::new());
    let long = "x".repeat(300_000);
    for (bytes, said) in [
        (answer("200 OK", "", "<html>"), "not that of an ACME server"),
        (answer("200 OK", "", "{\"newNonce\":"), "not that of an ACME server"),
        (answer("200 OK", "", &long), "more than 262144 bytes"),
        (answer("404 Not Found", "", "nothing"), "answered 404; is it the URL"),
        (
            answer("301 Moved", "Location: https://b.example/\r\n", ""),
            "redirects to https://b.example/",
        ),
        (answer("500 Oops", "Content-Type: application/problem+json\r\n", "{}"), "answered 500"),
        (Some(b"\x00\x01\x02\x03\r\n\r\n".to_vec()), "not a valid HTTP response"),
    ] {
        let server = https(0, &pki, move |_| bytes.clone());
        let mut running = Running::start(&of(&folder, &pki, server.port), &Arc::default());
        let failure = running.failure();
        assert!(failure.what.contains(said), "{said}: {failure}");
        assert_eq!(failure.names, ["a.example"]);
        assert_eq!((failure.failures, failure.valid_until_s), (1, None));
        let now_s = os::clock::wall().as_secs().cast_signed();
        assert!((10..=60).contains(&(failure.retry_at_s - now_s)), "{failure:?}");
        assert_eq!(failure.to_string().lines().count(), 1);
        assert_eq!(running.handle.status()[0].failure.as_ref(), Some(&failure));
        running.handle.stop();
    }
}

#[test]
fn retry_after_is_respected_within_a_day_whatever_its_size() {
    let (folder, pki) = (Folder::new("retry"), Pki::new());
    for (value, wait_s) in [("7200", 7200), ("18446744073709551615", 86400)] {
        let fields = format!("Retry-After: {value}\r\n");
        let server = https(0, &pki, move |_| answer("503 Busy", &fields, ""));
        let mut running = Running::start(&of(&folder, &pki, server.port), &Arc::default());
        let failure = running.failure();
        let left_s = failure.retry_at_s - os::clock::wall().as_secs().cast_signed();
        assert!((wait_s - 60..=wait_s).contains(&left_s), "{value}: {left_s}");
        running.handle.stop();
    }
}

#[test]
fn problems_are_quoted_in_one_line_without_control_characters() {
    let (folder, pki) = (Folder::new("problem"), Pki::new());
    let detail = format!("no\\r\\n\\u001b[31mERROR forged line {}", "y".repeat(5000));
    let port = unused_port();
    let kind = "urn:ietf:params:acme:error:unauthorized";
    let problem = format!("{{\"type\":\"{kind}\",\"detail\":\"{detail}\"}}");
    let _server = refusing(&pki, port, "403 Forbidden", "", &problem);
    let mut running = Running::start(&of(&folder, &pki, port), &Arc::default());
    let line = running.failure().to_string();
    assert!(line.contains("(unauthorized)") && line.len() < 700, "{line}");
    assert!(!line.chars().any(char::is_control), "{line:?}");
    running.handle.stop();
}

#[test]
fn a_nonce_that_is_always_refused_ends_the_attempt() {
    let (folder, pki) = (Folder::new("nonce"), Pki::new());
    let port = unused_port();
    let problem = "{\"type\":\"urn:ietf:params:acme:error:badNonce\"}";
    let _server = refusing(&pki, port, "400 Bad", "Replay-Nonce: n2\r\n", problem);
    let mut running = Running::start(&of(&folder, &pki, port), &Arc::default());
    assert!(running.failure().what.contains("badNonce"));
    running.handle.stop();
}

/// An authority that was told that the challenge is ready may validate at any time: an answer that is
/// missing then, even between two attempts, ends the order.
#[test]
fn a_challenge_is_answered_until_its_order_ends_whatever_fails_in_between() {
    const PROBLEM: &str = "Replay-Nonce: n2\r\nContent-Type: application/problem+json\r\n";
    let (folder, pki) = (Folder::new("between"), Pki::new());
    let port = unused_port();
    let challenges = Arc::<Challenges>::default();
    let is_answered =
        |challenges: &Challenges| challenges.http("/.well-known/acme-challenge/tok-1").is_some();
    // Requests since the challenge is ready, and those of them during which it was not answered.
    let (since, unanswered) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (looked, requests, missing) =
        (Arc::clone(&challenges), Arc::clone(&since), Arc::clone(&unanswered));
    let _server = https(port, &pki, move |request| {
        if requests.load(Ordering::Relaxed) > 0 {
            requests.fetch_add(1, Ordering::Relaxed);
            missing.fetch_add(usize::from(!is_answered(&looked)), Ordering::Relaxed);
        }
        let url = |path: &str| format!("https://localhost:{port}/{path}");
        let created = |path: &str, body: &str| {
            let fields = format!("Replay-Nonce: n2\r\nLocation: {}\r\n", url(path));
            answer("201 Created", &fields, body)
        };
        let found = |body: &str| answer("200 OK", "Replay-Nonce: n2\r\n", body);
        let challenge = |status: &str| {
            let url = url("challenge");
            format!(r#"{{"type":"http-01","url":"{url}","token":"tok-1","status":"{status}"}}"#)
        };
        let order = format!(
            r#"{{"status":"pending","identifiers":[{{"type":"dns","value":"a.example"}}],
                "authorizations":["{}"],"finalize":"{}"}}"#,
            url("authorization"),
            url("finalize")
        );
        match request.split(' ').nth(1).unwrap() {
            "/dir" => answer("200 OK", "", &directory(port)),
            "/newNonce" => {
                Some(b"HTTP/1.1 200 OK\r\nReplay-Nonce: n1\r\nContent-Length: 0\r\n\r\n".to_vec())
            }
            "/newAccount" => created("account", r#"{"status":"valid"}"#),
            "/newOrder" => created("order", &order),
            "/authorization" => found(&format!(
                r#"{{"identifier":{{"type":"dns","value":"a.example"}},"status":"pending",
                    "challenges":[{}]}}"#,
                challenge("pending")
            )),
            "/challenge" => {
                requests.fetch_max(1, Ordering::Relaxed);
                found(&challenge("processing"))
            }
            // The library gives up after three nonces, and a second attempt begins; after that the
            // authority fails, and the order waits for an attempt in some minutes.
            "/order" if requests.load(Ordering::Relaxed) < 12 => {
                answer("400 Bad", PROBLEM, r#"{"type":"urn:ietf:params:acme:error:badNonce"}"#)
            }
            "/order" => answer("503 Unavailable", PROBLEM, r#"{"status":503}"#),
            other => panic!("{other}"),
        }
    });
    let mut running = Running::start(&of(&folder, &pki, port), &challenges);
    let failure = running.failure();
    assert!(since.load(Ordering::Relaxed) >= 12, "{failure}");
    assert_eq!(unanswered.load(Ordering::Relaxed), 0, "{failure}");
    assert!(is_answered(&challenges), "{failure}");
    running.handle.stop();
    assert!(!is_answered(&challenges));
}

#[test]
fn a_directory_that_never_answers_does_not_delay_a_stop() {
    let (folder, pki) = (Folder::new("hangs"), Pki::new());
    let server = https(0, &pki, |_| None);
    let mut running = Running::start(&of(&folder, &pki, server.port), &Arc::default());
    let served = Arc::clone(&server.served);
    support::wait_for("a connection", || served.load(Ordering::Relaxed) > 0);
    assert!(running.event(Duration::from_millis(200)).is_none());
    let begun = os::clock::now();
    running.handle.stop();
    assert!(os::clock::now().since(begun) < Duration::from_secs(2));
}

#[test]
fn a_directory_that_is_not_there_or_not_trusted_is_said() {
    let (folder, pki) = (Folder::new("trust"), Pki::new());
    let port = unused_port();
    let mut running = Running::start(&of(&folder, &pki, port), &Arc::default());
    let what = running.failure().what;
    assert!(what.contains(&format!("cannot connect to localhost:{port}")), "{what}");
    running.handle.stop();

    let server = https(0, &pki, move |_| answer("200 OK", "", "{}"));
    let other = Pki::new();
    let mut running = Running::start(&of(&folder, &other, server.port), &Arc::default());
    let what = running.failure().what;
    assert!(what.contains("name the CA that issued its server's certificate"), "{what}");
    running.handle.stop();
}

#[test]
fn settings_that_cannot_work_are_refused_at_the_start() {
    let (folder, pki) = (Folder::new("refused"), Pki::new());
    let refused = |change: fn(&mut Acme)| {
        let mut settings = of(&folder, &pki, 1);
        change(&mut settings);
        let state = State::open(&settings, None).unwrap();
        let events = Box::new(|_: Event| ());
        let error = acme::start(
            Arc::new(settings),
            state,
            Arc::<Challenges>::default(),
            Arc::default(),
            events,
        );
        match error {
            Err(StartError::Settings(line)) => line,
            other => panic!("{other:?}"),
        }
    };
    let line = refused(|settings| settings.directory = "http://localhost/dir".into());
    assert!(line.contains("must be https"), "{line}");
    let line = refused(|settings| settings.ca = material("ca.pem", "not PEM"));
    assert!(line.contains("ca.pem"), "{line}");
    let line = refused(|settings| {
        let hmac_key = material("eab.key", "SECRET+");
        settings.external_account = Some(ExternalAccount { key_id: "kid".into(), hmac_key });
    });
    assert!(line.contains("eab.key") && !line.contains("SECRET"), "{line}");
}

#[test]
fn a_damaged_account_is_reported_kept_and_replaced() {
    let (folder, pki) = (Folder::new("damaged"), Pki::new());
    let server = https(0, &pki, |_| answer("503 Busy", "", ""));
    let settings = of(&folder, &pki, server.port);
    State::open(&settings, None).unwrap();
    let state = std::fs::read_dir(&settings.state).unwrap().next().unwrap().unwrap().path();
    std::fs::write(state.join("account.json"), "{").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(state.join("account.json"), mode).unwrap();
    let mut running = Running::start(&settings, &Arc::default());
    let Some(Event::Ignored(line)) = running.event(support::PATIENCE) else {
        panic!("it is not reported");
    };
    assert!(line.contains("account.json") && line.contains("damaged"), "{line}");
    running.failure();
    assert!(state.join("account.json.old").exists());
    running.handle.stop();
}
