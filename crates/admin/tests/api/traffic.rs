//! `/api/v1/traffic` and `/api/v1/history`.

use std::sync::{Arc, Mutex};

use admin::Sources;
use history::{History, Key, Mean, Reading};
use model::Cause;
use model::histogram::{HistogramTotals, bucket_of};
use serde_json::{Value, json};

use crate::rig::{self, Api};

/// A history of the last 100 seconds: ten requests a second, of 20 ms; in the last 10 s, five of them
/// fail.
pub(crate) fn history() -> History {
    let (mut history, last) = (History::new(1 << 30), os::clock::since_boot().as_secs());
    let (mut requests, mut failed) = (0, 0);
    let server = Key::Server(Arc::from("listings"), rig::address("127.0.0.1:5001").into());
    for second in last - 99..=last {
        history.begin(second, 1_000);
        requests += 10;
        failed += if second > last - 10 { 5 } else { 0 };
        let mut durations = HistogramTotals::default();
        durations.add([(bucket_of(20_000), requests)], requests * 20_000, 20_000);
        let mut causes = vec![0; Cause::ALL.len()];
        causes[Cause::Completed as usize] = requests - failed;
        causes[Cause::ConnectionRefused as usize] = failed;
        let mean = Mean { count: requests, sum_us: requests * 500 };
        let listener = Reading {
            counts: &[requests, failed, 0, 0, requests, 0, 0],
            levels: &[7],
            causes: &causes,
            ..Reading::default()
        };
        let service = Reading {
            counts: &[requests, failed, 0, 0, 0, failed, requests, 0, 0, 0, requests * 1_000, 0],
            levels: &[3, 0, 2, 2],
            means: &[Mean::default(), mean, mean],
            durations: &[durations.clone(), durations.clone()],
            causes: &causes,
            ..Reading::default()
        };
        let of_server = Reading {
            counts: &[requests, failed],
            levels: &[3],
            means: &[mean, mean],
            durations: &[durations.clone()],
            ..Reading::default()
        };
        let process =
            Reading { counts: &[requests * 1_000], levels: &[20_000_000, 7], ..Reading::default() };
        history.add(Key::Process, &process);
        history.add(Key::Listener(Arc::from("public")), &listener);
        history.add(Key::Service(Arc::from("listings")), &service);
        history.add(server.clone(), &of_server);
    }
    history
}

#[test]
fn windows_are_rates_and_quantiles() {
    let api = Api::start();
    let traffic = api.get("/api/v1/traffic").json();
    assert_eq!(traffic["spans_s"], json!([10, 60, 3_600]));
    let service = &traffic["services"][0];
    assert_eq!(service["name"], "listings");
    let window = |at: usize| &service["windows"][at];
    let number = |value: &Value| value.as_u64().unwrap();
    let seconds = number(&window(0)["seconds"]);
    assert!((10..15).contains(&seconds), "{seconds}");
    assert_eq!(number(&window(0)["requests"]), seconds * 10);
    assert_eq!(window(0)["failed"], 50);
    assert_eq!(number(&window(2)["seconds"]), 100);
    assert_eq!((&window(2)["requests"], &window(2)["failed"]), (&json!(1_000), &json!(50)));
    let p99 = window(1)["total"]["p99_ms"].as_f64().unwrap();
    assert!((19.0..21.0).contains(&p99), "{p99}");
    assert_eq!(window(1)["client_round_trip_ms"], 0.5);
    assert_eq!(window(1)["queue_mean_ms"], Value::Null);
    let servers = service["servers"].as_array().unwrap();
    let addresses: Vec<_> = servers.iter().map(|server| &server["address"]).collect();
    assert_eq!(addresses, ["127.0.0.1:5001", "[::1]:5002"]);
    let of_server = &servers[0]["windows"][1];
    assert_eq!(number(&of_server["requests"]), number(&of_server["seconds"]) * 10);
    // It was never read.
    assert_eq!(servers[1]["windows"], json!([]));
    assert_eq!(number(&traffic["listeners"][0]["windows"][0]["requests"]), seconds * 10);
    assert_eq!(traffic["cpu"][0], 0.01);

    let only = api.get("/api/v1/traffic?service=listings&servers=false").json();
    assert_eq!(only["services"][0]["servers"], json!([]));
    assert_eq!(api.get("/api/v1/traffic?service=x").status, 404);
    assert_eq!(api.get("/api/v1/traffic?x=1").status, 400);
}

#[test]
fn rows_are_those_of_the_span() {
    let api = Api::start();
    let all = api.get("/api/v1/history").json();
    assert_eq!((&all["enabled"], &all["step_ms"]), (&json!(true), &json!(1_000)));
    assert_eq!(all["ended_unix_ms"].as_array().unwrap().len(), 100);
    let kinds: Vec<_> = all["series"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["process", "listener", "service", "server"]);

    let asked = "/api/v1/history?span_s=20&kind=service&columns=requests,failed,causes";
    let short = api.get(asked).json();
    let service = &short["series"][0];
    assert_eq!(service["columns"]["requests"], json!(vec![10; 20]));
    let failed: Vec<u64> =
        service["columns"]["failed"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!(failed.iter().sum::<u64>(), 50);
    assert_eq!(service["columns"].as_object().unwrap().len(), 2);
    let refused = service["causes"].as_array().unwrap().iter();
    let refused = refused.filter(|one| one["cause"] == "connection_refused");
    assert_eq!(refused.map(|one| one["count"].as_u64().unwrap()).sum::<u64>(), 50);

    // Longer spans have longer rows.
    let long = api.get("/api/v1/history?span_s=7200&server=127.0.0.1:5001").json();
    assert_eq!(long["step_ms"], 10_000);
    assert_eq!(long["series"].as_array().unwrap().len(), 1);
    let requests = long["series"][0]["columns"]["requests"].as_array().unwrap().clone();
    assert_eq!(requests[1], 100);

    // A span of the past.
    let ended: Vec<u64> =
        all["ended_unix_ms"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    let past = api.get(&format!("/api/v1/history?span_s=5&until_unix_ms={}", ended[50])).json();
    let rows = past["ended_unix_ms"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    assert_eq!(rows.last().unwrap().as_u64(), Some(ended[50]));

    let limited = api.get("/api/v1/history?limit=1").json();
    assert_eq!((limited["series"].as_array().unwrap().len(), &limited["left_out"]), (1, &json!(3)));
    for query in ["kind=x", "span_s=-1", "x=1", "columns=x", "columns=requests,,"] {
        let answer = api.get(&format!("/api/v1/history?{query}"));
        assert_eq!(answer.status, 400, "{query}: {}", answer.body);
    }
}

#[test]
fn a_process_without_history_says_so() {
    let api = Api::with(Sources { history: None, ..rig::sources() });
    assert_eq!(api.get("/api/v1/history").status, 501);
    assert_eq!(api.get("/api/v1/traffic").status, 501);
    let history = Some(Arc::new(Mutex::new(History::new(0))));
    let api = Api::with(Sources { history, ..rig::sources() });
    assert_eq!(api.get("/api/v1/history").json()["series"], json!([]));
    assert_eq!(api.get("/api/v1/traffic").json()["services"][0]["windows"], json!([]));
}
