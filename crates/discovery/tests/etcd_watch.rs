//! Watches of etcd: the keys after a list and a sequence of messages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use discovery::ROWS_MAX;
use discovery::etcd::{Keys, Lines, Reading, Step, needs_token};
use model::ListedLimits;
use serde_json::{Value, json};

const READING: Reading = Reading { limits: ListedLimits::Each, port: None };

fn kv(key: &str, value: &str, revision: i64) -> Value {
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    json!({ "key": encoded(key), "mod_revision": revision.to_string(), "value": encoded(value) })
}

fn put(key: &str, value: &str, revision: i64) -> Value {
    json!({ "kv": kv(key, value, revision) })
}

/// As etcd sends it if a key is deleted, and if its lease has expired.
fn delete(key: &str, revision: i64) -> Value {
    let key = BASE64_STANDARD.encode(key);
    json!({ "type": "DELETE", "kv": { "key": key, "mod_revision": revision.to_string() } })
}

fn message(events: &[Value]) -> Vec<u8> {
    json!({ "result": { "header": { "revision": "1000" }, "events": events } })
        .to_string()
        .into_bytes()
}

/// Lists `/web/a` and `/web/b` at revision 10.
fn listed() -> Keys {
    let kvs = [kv("/web/b", "10.0.0.2:80", 9), kv("/web/a", "10.0.0.1:80", 7)];
    let answer = json!({ "header": { "revision": "10" }, "kvs": kvs, "count": "2" });
    Keys::listed(answer.to_string().as_bytes(), "/web/", READING).unwrap()
}

/// Returns the servers, and how many keys are refused.
fn shown(keys: &Keys) -> String {
    let answer = keys.answer();
    let rows = answer.rows.iter().map(|row| format!("{}={}", row.object, row.server.target));
    format!("{} refused={}", rows.collect::<Vec<_>>().join(" "), answer.refused_count)
}

/// The name of a case, its events, what they mean, the servers after them, and the revision.
type Case<'a> = (&'a str, &'a [Value], Step, &'a str, i64);

const BOTH: &str = "/web/a=10.0.0.1:80 /web/b=10.0.0.2:80 refused=0";

fn check(table: &[Case<'_>]) {
    for (case, events, step, wanted, revision) in table {
        let mut keys = listed();
        assert_eq!(keys.on_message(&message(events)), Ok(step.clone()), "{case}");
        assert_eq!(shown(&keys), *wanted, "{case}");
        assert_eq!(keys.revision(), *revision, "{case}");
        // A replay of the same events changes nothing.
        keys.on_message(&message(events)).unwrap();
        assert_eq!((shown(&keys).as_str(), keys.revision()), (*wanted, *revision), "{case}");
    }
}

#[test]
fn each_event_of_a_watch_changes_its_key() {
    check(&[
        (
            "a new key",
            &[put("/web/c", "10.0.0.3:80", 11)],
            Step::Changed,
            "/web/a=10.0.0.1:80 /web/b=10.0.0.2:80 /web/c=10.0.0.3:80 refused=0",
            11,
        ),
        (
            "another value",
            &[put("/web/a", "10.0.0.9:80", 11)],
            Step::Changed,
            "/web/a=10.0.0.9:80 /web/b=10.0.0.2:80 refused=0",
            11,
        ),
        ("the same server again", &[put("/web/a", "10.0.0.1:80\n", 11)], Step::Same, BOTH, 11),
        (
            "a value that is not valid",
            &[put("/web/a", "10.0.0.1", 11)],
            Step::Changed,
            "/web/b=10.0.0.2:80 refused=1",
            11,
        ),
        (
            "a key is deleted, or its lease expires",
            &[delete("/web/b", 11)],
            Step::Changed,
            "/web/a=10.0.0.1:80 refused=0",
            11,
        ),
        (
            "a transaction",
            &[delete("/web/b", 11), put("/web/a", "10.0.0.2:80", 11)],
            Step::Changed,
            "/web/a=10.0.0.2:80 refused=0",
            11,
        ),
        ("an unknown key is deleted", &[delete("/web/x", 11)], Step::Same, BOTH, 11),
    ]);
}

#[test]
fn known_events_and_those_of_other_keys_are_ignored() {
    check(&[
        (
            "keys outside the prefix",
            &[put("/webb", "10.0.0.9:80", 11), delete("/we", 12)],
            Step::Same,
            BOTH,
            12,
        ),
        (
            "an event that the list has",
            &[put("/web/a", "10.0.0.9:80", 6), delete("/web/b", 8)],
            Step::Same,
            BOTH,
            10,
        ),
        (
            "a key is deleted and its earlier event replayed",
            &[
                put("/web/c", "10.0.0.3:80", 11),
                delete("/web/c", 12),
                put("/web/c", "10.0.0.3:80", 11),
            ],
            Step::Changed,
            BOTH,
            12,
        ),
        ("no event: a progress notification", &[], Step::Same, BOTH, 10),
    ]);
}

#[test]
fn a_key_that_expires_leaves_and_comes_back() {
    let mut keys = listed();
    let mut on = |events: &[Value]| keys.on_message(&message(events)).unwrap();
    assert_eq!(on(&[delete("/web/a", 11)]), Step::Changed);
    assert_eq!(on(&[delete("/web/a", 11)]), Step::Same);
    assert_eq!(on(&[put("/web/a", "10.0.0.1:80", 12)]), Step::Changed);
    assert_eq!(on(&[delete("/web/a", 11)]), Step::Same);
    assert_eq!(shown(&keys), BOTH);
}

#[test]
fn a_watch_begins_and_ends() {
    let table: &[(&str, Step)] = &[
        (r#"{"result":{"header":{"revision":"10"},"created":true}}"#, Step::Created),
        (r#"{"result":{"created":true}}"#, Step::Created),
        // A backup was restored.
        (r#"{"result":{"header":{"revision":"9"},"created":true}}"#, Step::Compacted),
        (
            r#"{"result":{"header":{"raft_term":"2"},"canceled":true,"compact_revision":"15"}}"#,
            Step::Compacted,
        ),
        (
            r#"{"result":{"header":{"revision":"8"},"watch_id":"-1","created":true,"canceled":true,"cancel_reason":"rpc error: code = PermissionDenied desc = etcdserver: permission denied"}}"#,
            Step::Ended("etcdserver: permission denied".to_owned()),
        ),
        (r#"{"result":{"canceled":true}}"#, Step::Ended("etcd ended the watch".to_owned())),
        (
            r#"{"error":{"grpc_code":16,"http_code":401,"message":"etcdserver: invalid auth token","http_status":"Unauthorized"}}"#,
            Step::Ended("etcdserver: invalid auth token".to_owned()),
        ),
        (r#"{"error":{}}"#, Step::Ended("an error without a message".to_owned())),
    ];
    for (line, step) in table {
        let mut keys = listed();
        assert_eq!(keys.on_message(line.as_bytes()), Ok(step.clone()), "{line}");
        assert_eq!((shown(&keys).as_str(), keys.revision()), (BOTH, 10), "{line}");
    }
    assert!(needs_token("etcdserver: invalid auth token"));
    assert!(!needs_token("etcdserver: permission denied"));
}

/// What etcd 3.4.23 sent: two keys; then a put, a delete, a key with a lease, and the end of the lease.
#[test]
fn a_list_and_a_watch_of_a_real_etcd() {
    let list = include_bytes!("cases/etcd/real-3.4.json");
    let mut keys = Keys::listed(list, "/web/", READING).unwrap();
    assert_eq!(
        (shown(&keys).as_str(), keys.revision()),
        ("/web/a=10.0.1.1:80 /web/b=10.0.1.2:80 refused=0", 4)
    );
    let mut lines = Lines::new();
    lines.push(include_bytes!("cases/etcd/real-3.4-watch.json"));
    let mut steps = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        steps.push((keys.on_message(line).unwrap(), shown(&keys), keys.revision()));
    }
    let changed = |keys: &str, revision| (Step::Changed, format!("{keys} refused=0"), revision);
    let (a, b, c, l) =
        ("/web/a=10.0.1.1:80", "/web/b=10.0.1.2:80", "/web/c=10.0.1.3:80", "/web/l=10.0.1.9:80");
    assert_eq!(
        steps,
        [
            (Step::Created, format!("{a} {b} refused=0"), 4),
            changed(&format!("{a} {b} {c}"), 5),
            changed(&format!("{b} {c}"), 6),
            changed(&format!("{b} {c} {l}"), 7),
            changed(&format!("{b} {c}"), 8),
        ]
    );
}

#[test]
fn a_line_that_is_no_message_is_an_error() {
    for line in ["", "{}", "[]", "null", "{\"result\":null}", "{\"result\":{\"events\":[{}]}}", "{"]
    {
        let mut keys = listed();
        assert!(keys.on_message(line.as_bytes()).is_err(), "{line}");
        assert_eq!(shown(&keys), BOTH, "{line}");
    }
}

#[test]
fn messages_in_chunks_of_any_length_are_read() {
    let mut stream = br#"{"result":{"header":{"revision":"10"},"created":true}}"#.to_vec();
    for event in [put("/web/c", "10.0.0.3:80", 11), delete("/web/c", 12)] {
        stream.push(b'\n');
        stream.extend(message(&[event]));
    }
    stream.push(b'\n');
    for length in 1..stream.len() {
        let (mut keys, mut lines, mut steps) = (listed(), Lines::new(), Vec::new());
        for chunk in stream.chunks(length) {
            lines.push(chunk);
            while let Some(line) = lines.next_line().unwrap() {
                steps.push(keys.on_message(line).unwrap());
            }
        }
        assert_eq!(steps, [Step::Created, Step::Changed, Step::Changed]);
        assert_eq!((shown(&keys).as_str(), keys.revision()), (BOTH, 12));
    }
}

#[test]
fn keys_and_values_are_bounded() {
    let mut keys = listed();
    for at in 2..ROWS_MAX {
        let event = put(&format!("/web/c{at}"), "10.0.0.1", 11);
        assert_eq!(keys.on_message(&message(&[event])), Ok(Step::Changed));
    }
    let one_more = put("/web/d", "10.0.0.1", 12);
    let why = keys.on_message(&message(&[one_more])).unwrap_err();
    assert_eq!(why, "16385 servers; a service has at most 16384");
    // A known key still changes.
    let changed = put("/web/a", "10.0.0.9:80", 12);
    assert_eq!(keys.on_message(&message(&[changed])), Ok(Step::Changed));

    let long = put(&format!("/web/{}", "\n".repeat(1_020)), "10.0.0.1:80", 12);
    let why = listed().on_message(&message(&[long])).unwrap_err();
    assert!(why.starts_with("a key is longer than 1024 bytes: /web/\\x0a"), "{why}");
    assert!(why.len() < 512 && !why.contains(char::is_control), "{why}");

    let spaces = |count: usize| put("/web/c", &format!("10.0.0.3:80{}", " ".repeat(count)), 11);
    let mut keys = listed();
    assert_eq!(keys.on_message(&message(&[spaces((64 << 10) - 11)])), Ok(Step::Changed));
    assert_eq!(keys.answer().rows.len(), 3);
    for count in [(64 << 10) - 10, 1 << 20] {
        let mut keys = listed();
        assert_eq!(keys.on_message(&message(&[spaces(count)])), Ok(Step::Changed));
        let refused = &keys.answer().refused[0];
        assert_eq!(refused.why, "the value is longer than 65536 bytes");
    }
}
