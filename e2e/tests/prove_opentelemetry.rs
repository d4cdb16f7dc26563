//! A real OpenTelemetry Collector, over TLS, receives what Weir sends: counts agree with those of the client, with
//! Weir's own and with the servers', also across a reload and an upgrade. Part of `make prove`;
//! `scripts/install-otel-collector` builds it.

use std::collections::{HashMap, HashSet};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use e2e::http::Connection;
use e2e::{App, Authority, OTEL_COLLECTOR, Process, Scene, Weir, find, server_tables, wait};
use rustix::process::Signal;
use serde_json::Value;

const SOON: Duration = Duration::from_secs(30);
const REQUESTS: usize = 300;

/// All items of a file of messages, each line one: what stands below `path`.
fn items(file: &Path, path: [&str; 3]) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut found: Vec<Value> =
        whole.lines().map(|line| serde_json::from_str(line).expect("a message")).collect();
    for name in path {
        found = found
            .iter()
            .flat_map(|value| value[name].as_array().cloned().unwrap_or_default())
            .collect();
    }
    found
}

fn attribute<'a>(item: &'a Value, key: &str) -> &'a Value {
    let all = item["attributes"].as_array().into_iter().flatten();
    let found = all.clone().find(|one| one["key"] == key).map(|one| &one["value"]);
    found.and_then(|value| value.as_object()?.values().next()).unwrap_or(&Value::Null)
}

/// The newest value of a counter, for each set of attributes; those of each instance on their own.
fn totals(file: &Path, name: &str) -> HashMap<String, u64> {
    let mut totals = HashMap::new();
    for resource in resources(file) {
        let instance = attribute(&resource["resource"], "service.instance.id").to_string();
        let scopes = resource["scopeMetrics"].as_array().into_iter().flatten();
        let metrics = scopes.flat_map(|scope| scope["metrics"].as_array().into_iter().flatten());
        for point in metrics
            .filter(|metric| metric["name"] == name)
            .flat_map(|metric| metric["sum"]["dataPoints"].as_array().into_iter().flatten())
        {
            let value = point["asInt"].as_str().and_then(|text| text.parse().ok());
            let key = format!("{instance} {}", point["attributes"]);
            totals.insert(key, value.expect("a whole number"));
        }
    }
    totals
}

fn resources(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let messages =
        whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("a message"));
    messages
        .flat_map(|one| one["resourceMetrics"].as_array().cloned().unwrap_or_default())
        .collect()
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn a_real_collector_counts_what_the_client_counts() {
    let Some(scene) = Scene::new("prove-opentelemetry", &[OTEL_COLLECTOR]) else { return };
    let folder = scene.folder().to_owned();
    let at = scene.address(40, 4318);
    let authority = Authority::new(&scene, "Test CA");
    let pair = authority.issue("collector", &[&scene.ip(40).to_string()]);
    let exporter = |name: &str| {
        let file = folder.join(format!("{name}.json"));
        format!("  file/{name}: {{ path: {}, flush_interval: 100ms }}\n", file.display())
    };
    let pipeline =
        |name: &str| format!("    {name}: {{ receivers: [otlp], exporters: [file/{name}] }}\n");
    let signals = ["traces", "metrics", "logs"];
    let settings = format!(
        "receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: {at}\n        tls: \
         {{ cert_file: {}, key_file: {} }}\nexporters:\n{}service:\n  telemetry:\n    metrics: \
         {{ level: none }}\n  pipelines:\n{}",
        pair.chain.display(),
        pair.key.display(),
        signals.map(exporter).concat(),
        signals.map(pipeline).concat(),
    );
    let settings = scene.file("collector.yaml", settings).display().to_string();
    let program = find(OTEL_COLLECTOR).expect("the scene has looked for it");
    let _collector = Process::start(&scene, "collector", &program, ["--config", &settings]);
    wait::until("the collector", SOON, || TcpStream::connect(at).ok());

    let app = App::start(&scene, 11, &[]);
    let (front, admin, ca) = (scene.front(), scene.admin(), authority.ca());
    let gone = scene.address(12, 8080);
    let config = format!(
        "workers = 2\n[admin]\naddress = \"{admin}\"\n\
         [otlp]\nendpoint = \"https://{at}\"\n{ca}\nsample = {{ ok = 1.0 }}\n\
         traces_per_cause_max = 100000\ninterval = \"1s\"\n[log]\naccess = \"otlp\"\n\
         [[listener]]\nname = \"public\"\naddress = \"{front}\"\ntrusted = [\"127.0.0.0/8\"]\n\
         [[route]]\nservice = \"app\"\n[service.app]\nretries = {{ max = 1 }}\n{}",
        server_tables("app", [app.address(), gone]),
    );
    let mut weir = Weir::start(&scene, &config);
    let ask = |from: usize| {
        let mut client = Connection::open(front).unwrap();
        for n in from..from + REQUESTS {
            let flag = if n % 2 == 0 { "01" } else { "00" };
            let parent = format!("traceparent: 00-{:032x}-00f067aa0ba902b7-{flag}", n + 1);
            assert_eq!(client.get("/", &[&parent]).unwrap().status, 200);
        }
    };
    ask(0);
    // The upgrade's successor is another instance, and the old one sends all that it has at its end.
    let (_, successor) = weir.upgrade(Duration::from_secs(20));
    ask(REQUESTS);
    let [traces, metrics, logs] = signals.map(|name| folder.join(format!("{name}.json")));
    let all = 2 * REQUESTS;
    let server_spans = || {
        let mut spans = items(&traces, ["resourceSpans", "scopeSpans", "spans"]);
        spans.retain(|span| span["kind"] == 2);
        spans
    };
    wait::until("a span for each request", SOON, || {
        Some(()).filter(|()| server_spans().len() == all)
    });
    let spans = items(&traces, ["resourceSpans", "scopeSpans", "spans"]);
    let ids: HashSet<&Value> = spans.iter().map(|span| &span["spanId"]).collect();
    assert_eq!(ids.len(), spans.len(), "an ID occurs twice");
    let requests: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 2).collect();
    let traces_seen: HashSet<&Value> = requests.iter().map(|span| &span["traceId"]).collect();
    assert_eq!(traces_seen.len(), all);
    let sampled = requests.iter().filter(|one| attribute(one, "weir.exported_for") == "sampled");
    assert_eq!(sampled.count(), all / 2);
    let by_id: HashMap<&Value, &Value> =
        requests.iter().map(|one| (&one["spanId"], *one)).collect();
    let attempts: Vec<&Value> = spans.iter().filter(|span| span["kind"] == 3).collect();
    for attempt in &attempts {
        assert_eq!(attempt["traceId"], by_id[&attempt["parentSpanId"]]["traceId"]);
    }
    let refused =
        attempts.iter().filter(|one| attribute(one, "error.type") == "connection_refused").count();
    assert_eq!(attempts.len(), all + refused);
    assert!(refused > 0, "no attempt has failed");
    assert_eq!(app.stat("requests"), all as u64);

    let lines = || {
        let records = items(&logs, ["resourceLogs", "scopeLogs", "logRecords"]);
        records.iter().filter(|one| one["eventName"] == "weir.access").count()
    };
    wait::until("a line for each request", SOON, || Some(()).filter(|()| lines() == all));
    wait::until("the counts of both instances", SOON, || {
        let totals = totals(&metrics, "weir_requests_total");
        let instances: HashSet<&str> =
            totals.keys().filter_map(|key| key.split(' ').next()).collect();
        let sum: u64 = totals.values().sum();
        Some(()).filter(|()| instances.len() == 2 && sum == all as u64)
    });
    successor.signal(Signal::TERM);
    wait::until("its end", SOON, || Some(()).filter(|()| !successor.is_running()));
}
