//! Accounts of made histories.

use serde_json::{Value, json};

use super::account::account;
use super::bundle::{Bundle, NotABundle};
use super::text::text;

/// 2026-11-27 14:00:00 UTC.
const START_MS: u64 = 1_795_788_000_000;

const ROWS: u64 = 120;

/// A level of a column: from a second on.
type Levels<'a> = &'a [(u64, u64)];

fn column(levels: Levels<'_>) -> Value {
    let at = |second: u64| {
        levels.iter().rev().find(|(from, _)| *from <= second).map(|(_, level)| *level)
    };
    (0..ROWS).map(|second| json!(at(second))).collect()
}

fn series(kind: &str, server: Option<&str>, columns: &[(&str, Levels<'_>)]) -> Value {
    let columns: serde_json::Map<String, Value> =
        columns.iter().map(|(name, levels)| ((*name).to_owned(), column(levels))).collect();
    let service = (kind != "process").then_some("app");
    json!({ "kind": kind, "service": service, "server": server, "columns": columns })
}

fn server(address: &str, first_byte: Levels<'_>) -> Value {
    let columns: [(&str, Levels<'_>); 4] = [
        ("requests", &[(0, 33)]),
        ("failed", &[(0, 0)]),
        ("first_byte_p50_us", first_byte),
        ("round_trip_mean_us", &[(0, 300)]),
    ];
    series("server", Some(address), &columns)
}

fn history(series: Value) -> Value {
    let ended: Vec<u64> = (1..=ROWS).map(|second| START_MS + second * 1_000).collect();
    let covered = vec![1_000; ROWS as usize];
    json!({ "step_ms": 1_000, "ended_unix_ms": ended, "covered_ms": covered, "series": series })
}

fn change(second: u64, kind: &str, effect: &str, what: &str, server: Option<&str>) -> Value {
    json!({
        "at_unix_ms": START_MS + second * 1_000, "kind": kind, "effect": effect, "what": what,
        "service": "app", "server": server,
    })
}

/// A service with three servers, of which the third becomes slow in second 60.
fn slow_server() -> Value {
    let columns: [(&str, Levels<'_>); 4] = [
        ("requests", &[(0, 100)]),
        ("attempts", &[(0, 100)]),
        ("failed", &[(0, 0)]),
        ("queue_length", &[(0, 0)]),
    ];
    let own = series("service", None, &columns);
    let slow = Some("10.0.0.3:80");
    json!({
        "format": "weir-bundle", "version": 1, "host": "lb-1",
        "from_unix_ms": START_MS, "at_unix_ms": START_MS + ROWS * 1_000,
        "history": [
            history(json!([series("process", None, &[("cpu_us", &[(0, 310_000)])]), own])),
            history(json!([
                server("10.0.0.1:80", &[(0, 20_000)]),
                server("10.0.0.2:80", &[(0, 21_000)]),
                server("10.0.0.3:80", &[(0, 20_000), (60, 1_500_000)]),
            ])),
        ],
        "answers": {
            "status": { "workers": 2 },
            "changes": { "changes": [
                change(66, "finding", "trouble", "10.0.0.3:80 of app is slow.", slow),
                change(58, "weight", "neutral", "10.0.0.3:80 of app has weight 5.", slow),
            ] },
            "findings": { "enabled": true, "findings": [finding()] },
            "requests/ended": { "requests": [{
                "ended_unix_ms": START_MS + 100_000, "kept_for": "slowest", "method": "GET",
                "path": "/\u{1b}[31m", "service": "app", "server": slow, "status": 200,
                "cause": "completed", "total_ms": 1502.3, "first_byte_ms": 1501.0, "queue_ms": 0.0,
                "connect_ms": 0.25, "request_id": "a1",
            }] },
        },
    })
}

fn finding() -> Value {
    json!({
        "rule": "server_slow", "subject": "10.0.0.3:80 of app", "service": "app",
        "servers": ["10.0.0.3:80"], "severity": "warning", "certainty": "certain",
        "what": "10.0.0.3:80 of app is slow: 1.5 s, its peers 20 ms.", "evidence": [],
        "consequences": [{ "rule": "x", "subject": "y", "what": "Requests wait." }],
        "why": "", "verify": "", "source": [], "is_present": true,
        "remedy": [{ "action": "Drain it", "commands": ["weir drain app 10.0.0.3:80"], "risk": "" }],
        "first_seen_unix_ms": START_MS + 66_000, "last_seen_unix_ms": START_MS + 120_000,
    })
}

fn text_of(bundle: &Value) -> String {
    text(&account(&Bundle::read(bundle.to_string().as_bytes()).unwrap()))
}

#[test]
fn a_slow_server_line_by_line() {
    let expected = "\
lb-1, 2026-11-27 14:00:00 to 14:02:00 UTC (2m)

Now: 10.0.0.3:80 of app is slow: 1.5 s, its peers 20 ms.
  so: Requests wait.

14:00:58  10.0.0.3:80 of app has weight 5.
14:01:00  10.0.0.3:80 of app became slower: its median time to the response head was 1.5 s, before
          20 ms.
14:01:06  10.0.0.3:80 of app is slow.

Ruled out: load (100 requests/s, before 100 requests/s), the 2 other servers (response heads after
           20.5 ms, before response heads after 20.5 ms), the network to it (round trip 300 µs),
           Weir (its queue is empty, it was not interrupted, its workers use 15.5 % of their cores).
Preceded by: 10.0.0.3:80 of app has weight 5.
Example: GET /\u{fffd}[31m at 10.0.0.3:80: 200 completed after 1.5 s (queue 0 µs, connect 250 µs, response
         head 1.5 s), request a1
Do: Drain it
    weir drain app 10.0.0.3:80
";
    assert_eq!(text_of(&slow_server()), expected);
}

#[test]
fn what_ended_before_the_finding_list_was_read_is_known_from_the_changes() {
    let mut bundle = slow_server();
    bundle["answers"]["findings"] = json!({ "enabled": true, "findings": [] });
    let said = text_of(&bundle);
    assert!(said.contains("\nIn this time: 10.0.0.3:80 of app is slow.\n"), "{said}");
    assert!(said.contains("Ruled out: load"), "{said}");
}

#[test]
fn without_trouble_nothing_is_explained() {
    let mut bundle = slow_server();
    bundle["answers"] = json!({ "findings": { "enabled": false } });
    bundle["history"].as_array_mut().unwrap().pop();
    let said = text_of(&bundle);
    assert!(said.contains("No problem was found"), "{said}");
    assert!(!said.contains("Ruled out") && !said.contains("Preceded"), "{said}");
    assert!(said.contains("the doctor is off"), "{said}");
}

#[test]
fn many_servers_that_move_together_are_one_event() {
    let mut bundle = slow_server();
    let history = bundle["history"][1]["series"].as_array_mut().unwrap();
    let slow = history[2].clone();
    for (at, series) in history.iter_mut().enumerate() {
        *series = slow.clone();
        series["server"] = json!(format!("10.0.0.{at}:80"));
    }
    let said = text_of(&bundle);
    assert!(said.contains("3 of 3 servers of app became slower: their median time"), "{said}");
}

#[test]
fn load_that_doubles_is_an_event_and_is_not_ruled_out() {
    let mut bundle = slow_server();
    bundle["history"][0]["series"][1]["columns"]["requests"] = column(&[(0, 100), (60, 250)]);
    let said = text_of(&bundle);
    assert!(said.contains("14:01:00  app received more requests: 250/s, before 100/s."), "{said}");
    assert!(!said.contains("Ruled out: load"), "{said}");
}

#[test]
fn load_that_moves_at_the_beginning_is_not_ruled_out_though_the_medians_are_near() {
    let mut bundle = slow_server();
    bundle["history"][0]["series"][1]["columns"]["requests"] =
        column(&[(0, 100), (35, 40), (58, 104)]);
    let said = text_of(&bundle);
    assert!(said.contains("14:00:58  app received more requests: 104/s, before 40/s."), "{said}");
    assert!(!said.contains("Ruled out: load"), "{said}");
}

#[test]
fn a_busy_balancer_is_not_ruled_out_and_what_is_missing_is_not_known() {
    let mut bundle = slow_server();
    bundle["history"][0]["series"][0]["columns"]["cpu_us"] = column(&[(0, 1_900_000)]);
    assert!(!text_of(&bundle).contains("Weir (its queue"));
    bundle["answers"].as_object_mut().unwrap().remove("changes");
    bundle["history"][0]["series"][1]["columns"].as_object_mut().unwrap().remove("queue_length");
    let said = text_of(&bundle);
    assert!(said.contains("Not known: Weir itself."), "{said}");
    assert!(said.contains("Preceded by: not known: the changes are missing."), "{said}");
}

#[test]
fn the_day_is_said_where_it_changes() {
    let mut bundle = slow_server();
    bundle["from_unix_ms"] = json!(START_MS - 86_400_000);
    assert!(text_of(&bundle).contains("\n2026-11-27:\n14:00:58  "));
}

#[test]
fn a_thousand_events_are_cut_to_the_most_telling() {
    let mut bundle = slow_server();
    let changes = bundle["answers"]["changes"]["changes"].as_array_mut().unwrap();
    let weight = |second: u64| change(second, "weight", "neutral", &format!("W{second}."), None);
    changes.extend((0..90).map(weight));
    let said = text_of(&bundle);
    assert!(said.contains("more events, of less importance"), "{said}");
    assert!(said.contains("10.0.0.3:80 of app is slow"), "{said}");
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let refused = |text: &str| Bundle::read(text.as_bytes()).unwrap_err();
    assert_eq!(refused("{}"), NotABundle::OtherFormat);
    assert!(matches!(refused("x"), NotABundle::Unreadable(_)));
    let later = r#"{"format":"weir-bundle","version":9,"answers":7}"#;
    assert_eq!(refused(later), NotABundle::Later(9));
    let wrong = r#"{"format":"weir-bundle","version":1,"history":3}"#;
    assert!(matches!(refused(wrong), NotABundle::Unreadable(_)));
}

/// Whatever its members are, a bundle is read or refused.
#[test]
fn mutilated_bundles_cause_no_panic() {
    let whole = slow_server();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..500 {
        let mut bundle = whole.clone();
        for _ in 0..rng.usize(1..4) {
            mutilate(&mut bundle, &mut rng);
        }
        if let Ok(bundle) = Bundle::read(bundle.to_string().as_bytes()) {
            let _ = text(&account(&bundle));
        }
    }
}

/// Replaces a random member, at a random depth.
fn mutilate(value: &mut Value, rng: &mut fastrand::Rng) {
    let inner = match value {
        Value::Object(members) if !members.is_empty() => {
            let at = rng.usize(..members.len());
            members.values_mut().nth(at)
        }
        Value::Array(elements) if !elements.is_empty() => {
            let at = rng.usize(..elements.len());
            elements.get_mut(at)
        }
        _ => None,
    };
    match inner {
        Some(inner) if rng.u8(..5) > 0 => mutilate(inner, rng),
        _ => {
            let others = [
                json!(null),
                json!(u64::MAX),
                json!(-1),
                json!([]),
                json!({}),
                json!("x"),
                json!(1e300),
            ];
            *value = others[rng.usize(..others.len())].clone();
        }
    }
}
