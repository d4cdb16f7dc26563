//! What Weir sends to an OpenTelemetry collector (`[otlp]`), which trace context servers receive, and that a collector
//! that refuses, hangs or is gone costs no request. `prove_opentelemetry` has a real collector.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use e2e::http::Connection;
use e2e::rogue::Rogue;
use e2e::{App, Scene, Weir, server_tables, wait};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use prost::Message as _;

const SOON: Duration = Duration::from_secs(20);

/// How the collector answers.
#[derive(Clone)]
enum Answer {
    /// With a status, further fields, and a body.
    Status(u16, &'static str, Vec<u8>),
    /// Not at all.
    Hangs,
}

/// Messages that were received: head and body.
type Messages = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A collector: what it has received, by the path.
struct Collector {
    _server: Rogue,
    messages: Messages,
    answer: Arc<Mutex<Answer>>,
}

impl Collector {
    fn start(address: SocketAddr) -> Collector {
        let messages = Messages::default();
        let answer = Arc::new(Mutex::new(Answer::Status(200, "", Vec::new())));
        let (received, answers) = (Arc::clone(&messages), Arc::clone(&answer));
        let server = Rogue::start(address, move |peer| {
            while let Some((head, body)) = peer.message() {
                let chosen = answers.lock().unwrap().clone();
                let Answer::Status(status, fields, says) = chosen else { return peer.hold() };
                if status == 200 {
                    received.lock().unwrap().push((head, body));
                }
                let length = says.len();
                peer.say(format!(
                    "HTTP/1.1 {status} Some\r\n{fields}Content-Length: {length}\r\n\r\n"
                ));
                peer.say(says);
            }
        });
        Collector { _server: server, messages, answer }
    }

    fn answers(&self, answer: Answer) {
        *self.answer.lock().unwrap() = answer;
    }

    fn heads(&self) -> Vec<String> {
        self.messages.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    fn bodies<M: prost::Message + Default>(&self, path: &str) -> Vec<M> {
        let messages = self.messages.lock().unwrap();
        let of_path =
            messages.iter().filter(|(head, _)| head.starts_with(&format!("POST {path} ")));
        of_path.map(|(_, body)| M::decode(&**body).expect("a message of OTLP")).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let messages = self.bodies::<ExportTraceServiceRequest>("/collect/v1/traces").into_iter();
        let scopes = messages.flat_map(|all| all.resource_spans).flat_map(|all| all.scope_spans);
        scopes.flat_map(|all| all.spans).collect()
    }

    /// The spans of requests, without those of attempts.
    fn requests(&self) -> Vec<Span> {
        self.spans().into_iter().filter(|span| span.kind == SpanKind::Server as i32).collect()
    }

    fn logs(&self) -> Vec<LogRecord> {
        let messages = self.bodies::<ExportLogsServiceRequest>("/collect/v1/logs").into_iter();
        let scopes = messages.flat_map(|all| all.resource_logs).flat_map(|all| all.scope_logs);
        scopes.flat_map(|all| all.log_records).collect()
    }

    fn metrics(&self) -> Vec<Metric> {
        let messages =
            self.bodies::<ExportMetricsServiceRequest>("/collect/v1/metrics").into_iter();
        let scopes =
            messages.flat_map(|all| all.resource_metrics).flat_map(|all| all.scope_metrics);
        scopes.flat_map(|all| all.metrics).collect()
    }
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn attributes(all: &[KeyValue]) -> HashMap<String, String> {
    all.iter().map(|one| (one.key.clone(), text(one.value.as_ref()))).collect()
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server that records the `traceparent` and `tracestate` that it receives, and answers with the status in the
/// target.
fn server(scene: &Scene, host: u8) -> (Rogue, Arc<Mutex<Vec<String>>>) {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let records = Arc::clone(&told);
    let server = Rogue::start(scene.address(host, 8080), move |peer| {
        while let Some(head) = peer.request() {
            let trace = head.lines().filter(|line| line.to_ascii_lowercase().starts_with("trace"));
            let mut trace: Vec<_> = trace.collect();
            trace.sort_unstable();
            records.lock().unwrap().push(trace.join("\n"));
            let status = head.split(['/', ' ']).nth(2).and_then(|text| text.parse::<u16>().ok());
            let status = status.unwrap_or(200);
            peer.say(format!("HTTP/1.1 {status} Some\r\nContent-Length: 2\r\n\r\nok"));
        }
    });
    (server, told)
}

/// A configuration with a collector at host 40, one route, and one service.
fn config(scene: &Scene, otlp: &str, listener: &str, servers: &[SocketAddr]) -> String {
    let (front, admin) = (scene.front(), scene.admin());
    let collector = scene.address(40, 4318);
    format!(
        "workers = 2\n[admin]\naddress = \"{admin}\"\n\
         [otlp]\nendpoint = \"http://{collector}/collect/\"\n{otlp}\n\
         [[listener]]\nname = \"public\"\naddress = \"{front}\"\n{listener}\n\
         [[route]]\nname = \"all\"\nservice = \"app\"\n\
         [service.app]\nretries = {{ max = 1 }}\n{}",
        server_tables("app", servers.iter().copied()),
    )
}

const TRUSTED: &str = "trusted = [\"127.0.0.0/8\"]";
const PARENT: &str = "00f067aa0ba902b7";

fn traceparent(trace: &str, flags: &str) -> String {
    format!("traceparent: 00-{trace}-{PARENT}-{flags}")
}

#[test]
fn a_trusted_context_is_continued_through_every_attempt() {
    let Some(scene) = Scene::new("otlp-context", &[]) else { return };
    let collector = Collector::start(scene.address(40, 4318));
    let (_server, told) = server(&scene, 11);
    // The second address refuses connections, so that some requests need a second attempt.
    let servers = [scene.address(11, 8080), scene.address(12, 8080)];
    let only_sampled = "sample = { ok = 0.0 }\nmetrics = false\nlogs = false";
    let weir = Weir::start(&scene, &config(&scene, only_sampled, TRUSTED, &servers));
    let mut client = Connection::open(weir.front()).unwrap();
    let traces: Vec<String> = (1..=4).map(|n| format!("{n:032x}")).collect();
    for trace in &traces {
        let fields = [&*traceparent(trace, "01"), "tracestate: vendor=value"];
        assert_eq!(client.get("/", &fields).unwrap().status, 200);
    }
    let spans = wait::until("spans of four requests", SOON, || {
        Some(collector.spans()).filter(|_| collector.requests().len() == 4)
    });
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 4);
    let mut failed = 0;
    for (trace, told) in traces.iter().zip(&told) {
        let of_trace: Vec<&Span> = spans.iter().filter(|s| hex(&s.trace_id) == *trace).collect();
        let request = of_trace.iter().find(|span| span.kind == SpanKind::Server as i32).unwrap();
        assert_eq!(hex(&request.parent_span_id), PARENT);
        let attempts: Vec<_> =
            of_trace.iter().filter(|span| span.parent_span_id == request.span_id).collect();
        let last = attempts.last().unwrap();
        // The server's parent is the attempt that has reached it, and the flag is the client's.
        let expected =
            format!("traceparent: 00-{trace}-{}-01\ntracestate: vendor=value", hex(&last.span_id));
        assert_eq!(*told, expected);
        assert_eq!(attributes(&last.attributes)["http.response.status_code"], "200");
        for attempt in &attempts[..attempts.len() - 1] {
            failed += 1;
            assert_eq!(attributes(&attempt.attributes)["error.type"], "connection_refused");
            assert!(attempt.end_time_unix_nano <= last.start_time_unix_nano);
        }
        for attempt in &attempts {
            assert!(request.start_time_unix_nano <= attempt.start_time_unix_nano);
            assert!(attempt.end_time_unix_nano <= request.end_time_unix_nano);
        }
        let about = attributes(&request.attributes);
        let shown = ["weir.cause", "weir.service", "weir.exported_for", "url.path", "weir.route"];
        assert_eq!(shown.map(|key| &*about[key]), ["completed", "app", "sampled", "/", "all"]);
        assert_eq!(request.name, "GET all");
    }
    assert!(failed > 0, "no attempt has failed");
    let head = &collector.heads()[0];
    assert!(head.starts_with("POST /collect/v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: application/x-protobuf\r\n"), "{head}");
}

#[test]
fn a_strangers_context_and_an_invalid_one_are_replaced() {
    let Some(scene) = Scene::new("otlp-strangers", &[]) else { return };
    let collector = Collector::start(scene.address(40, 4318));
    let (_server, told) = server(&scene, 11);
    let servers = [scene.address(11, 8080)];
    let none = "sample = { ok = 0.0 }\nmetrics = false\nlogs = false";
    let weir = Weir::start(&scene, &config(&scene, none, "", &servers));
    let stated = "4bf92f3577b34da6a3ce929d0e0e4736";
    let mut client = Connection::open(weir.front()).unwrap();
    for _ in 0..20 {
        let fields = [&*traceparent(stated, "01"), "tracestate: a=b"];
        assert_eq!(client.get("/", &fields).unwrap().status, 200);
    }
    drop(weir);
    let weir = Weir::start(&scene, &config(&scene, none, TRUSTED, &servers));
    let mut client = Connection::open(weir.front()).unwrap();
    for bad in [
        vec![format!("traceparent: 00-{stated}-{PARENT}-1")],
        vec![format!("traceparent: 00-{stated}-{PARENT}-01-x")],
        vec![traceparent(&"0".repeat(32), "01")],
        vec![traceparent(stated, "01"), traceparent(stated, "01")],
        vec!["traceparent: ".to_owned()],
    ] {
        let mut fields: Vec<&str> = bad.iter().map(String::as_str).collect();
        fields.push("tracestate: a=b");
        assert_eq!(client.get("/", &fields).unwrap().status, 200, "{bad:?}");
    }
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 25);
    for told in &told {
        let is_new = told.starts_with("traceparent: 00-") && told.ends_with("-00");
        assert!(is_new && !told.contains(stated) && !told.contains("tracestate"), "{told}");
    }
    // A stranger's flag makes Weir record nothing; examples are recorded, a few in ten seconds.
    std::thread::sleep(Duration::from_secs(3));
    let reasons: Vec<String> = collector
        .requests()
        .iter()
        .map(|span| attributes(&span.attributes)["weir.exported_for"].clone())
        .collect();
    assert!(reasons.iter().all(|why| why == "slowest"), "{reasons:?}");
}

#[test]
fn results_decide_which_requests_become_traces() {
    let Some(scene) = Scene::new("otlp-sample", &[]) else { return };
    let collector = Collector::start(scene.address(40, 4318));
    let (_server, told) = server(&scene, 11);
    let otlp = "sample = { ok = 0.25, 4xx = 0.0 }\ntraces_per_cause_max = 1000\nmetrics = false\nlogs = false";
    let weir = Weir::start(&scene, &config(&scene, otlp, "", &[scene.address(11, 8080)]));
    let mut client = Connection::open(weir.front()).unwrap();
    for n in 0..800 {
        let target = ["/200", "/404", "/200", "/500"][n % 4];
        assert!(client.get(target, &[]).is_ok());
    }
    // 200 with 500 are all recorded, and of 400 with 200 a quarter, ± 5 standard deviations.
    let of = |spans: &[Span], status: &str| {
        let is = |span: &&Span| {
            attributes(&span.attributes)
                .get("http.response.status_code")
                .is_some_and(|s| s == status)
        };
        spans.iter().filter(is).count()
    };
    let spans = wait::until("the failed ones", SOON, || {
        Some(collector.requests()).filter(|spans| of(spans, "500") == 200)
    });
    let completed = of(&spans, "200");
    assert!((57..=160).contains(&completed), "{completed} of 400");
    // Of the 404s only those whose server was told to record, and a few examples.
    assert!((17..=90).contains(&of(&spans, "404")), "{} of 200", of(&spans, "404"));
    // Those whose servers were told to record are recorded.
    let told = told.lock().unwrap().clone();
    let flagged: Vec<&str> =
        told.iter().filter(|told| told.ends_with("-01")).map(|told| &told[16..48]).collect();
    assert!((110..=290).contains(&flagged.len()), "{} of 800", flagged.len());
    let recorded: Vec<String> = spans.iter().map(|span| hex(&span.trace_id)).collect();
    assert!(flagged.iter().all(|trace| recorded.iter().any(|one| one == trace)));
}

#[test]
fn a_flood_of_one_cause_or_of_successes_is_recorded_in_part() {
    for (is_up, status) in [(false, 502), (true, 200)] {
        let Some(scene) = Scene::new("otlp-flood", &[]) else { return };
        let collector = Collector::start(scene.address(40, 4318));
        let otlp =
            "sample = { ok = 1.0 }\ntraces_per_cause_max = 10\nmetrics = false\nlogs = false";
        let (_server, told) = server(&scene, if is_up { 11 } else { 12 });
        let weir = Weir::start(&scene, &config(&scene, otlp, "", &[scene.address(11, 8080)]));
        let begun = Instant::now();
        let mut client = Connection::open(weir.front()).unwrap();
        for _ in 0..500 {
            assert_eq!(client.get("/", &[]).unwrap().status, status);
        }
        let seconds = begun.elapsed().as_secs() as usize + 2;
        wait::until("a few", SOON, || Some(()).filter(|()| collector.requests().len() >= 5));
        std::thread::sleep(Duration::from_secs(2));
        let recorded = collector.requests().len();
        // Each of two workers has its half, of two causes; examples are a few in ten seconds.
        assert!(recorded <= 20 * seconds + 16, "{status}: {recorded} in {seconds} s");
        let flagged = told.lock().unwrap().iter().filter(|told| told.ends_with("-01")).count();
        assert!(flagged <= recorded, "{flagged} servers were told, {recorded} recorded");
    }
}

#[test]
fn metrics_and_both_logs_arrive() {
    let Some(scene) = Scene::new("otlp-metrics", &[]) else { return };
    let collector = Collector::start(scene.address(40, 4318));
    let app = App::start(&scene, 11, &[]);
    let otlp = "interval = \"1s\"\nservice_name = \"front\"\nheader = { X-Key = \"secret\" }\n[log]\naccess = \"otlp\"";
    let weir = Weir::start(&scene, &config(&scene, otlp, TRUSTED, &[app.address()]));
    let mut client = Connection::open(weir.front()).unwrap();
    for _ in 0..30 {
        let fields = [&*traceparent(&"a".repeat(32), "01")];
        assert_eq!(client.get("/", &fields).unwrap().status, 200);
    }
    let lines = wait::until("the access log", SOON, || {
        let mut records = collector.logs();
        records.retain(|record| record.event_name == "weir.access");
        Some(records).filter(|records| records.len() == 30)
    });
    assert_eq!(hex(&lines[0].trace_id), "a".repeat(32));
    let sentence = text(lines[0].body.as_ref());
    assert!(sentence.starts_with("GET ") && sentence.contains(" 200 completed in "), "{sentence}");
    let ready = wait::until("the program's log", SOON, || {
        collector.logs().into_iter().find(|record| text(record.body.as_ref()) == "ready")
    });
    assert_eq!(ready.severity_text, "INFO");
    assert_eq!(attributes(&ready.attributes)["services"], "1");
    let whole = |metric: &Metric| -> Option<i64> {
        use opentelemetry_proto::tonic::metrics::v1::{metric::Data, number_data_point::Value};
        let Some(Data::Sum(sum)) = &metric.data else { return None };
        let values = sum.data_points.iter().filter_map(|point| match point.value {
            Some(Value::AsInt(value)) => Some(value),
            _ => None,
        });
        Some(values.sum())
    };
    wait::until("the metric", SOON, || {
        let mut all = collector.metrics();
        all.retain(|metric| metric.name == "weir_requests_total");
        Some(()).filter(|()| all.last().and_then(whole) == Some(30))
    });
    let first: ExportTraceServiceRequest = collector.bodies("/collect/v1/traces").remove(0);
    let resource = attributes(&first.resource_spans[0].resource.as_ref().unwrap().attributes);
    assert_eq!(resource["service.name"], "front");
    assert!(collector.heads().iter().all(|head| head.contains("x-key: secret\r\n")));
    assert!(!weir.ask("/api/v1/configuration").text().contains("secret"));
}

#[test]
fn a_collector_that_is_gone_costs_no_request_and_gets_what_it_missed() {
    let Some(scene) = Scene::new("otlp-gone", &[]) else { return };
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(
        &scene,
        &config(
            &scene,
            "sample = { ok = 1.0 }\ntraces_per_cause_max = 1000\nmetrics = false",
            "",
            &[app.address()],
        ),
    );
    let mut client = Connection::open(weir.front()).unwrap();
    for _ in 0..50 {
        assert_eq!(client.get("/", &[]).unwrap().status, 200);
    }
    weir.wait_for_log(&["cannot send to the OpenTelemetry collector", "refused"], SOON);
    let collector = Collector::start(scene.address(40, 4318));
    collector.answers(Answer::Status(503, "Retry-After: 1\r\n", Vec::new()));
    weir.wait_for_log(&["can be reached again"], SOON);
    weir.wait_for_log(&["temporarily rejects traces", "503"], SOON);
    assert_eq!(collector.requests().len(), 0);
    collector.answers(Answer::Status(200, "", Vec::new()));
    wait::until("what was missed", SOON, || Some(()).filter(|()| collector.requests().len() == 50));
    weir.wait_for_log(&["accepts traces again"], SOON);
    let sent = || weir.metric("weir_otlp_sent_total", &["signal=\"traces\""]) as u64;
    assert_eq!(sent(), 100);
    let dropped = weir.log().matches("cannot send to the OpenTelemetry collector").count();
    assert_eq!(dropped, 1, "said once");
}

#[test]
fn what_a_collector_refuses_is_dropped_and_counted() {
    let Some(scene) = Scene::new("otlp-refuses", &[]) else { return };
    let collector = Collector::start(scene.address(40, 4318));
    collector.answers(Answer::Status(400, "", b"\x08\x03\x12\x0bno such key\n".to_vec()));
    let app = App::start(&scene, 11, &[]);
    let otlp = "sample = { ok = 1.0 }\nmetrics = false\nlogs = false";
    let weir = Weir::start(&scene, &config(&scene, otlp, "", &[app.address()]));
    let mut client = Connection::open(weir.front()).unwrap();
    let mut ask = |count: u32| {
        for _ in 0..count {
            assert_eq!(client.get("/", &[]).unwrap().status, 200);
        }
    };
    ask(20);
    let log = weir.wait_for_log(&["rejects traces; they are dropped", "no such key"], SOON);
    assert!(!log.contains('\u{8}'));
    let refused = || {
        let labels = ["signal=\"traces\"", "reason=\"refused\""];
        weir.metric("weir_otlp_dropped_total", &labels) as u64
    };
    wait::until("the count", SOON, || Some(()).filter(|()| refused() == 40));
    // Of the next message it refuses a part.
    let partial =
        ExportTracePartialSuccess { rejected_spans: 3, error_message: "too old".to_owned() };
    let answer = ExportTraceServiceResponse { partial_success: Some(partial) };
    collector.answers(Answer::Status(200, "", answer.encode_to_vec()));
    ask(10);
    wait::until("the rest", SOON, || {
        let sent = weir.metric("weir_otlp_sent_total", &["signal=\"traces\""]) as u64;
        Some(()).filter(|()| refused() >= 43 && sent + refused() == 60)
    });
}

#[test]
fn a_collector_that_hangs_holds_up_neither_requests_nor_the_end() {
    let Some(scene) = Scene::new("otlp-hangs", &[]) else { return };
    let collector = Collector::start(scene.address(40, 4318));
    collector.answers(Answer::Hangs);
    let app = App::start(&scene, 11, &[]);
    let otlp = "sample = { ok = 1.0 }\ninterval = \"1s\"\n[log]\naccess = \"otlp\"";
    let mut weir = Weir::start(&scene, &config(&scene, otlp, "", &[app.address()]));
    let mut client = Connection::open(weir.front()).unwrap();
    let ask = |client: &mut Connection| assert_eq!(client.get("/", &[]).unwrap().status, 200);
    ask(&mut client);
    std::thread::sleep(Duration::from_secs(3));
    ask(&mut client);
    drop(client);
    weir.begin_to_stop();
    // A second for the collector; the rest is the program's own end.
    weir.wait(Duration::from_secs(8));
}

#[test]
fn a_reload_changes_the_collector_and_what_it_gets() {
    let Some(scene) = Scene::new("otlp-reload", &[]) else { return };
    let (first, second) =
        (Collector::start(scene.address(40, 4318)), Collector::start(scene.address(41, 4318)));
    let app = App::start(&scene, 11, &[]);
    let otlp = "sample = { ok = 1.0 }\nmetrics = false\nlogs = false";
    let config = config(&scene, otlp, "", &[app.address()]);
    let weir = Weir::start(&scene, &config);
    let mut client = Connection::open(weir.front()).unwrap();
    assert_eq!(client.get("/one", &[]).unwrap().status, 200);
    wait::until("a trace", SOON, || Some(()).filter(|()| first.requests().len() == 1));
    let (from, to) = (scene.address(40, 4318).to_string(), scene.address(41, 4318).to_string());
    let place = scene.folder().join("weir.toml");
    std::fs::write(&place, config.replace(&from, &to)).unwrap();
    weir.hang_up();
    weir.wait_for_log(&["reload", "otlp.endpoint"], SOON);
    assert_eq!(client.get("/two", &[]).unwrap().status, 200);
    wait::until("a trace", SOON, || Some(()).filter(|()| second.requests().len() == 1));
    // Without [otlp], servers see what they saw before there was one, and nothing is sent.
    let (begin, end) = (config.find("[otlp]").unwrap(), config.find("[[listener]]").unwrap());
    std::fs::write(&place, format!("{}{}", &config[..begin], &config[end..])).unwrap();
    weir.hang_up();
    wait::until("no counts", SOON, || {
        let metrics = weir.ask("/metrics").text();
        Some(()).filter(|()| !metrics.contains("weir_otlp_sent_total"))
    });
    assert_eq!(client.get("/three", &[]).unwrap().status, 200);
    std::thread::sleep(Duration::from_secs(2));
    let paths = |collector: &Collector| -> Vec<String> {
        let spans = collector.requests();
        spans.iter().map(|span| attributes(&span.attributes)["url.path"].clone()).collect()
    };
    assert_eq!((paths(&first), paths(&second)), (vec!["/one".to_owned()], vec!["/two".to_owned()]));
}
