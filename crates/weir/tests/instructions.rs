//! Instructions for deciding one request, held to a budget: a figure that a busy machine does not
//! move, so that a change which makes every request dearer is noticed when it is made.
//!
//! What is counted is a request without sockets, clocks and chance: parse, route, pick, read the
//! response's head, count, write the access line. This program runs itself under a machine that
//! counts instructions (valgrind's callgrind), with two numbers of requests; what the start costs is
//! in both and cancels out.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use decide::placement::{Placement, place};
use decide::route::Arrival;
use decide::{Admission, Ask, Registry};
use model::{Action, Cause, ListenerId, Moment, SplitTarget, Timings};
use observe::{AccessRecord, TimestampCache};
use wire::http1::{self, HeadLimits, Known, Parsed, RequestHead, ResponseHead};

/// Instructions for each request, built as the tests are (the dev profile: the optimised program
/// needs a fraction of it). A change that makes it cheaper lowers the budget to what is printed
/// plus a twentieth; one that needs more says in its commit what for. A new dependency of this
/// program may move it a little, too: in the dev profile, small generic functions come from
/// whichever crate made them first, optimised or not, and those of this file are not optimised.
const BUDGET: u64 = 48_800;
/// How many requests the counted run decides.
const TIMES: &str = "WEIR_TEST_TIMES";

/// As a browser asks.
const REQUEST: &[u8] = b"GET /listings/rooms/31415?check_in=2026-12-01&guests=2 HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Connection: keep-alive\r\n\
    Cookie: session=0f8fad5bd9cb469fa1657086728 9950e\r\n\
    \r\n";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Server: nginx/1.22.1\r\n\
    Date: Sun, 22 Nov 2026 09:00:00 GMT\r\n\
    Content-Type: text/html; charset=utf-8\r\n\
    Content-Length: 15000\r\n\
    Connection: keep-alive\r\n\
    \r\n";

/// Three hosts, some paths, four servers in two zones with limits.
const CONFIGURATION: &str = r#"
zone = "a"
[[listener]]
address = "127.0.0.1:8080"
[[route]]
host = ["www.example.com", "example.com", "*.example.net"]
path = "/listings"
service = "listings"
[[route]]
path = "/api"
service = "listings"
[[route]]
service = "listings"
[service.listings]
balance = "least-connections"
in_flight_max = 8
[[service.listings.server]]
address = "127.0.0.1:9001"
zone = "a"
[[service.listings.server]]
address = "127.0.0.1:9002"
zone = "a"
[[service.listings.server]]
address = "127.0.0.1:9003"
zone = "b"
[[service.listings.server]]
address = "127.0.0.1:9004"
zone = "b"
"#;

#[test]
fn deciding_a_request_stays_within_its_budget() {
    let has_valgrind = Command::new("valgrind").arg("--version").output().is_ok();
    if !has_valgrind {
        let in_ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
        assert!(!in_ci, "valgrind is not there; in CI a test that cannot run is a failure");
        eprintln!("SKIPPED, not there: valgrind (`make test` installs what tests need)");
        return;
    }
    let (few, many) = (1_000, 3_000);
    let each = (counted(many) - counted(few)) / (many - few);
    println!("{each} instructions a request");
    assert!(each <= BUDGET, "{each} instructions a request; the budget is {BUDGET}");
    if each * 4 < BUDGET * 3 {
        println!("much less than the budget of {BUDGET}: lower it");
    }
}

/// All instructions of a run that decides so many requests.
fn counted(times: u64) -> u64 {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let out = folder.join(format!("instructions-{times}.callgrind"));
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("own path"))
        .args(["--exact", "decide_requests", "--ignored", "--test-threads=1"])
        .env(TIMES, times.to_string())
        .output()
        .expect("valgrind starts");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = collected.unwrap_or_else(|| panic!("no count in: {said}"));
    count.trim().parse().expect("a count")
}

/// Counts a request as a worker does.
fn count(counters: &observe::ServiceCounters, status: u16, turn: u64, now: Moment) -> Timings {
    let timings = Timings {
        first_byte: Duration::from_micros(900 + turn % 64),
        total: Duration::from_micros(1000 + turn % 64),
        ..Timings::default()
    };
    counters.exchange_ended(Cause::Completed, Some(status), 1, &timings);
    counters.clients.count([127, 0, 0, 1].into(), now);
    timings
}

#[test]
#[ignore = "the run that is counted; the test above starts it"]
fn decide_requests() {
    let times: u64 = std::env::var(TIMES).expect(TIMES).parse().expect("a number");
    let checked = config::check(CONFIGURATION, "counted.toml", &()).expect("a valid configuration");
    let registry = Registry::with_seed(1);
    let published = registry.publish(checked.snapshot.into(), Moment::from_micros(0));
    let counters = observe::Registry::new().add_shard();
    let service_counters = counters.service(&"listings".into());
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut request, mut response) = (RequestHead::default(), ResponseHead::default());
    let (mut line, mut stamps) = (Vec::new(), TimestampCache::default());

    let client = Some([203, 0, 113, 9].into());
    let arrival = Arrival { listener: ListenerId(0), client, certificate: None };
    for turn in 0..times {
        let now = Moment::from_micros(turn * 100);
        let parsed = http1::parse_request(REQUEST, &HeadLimits::default(), &mut request);
        assert_eq!(parsed, Ok(Parsed::Complete { consumed: REQUEST.len() }));
        let found = published.router.find(&request, &arrival).expect("a route");
        let Action::Forward(to) = &published.snapshot.routes[found].action else { unreachable!() };
        let no_clock = || unreachable!("no route has affinity");
        let Placement { branch, bound, .. } = place(&published, to, &request, no_clock, &mut rng);
        let SplitTarget::Service(id) = branch.to else { unreachable!() };
        let ask = Ask { affinity: bound.server, ..Ask::default() };
        let Admission::Go(slot) = published.service(id).admit(&ask, &mut rng, now) else {
            unreachable!("eight slots a server, and one is taken")
        };
        let parsed = http1::parse_response(RESPONSE, &HeadLimits::default(), &mut response);
        assert_eq!(parsed, Ok(Parsed::Complete { consumed: RESPONSE.len() }));
        assert!(response.known(Known::KeepAlive).is_none());
        let timings = count(&service_counters, response.status(), turn, now);
        line.clear();
        let row = &slot.endpoint().row;
        AccessRecord {
            time: stamps.at(Duration::from_secs(1_795_000_000) + Duration::from_micros(turn * 100)),
            request_id: b"00112233-4455-6677-8899-aabbccddeeff",
            client: ([127, 0, 0, 1], 40_000).into(),
            peer: None,
            user: None,
            listener: &published.snapshot.listeners[0].name,
            method: request.method().as_bytes(),
            host: request.authority().as_bytes(),
            path: request.path().as_bytes(),
            protocol: "HTTP/1.1",
            tls: None,
            grpc_status: None,
            status: Some(response.status()),
            cause: Cause::Completed,
            detail: None,
            service: Some("listings"),
            server: Some(&row.name),
            zone: row.zone.as_deref(),
            attempts: 1,
            failed_attempts: &[],
            not_retried: None,
            reused: true,
            timings,
            request_bytes: 0,
            response_bytes: 15_000,
            tcp: None,
            decision: None,
            route: None,
            request: None,
            response: None,
            sample_rate: None,
            trace: None,
        }
        .write_json(&mut line);
        drop(slot);
    }
    assert!(line.ends_with(b"}\n"), "{}", String::from_utf8_lossy(&line));
}
