//! `weir bench`: its counts equal the servers' counts, its report is accurate, and it reports load that it
//! could not generate.

#![allow(clippy::float_cmp, reason = "counts, which JSON carries as numbers, are whole")]

mod load;

use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use e2e::{App, Authority, NAMESPACES, Nginx, Process, Scene, Zones, binary, find, http, wait};
use load::{Bench, Ended, bench, timing, wait_for_listener};
use rustix::process::Signal;

fn url(address: std::net::SocketAddr) -> String {
    format!("http://{address}/")
}

/// nginx with a log of every request.
struct Logged {
    nginx: Nginx,
    log: PathBuf,
    /// Lines that were there when it was last looked at.
    seen: Cell<usize>,
}

impl Logged {
    fn start(scene: &Scene, extra: &str) -> Logged {
        let log = scene.folder().join("requests.log");
        let nginx = Nginx::start(scene, 11, &format!("access_log {};\n{extra}", log.display()));
        // What stood in the log when it started is none of the load.
        let logged = Logged { nginx, log, seen: Cell::new(0) };
        logged.seen.set(logged.lines());
        logged
    }

    fn url(&self) -> String {
        url(self.nginx.address())
    }

    fn lines(&self) -> usize {
        std::fs::read_to_string(&self.log).map_or(0, |text| text.lines().count())
    }

    /// The log must grow by so many lines. nginx writes one after it has sent the response, which may
    /// be a moment after the load has ended; a line too many shows when the next is asked for.
    fn grew_by(&self, requests: f64, what: &dyn std::fmt::Debug) {
        let wanted = self.seen.get() + requests as usize;
        wait::within(Duration::from_secs(10), || (self.lines() >= wanted).then_some(()));
        assert_eq!(self.lines(), wanted, "{what:?}");
        self.seen.set(wanted);
    }
}

#[test]
fn counts_agree_with_nginx_to_the_last_request() {
    let Some(scene) = Scene::new("bench-nginx", &["nginx"]) else { return };
    let logged = Logged::start(&scene, "keepalive_requests 77;");
    let at = logged.url();
    for words in [
        &["-n", "5000", "-c", "8"][..],
        &["-n", "300", "-c", "3", "--no-keepalive"],
        &["-t", "1", "--rate", "700"],
        &["-t", "1", "-c", "4"],
        &["-t", "1", "--rate", "500", "--random", "--threads", "2"],
    ] {
        let ended = bench(&scene, &[words, &[at.as_str()]].concat()).code(0);
        logged.grew_by(ended.number("totals.requests"), &words);
        assert_eq!(ended.number("totals.responses"), ended.number("totals.requests"), "{words:?}");
        assert_eq!(ended.number("totals.statuses.200"), ended.number("totals.requests"));
    }
}

#[test]
fn a_server_that_closes_connections_of_http2_fails_no_request() {
    let Some(scene) = Scene::new("bench-goaway", &["nginx"]) else { return };
    let address = scene.address(11, 8081);
    let extra = format!("listen {address} http2; keepalive_requests 77;");
    let logged = Logged::start(&scene, &extra);
    for words in [
        &["-n", "5000", "-c", "8", "--streams", "1"][..],
        &["-n", "5000", "-c", "8", "--streams", "16"],
        &["-t", "2", "--rate", "1000", "-c", "4", "--streams", "10"],
    ] {
        let at = url(address);
        let words = [words, &["--http2", &at]].concat();
        let ended = bench(&scene, &words).code(0);
        assert_eq!(ended.number("totals.errors"), 0.0, "{words:?}\n{}", ended.finished.stdout);
        logged.grew_by(ended.number("totals.requests"), &words);
        assert_eq!(ended.number("totals.responses"), ended.number("totals.requests"), "{words:?}");
        let least = ended.number("totals.requests") / 77.0;
        assert!(ended.number("totals.connections") >= least, "{words:?}");
    }
}

#[test]
fn counts_agree_with_a_python_server_and_several_targets_have_their_shares() {
    let Some(scene) = Scene::new("bench-python", &["python3"]) else { return };
    let (one, other) = (App::start(&scene, 11, &[]), App::start(&scene, 12, &[]));
    let (first, second) = (format!("3*{}", url(one.address())), url(other.address()));
    let ended = bench(&scene, &["-n", "400", "-c", "4", &first, &second]).code(0);
    assert_eq!((one.stat("requests"), other.stat("requests")), (300, 100));
    assert_eq!(ended.number("totals.requests"), 400.0);
}

#[test]
fn a_command_line_of_ab_does_what_ab_did() {
    let Some(scene) = Scene::new("bench-ab", &["nginx"]) else { return };
    let rule = "location /post { if ($request_method != POST) { return 405; }
        if ($content_type != application/json) { return 415; }
        if ($content_length != 11) { return 411; } return 200 'ok'; }";
    let logged = Logged::start(&scene, rule);
    let file = scene.file("listing.json", "{\"a\": true}");
    let at = format!("{}post", logged.url());
    let words = ["-t1", "-c24", "-k", "-r", "-l", "-p", file.to_str().unwrap()];
    let ended = bench(&scene, &[&words[..], &["-T", "application/json", &at]].concat()).code(0);
    let answered = ended.number("totals.statuses.200");
    assert!(answered > 24.0 && ended.json["totals"]["statuses"].as_object().unwrap().len() == 1);
    logged.grew_by(answered, &"ab");
}

#[test]
fn http2_and_tls_are_spoken_and_counted() {
    let Some(scene) = Scene::new("bench-tls", &["nginx"]) else { return };
    let ca = Authority::new(&scene, "ca");
    let tls = scene.address(11, 8443);
    let pair = ca.issue("server", &[&tls.ip().to_string()]);
    let extra = format!(
        "listen {tls} ssl http2; ssl_certificate {}; ssl_certificate_key {};",
        pair.chain.display(),
        pair.key.display()
    );
    let logged = Logged::start(&scene, &extra);
    let at = format!("https://{tls}/");
    let authority = ca.pem().to_string_lossy().into_owned();
    for words in [
        &["--cacert", &authority][..],
        &["--insecure", "--no-keepalive"],
        &["--cacert", &authority, "--http2"],
        &["--cacert", &authority, "--http2", "--streams", "8"],
    ] {
        let words = [words, &["-n", "200", "-c", "3", &at]].concat();
        let ended = bench(&scene, &words).code(0);
        assert_eq!(ended.number("totals.responses"), 200.0, "{words:?}");
        logged.grew_by(200.0, &words);
        assert!(ended.number("latency.phases.tls.count") >= 1.0);
    }
    bench(&scene, &["-n", "1", &at]).code(1).says("--cacert, or use --insecure");
    let other = format!("https://localhost:{}/", tls.port());
    bench(&scene, &["-n", "1", &other]).code(1);
    let plain = format!("https://{}/", scene.address(11, 8080));
    bench(&scene, &["-n", "1", "--insecure", &plain]).code(1).says("TLS");
}

#[test]
fn a_rate_that_was_not_delivered_is_said_loudly() {
    let Some(scene) = Scene::new("bench-short", &["python3"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "100"]);
    // One connection carries 10 a second, of 50.
    let words = ["-t", "2", "--rate", "50", "-c", "1", &url(app.address())];
    let ended = bench(&scene, &words).code(3);
    let ended = ended.says("NOT THE LOAD YOU ASKED FOR").says("all 1 connections were in use");
    let (begun, dropped) = (ended.number("totals.requests"), ended.number("totals.dropped_starts"));
    assert!((10.0..=21.0).contains(&begun), "{begun}");
    assert_eq!(begun + dropped, 100.0, "each was begun or dropped");
    assert_eq!(app.stat("requests") as f64, begun);
    // Those that did begin had waited: that is what a user would have seen.
    assert!(ended.number("latency.intended_start.p50_ms") > 500.0);
    assert!(ended.number("latency.service.p50_ms") < 200.0);
}

#[test]
fn a_body_without_end_over_tls_holds_nobody_up() {
    let Some(scene) = Scene::new("bench-endless", &["python3"]) else { return };
    let ca = Authority::new(&scene, "ca");
    let (endless, quick) = (scene.address(11, 8443), App::start(&scene, 12, &[]));
    let pair = ca.issue("server", &[&endless.ip().to_string()]);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/endless.py");
    let (script, at) = (script.to_string_lossy().into_owned(), endless.to_string());
    let (chain, key) = (pair.chain.to_string_lossy(), pair.key.to_string_lossy());
    let words = [&*script, "--address", &at, "--chain", &chain, "--key", &key];
    let _server = Process::start(&scene, "endless", &find("python3").unwrap(), words);
    wait_for_listener(endless);
    let targets = [format!("https://{endless}/"), url(quick.address())];
    let words = ["--insecure", "--threads", "1", "-t", "2", "--rate", "20", "-s", "2"];
    let words = [&words[..], &[&targets[0], &targets[1]]].concat();
    let ended = Bench::start(&scene, &words).end(Duration::from_secs(30)).code(0);
    // Those that the body held up would have run out of time, too.
    assert_eq!(ended.number("totals.responses"), 20.0, "{}", ended.finished.stdout);
    assert_eq!(ended.number("totals.errors_by_kind.http_response_timeout"), 20.0);
    assert!(ended.number("totals.body_bytes_in") > 1e6, "it did come");
}

#[test]
fn a_stall_shows_in_the_times_from_the_intended_start() {
    let Some(scene) = Scene::new("bench-stall", &["python3"]) else { return };
    let address = scene.address(11, 8080);
    let _server = timing(&scene, address, &["--stall-every-s", "4", "--stall-for-s", "1"]);
    wait_for_listener(address);
    // With four connections, four requests meet the stall of a second; a hundred were due in it.
    let ended = bench(&scene, &["-t", "5", "--rate", "100", "-c", "4", &url(address)]).code(0);
    let intended = ended.number("latency.intended_start.p90_ms");
    let service = ended.number("latency.service.p90_ms");
    assert!(intended > 250.0, "a fifth of the users waited, half a second on the mean: {intended}");
    assert!(service < 100.0, "nearly all requests were quick once they were sent: {service}");
    assert!(ended.number("totals.late_starts") > 60.0);
    // With a connection for each, a hundred are sent into it, and wait for their responses.
    let ended = bench(&scene, &["-t", "5", "--rate", "100", &url(address)]).code(0);
    for time in ["intended_start", "service"] {
        let p90 = ended.number(&format!("latency.{time}.p90_ms"));
        assert!(p90 > 250.0, "{time}: {p90}");
    }
}

#[test]
fn the_round_trip_is_the_networks_and_not_the_servers() {
    let Some(scene) = Scene::new("bench-round-trip", &["python3"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let slow = format!("http://{}/?work_ms=30", app.address());
    let ended = bench(&scene, &["-t", "2", "-c", "4", &slow]).code(0);
    let first_byte = ended.number("latency.phases.first_byte.p50_ms");
    let round_trip = ended.number("latency.phases.round_trip.p50_ms");
    assert!(first_byte >= 30.0, "the server takes its time: {first_byte}");
    assert!(round_trip < 15.0, "loopback does not: {round_trip}");
}

#[test]
fn a_limit_on_new_connections_is_named_before_what_follows_from_it() {
    let Some(scene) = Scene::new("bench-syn-limit", &[NAMESPACES, "python3", "nft"]) else {
        return;
    };
    Zones::run(&["server"], |zones| {
        let address = zones.address("server", 11, 8080);
        let _app = zones.inside("server", || {
            let rules = "add table inet few; \
                         add chain inet few in { type filter hook input priority 0; }; \
                         add rule inet few in tcp flags & (syn | ack) == syn limit rate over 20/second drop";
            let output = Command::new(find("nft").unwrap()).arg(rules).output().expect("nft");
            assert!(output.status.success(), "{output:?}");
            App::start_at(&scene, "app", address, &[])
        });
        let words = ["-t", "4", "--rate", "200", "--no-keepalive", "-c", "50", &url(address)];
        let ended = bench(&scene, &words);
        let ran_out = ended.json["ran_out"].as_array().expect("what ran out");
        let what: Vec<&str> = ran_out.iter().filter_map(|one| one["what"].as_str()).collect();
        // What else runs on this machine may use up its processors as well.
        assert_eq!(what.first(), Some(&"accept_queue"), "{ran_out:#?}");
        assert_eq!(what.last(), Some(&"connections"), "{ran_out:#?}");
    });
}

/// Runs `words` and stops the load generator for half a second, `after` its start.
fn paused(scene: &Scene, after: Duration, words: &[&str]) -> Ended {
    let bench = Bench::start(scene, words);
    wait::measure_for(after);
    bench.process.signal(Signal::STOP);
    wait::measure_for(Duration::from_millis(500));
    bench.process.signal(Signal::CONT);
    bench.end(Duration::from_secs(30)).code(0)
}

#[test]
fn a_pause_of_the_load_generator_is_no_storm_of_connections() {
    let Some(scene) = Scene::new("bench-pause", &["nginx"]) else { return };
    let logged = Logged::start(&scene, "");
    let words = ["-t", "4", "--rate", "2000", "--threads", "1", &logged.url()];
    // A thousand starts are due at its end; then at the end of the run, when none may be lost.
    for after in [1_000, 3_700] {
        let ended = paused(&scene, Duration::from_millis(after), &words);
        assert_eq!(ended.number("totals.responses"), 8000.0);
        assert!(ended.number("totals.late_starts") > 500.0);
        let connections = ended.number("totals.connections");
        assert!(connections < 400.0, "{connections} connections");
    }
}

#[test]
fn a_load_of_new_connections_catches_up_after_a_pause() {
    let Some(scene) = Scene::new("bench-pause-close", &["nginx"]) else { return };
    let logged = Logged::start(&scene, "keepalive_timeout 0;");
    let words = ["-t", "4", "--rate", "1500", "--threads", "1", &logged.url()];
    let ended = paused(&scene, Duration::from_secs(1), &words);
    assert_eq!(ended.number("totals.responses"), 6000.0);
    assert!(ended.number("totals.connections") >= 6000.0);
    let lateness = ended.number("latency.lateness.max_ms");
    assert!(lateness < 2_000.0, "it has caught up before the end, not fallen behind: {lateness}");
}

#[test]
fn connections_are_counted_by_source_and_lost_syns_are_recognised() {
    let Some(scene) = Scene::new("bench-connect", &["python3", "nginx"]) else { return };
    let nginx = Nginx::start(&scene, 11, "");
    let sources = format!("{}-{}", scene.ip(31), scene.ip(33));
    let words = ["connect", "-t", "2", "--rate", "300", "--source", &sources];
    let ended = bench(&scene, &[&words[..], &[&nginx.address().to_string()]].concat()).code(0);
    assert_eq!(ended.number("totals.connections"), 600.0);
    for source in ended.json["sources"].as_array().unwrap() {
        let made: u64 = source["connected"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(serde_json::Value::as_u64)
            .sum();
        assert_eq!(made, 200, "{source}");
    }

    // No connection is accepted, and two may wait: the others' SYNs are dropped, until one has been
    // sent again in vain. The next finds room, 2 s after the first on a kernel of 6.5 or later.
    let address = scene.address(12, 8080);
    let server = timing(&scene, address, &["--accept-on-usr1", "--backlog", "1"]);
    wait_for_listener(address);
    let words = ["connect", "-t", "1", "-c", "6", "--threads", "1", &address.to_string()];
    let bench = Bench::start(&scene, &words);
    wait::until("a SYN that was sent again", Duration::from_secs(20), || {
        syns_sent_again(address).then_some(())
    });
    server.signal(Signal::USR1);
    let ended = bench.end(Duration::from_mins(1)).code(0);
    ended.says("after the first SYN, when this kernel");
}

/// Whether a connection attempt to `address` has repeated its SYN, by `/proc/net/tcp`.
fn syns_sent_again(address: std::net::SocketAddr) -> bool {
    let std::net::IpAddr::V4(ip) = address.ip() else { return false };
    let wanted = format!("{:08X}:{:04X}", u32::from_le_bytes(ip.octets()), address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let of = |n: usize| fields.get(n).copied().unwrap_or_default();
        // Its peer, the state SYN_SENT, and how often it was sent again.
        of(2) == wanted && of(3) == "02" && u64::from_str_radix(of(6), 16).is_ok_and(|n| n > 0)
    })
}

#[test]
fn steps_and_ramps_have_the_rates_that_were_asked_for() {
    let Some(scene) = Scene::new("bench-steps", &["nginx"]) else { return };
    let nginx = Nginx::start(&scene, 11, "");
    let at = url(nginx.address());
    let ended = bench(&scene, &["--steps", "1s:100,1s:300,1s:300..100", &at]).code(0);
    assert_eq!(ended.number("totals.requests"), 600.0);
    // No start comes before its time, and one that comes after the end of its second is a late one.
    let late = ended.number("totals.late_starts");
    let (mut intended, mut started) = (0.0, 0.0);
    for (n, wanted) in [(0, 100.0), (1, 300.0), (2, 200.0)] {
        let second = &ended.json["seconds"][n];
        assert_eq!(second["intended"].as_f64().unwrap(), wanted, "second {n}");
        intended += wanted;
        started += second["started"].as_f64().unwrap();
        assert!(started <= intended, "second {n}: {started} of {intended}");
        assert!(
            intended - started <= late + 1.0,
            "second {n}: {started} of {intended}, {late} late"
        );
    }
    let ended = bench(&scene, &["-t", "2", "--rate", "200", "--ramp", "2s", &at]).code(0);
    assert_eq!(ended.number("totals.requests"), 200.0, "a ramp from nothing has half the requests");
}

#[test]
fn the_sample_server_has_the_capacity_that_was_asked_for() {
    let Some(scene) = Scene::new("bench-serve", &[]) else { return };
    let address = scene.address(11, 8080);
    let listen = address.to_string();
    let words = ["--work", "50ms", "--size", "1kB", "--slots", "2"];
    let words = [&["bench", "serve", "--listen", &listen][..], &words].concat();
    let mut server = Process::start(&scene, "sample", binary(), words);
    wait_for_listener(address);
    let ended = bench(&scene, &["-n", "40", "-c", "8", &url(address)]).code(0);
    assert_eq!(ended.number("totals.body_bytes_in"), 40_000.0);
    // Two at a time of 50 ms each are 40 a second: 40 take a second, and nearly all of them wait.
    assert!(ended.number("totals.duration_s") >= 0.99);
    assert!(ended.number("latency.service.p50_ms") >= 150.0);
    let status = http::get(address, "/status").unwrap().text();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["requests"], &status["concurrent_max"]), (&40.into(), &8.into()));
    server.signal(Signal::INT);
    let ended = server.wait(Duration::from_secs(10));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("at most 40.0 requests/s"), "{}", ended.stdout);
    assert!(ended.stdout.contains("40 requests in"), "{}", ended.stdout);
}
