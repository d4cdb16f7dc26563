//! `weir bench`: what it counts is what servers count, what it says is what happened, and what it
//! cannot deliver it does not hide.

#![allow(clippy::float_cmp, reason = "counts, which JSON carries as numbers, are whole")]

mod load;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use e2e::{App, Authority, Nginx, Process, Scene, binary, http, wait};
use load::{Bench, bench, timing, wait_for_listener};
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
fn what_cannot_be_is_said_in_a_line_with_an_exit_code() {
    let Some(scene) = Scene::new("bench-mistakes", &["python3"]) else { return };
    let nobody = url(scene.address(99, 1));
    for (words, code, text) in [
        (&["nonsense://host/"][..], 2, "nonsense: is not spoken here"),
        (&["http://"], 2, "not a URL"),
        (&["http://user:secret@127.0.0.1/"], 2, "Authorization"),
        (&["http://127.0.0.1:99999/"], 2, "port"),
        (&["http://nowhere.invalid/"], 1, "no address found"),
        (&[&*nobody], 1, "nobody listens there"),
        (&["--rate", "0", "http://127.0.0.1/"], 2, "a rate is"),
        (&["--expect", "p99<200", "http://127.0.0.1/"], 2, "write p99<200ms"),
        (&["-p", "/does/not/exist", "http://127.0.0.1/"], 2, "/does/not/exist"),
        (&["-m", "GE T", &*nobody], 1, ""),
        (&["connect", "nohost"], 2, "a host and a port"),
    ] {
        let ended = bench(&scene, words).code(code).says(text);
        assert!(ended.finished.stdout.is_empty(), "{words:?}: {}", ended.finished.stdout);
        assert!(!ended.finished.stderr.contains("secret"), "{words:?}");
    }
}

#[test]
fn thresholds_decide_the_exit_code() {
    let Some(scene) = Scene::new("bench-expect", &["python3"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "50"]);
    let at = url(app.address());
    let words = ["-n", "20", "-c", "2", "--expect"];
    bench(&scene, &[&words[..], &["p50>40ms,errors<0.1%", &at]].concat()).code(0).says("holds");
    bench(&scene, &[&words[..], &["p50<40ms", &at]].concat()).code(99).says("DOES NOT HOLD");
    app.set("status=503");
    let ended = bench(&scene, &[&words[..], &["errors<1%", &at]].concat()).code(99);
    assert_eq!(ended.number("totals.statuses.503"), 20.0);
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
fn a_server_that_dies_in_the_middle_leaves_the_figures() {
    let Some(scene) = Scene::new("bench-death", &["python3"]) else { return };
    let mut app = App::start(&scene, 11, &["--work-ms", "5"]);
    let bench = Bench::start(&scene, &["-t", "5", "--rate", "100", &url(app.address())]);
    wait::until("some requests", Duration::from_secs(10), || {
        (app.stat("requests") > 50).then_some(())
    });
    app.kill();
    let ended = bench.end(Duration::from_secs(30)).code(0);
    let (answered, failed) = (ended.number("totals.responses"), ended.number("totals.errors"));
    // Of the 51 that the server had counted when it died, some were under way.
    assert!(answered >= 40.0 && failed > 50.0, "{answered} {failed}");
    assert_eq!(ended.number("totals.requests"), 500.0);
    assert!(ended.number("totals.errors_by_kind.connection_refused") > 50.0);
    ended.says("nobody listens there");
}

#[test]
fn a_signal_ends_it_with_the_figures_so_far() {
    let Some(scene) = Scene::new("bench-signal", &["python3"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "20"]);
    let bench = Bench::start(&scene, &["-t", "300", "-c", "2", &url(app.address())]);
    wait::until("some requests", Duration::from_secs(10), || {
        (app.stat("requests") > 20).then_some(())
    });
    bench.process.signal(Signal::INT);
    let ended = bench.end(Duration::from_secs(10)).code(0).says("Ended by a signal");
    assert_eq!(ended.number("totals.requests") as u64, app.stat("requests"));
    assert_eq!(ended.number("totals.responses"), ended.number("totals.requests"));
}

#[test]
fn percentiles_are_those_of_the_server() {
    let Some(scene) = Scene::new("bench-percentiles", &["python3"]) else { return };
    let address = scene.address(11, 8080);
    let _server = timing(&scene, address, &["--delays-ms", "200-599"]);
    wait_for_listener(address);
    // Each time from 200 to 599 ms four times.
    let ended = bench(&scene, &["-t", "8", "--rate", "200", &url(address)]).code(0);
    assert_eq!(ended.number("latency.service.count"), 1600.0);
    for (name, wanted) in [("p50", 399.0), ("p90", 559.0), ("p99", 595.0), ("mean", 399.5)] {
        let found = ended.number(&format!("latency.service.{name}_ms"));
        assert!((found / wanted - 1.0).abs() < 0.02, "{name}: {found} ms, not {wanted} ms");
    }
    let counted = http::get(address, "/-/count").unwrap();
    assert_eq!(counted.text(), "1600");
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

    // Nobody accepts for 1.6 s and two may wait: the others' first two SYNs are dropped, and the
    // third finds room, 2 s after the first on a kernel of 6.5 or later.
    let address = scene.address(12, 8080);
    let words = ["--accept-after-s", "1.6", "--backlog", "1"];
    let _server = timing(&scene, address, &words);
    wait_for_listener(address);
    let words = ["connect", "-t", "1", "-c", "6", "--threads", "1", &address.to_string()];
    let ended = bench(&scene, &words).code(0);
    ended.says("after the first SYN, when this kernel");
}

#[test]
fn steps_and_ramps_have_the_rates_that_were_asked_for() {
    let Some(scene) = Scene::new("bench-steps", &["nginx"]) else { return };
    let nginx = Nginx::start(&scene, 11, "");
    let at = url(nginx.address());
    let ended = bench(&scene, &["--steps", "1s:100,1s:300,1s:300..100", &at]).code(0);
    let second = |n: usize| ended.json["seconds"][n]["started"].as_f64().unwrap();
    for (n, wanted) in [(0, 100.0), (1, 300.0), (2, 200.0)] {
        assert!((second(n) - wanted).abs() <= 15.0, "second {n}: {}", second(n));
    }
    assert_eq!(ended.number("totals.requests"), 600.0);
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
