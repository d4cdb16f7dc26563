//! How runs of `weir bench` end: impossible requests, failures, signals, too much load; and the reports
//! made from their figures.

#![allow(clippy::float_cmp, reason = "counts, which JSON carries as numbers, are whole")]

mod load;

use std::time::Duration;

use e2e::{App, Process, Scene, binary, find, wait};
use load::{Bench, bench};
use rustix::process::Signal;

fn url(address: std::net::SocketAddr) -> String {
    format!("http://{address}/")
}

#[test]
fn what_cannot_be_is_said_in_a_line_with_an_exit_code() {
    let Some(scene) = Scene::new("bench-mistakes", &["python3"]) else { return };
    let refused = url(scene.address(99, 1));
    let app = App::start(&scene, 11, &[]);
    let served = url(app.address());
    for (words, code, text) in [
        (&["nonsense://host/"][..], 2, "nonsense: is not spoken here"),
        (&["http://"], 2, "not a URL"),
        (&["http://user:secret@127.0.0.1/"], 2, "Authorization"),
        (&["http://127.0.0.1:99999/"], 2, "port"),
        (&["http://nowhere.invalid/"], 1, "no address found"),
        (&[&*refused], 1, "nothing listens there"),
        (&["--rate", "0", "http://127.0.0.1/"], 2, "a rate is"),
        (&["--expect", "p99<200", "http://127.0.0.1/"], 2, "write p99<200ms"),
        (&["-p", "/does/not/exist", "http://127.0.0.1/"], 2, "/does/not/exist"),
        (&["-m", "GE T", &*refused], 1, ""),
        (&["connect", "nohost"], 2, "a host and a port"),
        (&["--source", "192.0.2.1", &*refused], 2, "no address of this machine"),
        (&["--source", "::1", "http://127.0.0.1/"], 2, "has addresses of IPv4 only"),
        (&["connect", "--source", "192.0.2.1", "127.0.0.1:1"], 2, "no address of this machine"),
        (&["--html", "/does/not/exist", &*served], 1, "cannot write /does/not/exist"),
        (&["limit", "--html", "/does/not/exist", &*served], 1, "cannot write /does/not/exist"),
    ] {
        let ended = bench(&scene, words).code(code).says(text);
        assert!(ended.finished.stdout.is_empty(), "{words:?}: {}", ended.finished.stdout);
        assert!(!ended.finished.stderr.contains("secret"), "{words:?}");
    }
    assert_eq!(app.stat("requests"), 0, "no load began");
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
    ended.says("nothing listens there");
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

    // By the clock: what would have come later was never intended, so nothing is missing.
    app.reset();
    let bench = Bench::start(&scene, &["-t", "300", "--rate", "100", &url(app.address())]);
    wait::until("some requests", Duration::from_secs(10), || {
        (app.stat("requests") > 120).then_some(())
    });
    bench.process.signal(Signal::INT);
    let ended = bench.end(Duration::from_secs(10)).code(0).says("Ended by a signal");
    let (begun, dropped) = (ended.number("totals.requests"), ended.number("totals.dropped_starts"));
    assert_eq!(begun as u64, app.stat("requests"));
    let seconds = ended.json["seconds"].as_array().unwrap();
    let intended: f64 = seconds.iter().filter_map(|second| second["intended"].as_f64()).sum();
    assert!((intended - begun - dropped).abs() <= 1.0, "{intended} {begun} {dropped}");
    assert_eq!(ended.number("totals.responses"), begun);
}

#[test]
fn whoever_reads_may_close_the_pipe() {
    let Some(scene) = Scene::new("bench-pipe", &["python3"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "20"]);
    let json = scene.folder().join("pipe.json");
    let script = format!(
        "{} bench -t 2 --json {} {} 2>&1 | true; exit ${{PIPESTATUS[0]}}",
        binary().display(),
        json.display(),
        url(app.address())
    );
    let words = ["-c", script.as_str()];
    let ended = Process::start(&scene, "piped", &find("bash").unwrap(), words)
        .wait(Duration::from_secs(30));
    assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
    let figures: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(figures["totals"]["requests"].as_u64(), Some(app.stat("requests")));
}

#[test]
fn pages_of_one_run_and_of_two_are_drawn_in_a_browser() {
    let Some(scene) = Scene::new("bench-pages", &["python3", "chromium"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "5"]);
    let at = url(app.address());
    let place = |name: &str| scene.folder().join(name).to_string_lossy().into_owned();
    let (page, one, two, both) =
        (place("one.html"), place("one.json"), place("two.json"), place("both.html"));
    bench(&scene, &["-t", "3", "--rate", "50", "--html", &page, &at]).code(0).keep(&one);
    app.set("work_ms=20");
    bench(&scene, &["-t", "3", "--rate", "50", &at]).code(0).keep(&two);
    let compared = e2e::run(&scene, &["bench", "compare", &one, &two, "--html", &both]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    let row = compared.stdout.lines().find(|line| line.starts_with("service p50"));
    assert!(row.is_some_and(|row| row.contains('+')), "slower: {}", compared.stdout);
    for (page, names) in [(&page, &[&*at][..]), (&both, &["one", "two"])] {
        let profile = format!("--user-data-dir={}", place("profile"));
        let file = format!("file://{page}");
        let words = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            &profile,
            "--dump-dom",
            &file,
        ];
        let shown = e2e::clients::client(&scene, "chromium", &words, 60);
        let console: Vec<&str> = shown.stderr.lines().filter(|l| l.contains("CONSOLE")).collect();
        assert_eq!(console, [""; 0]);
        let figures = shown.stdout.matches("<figure>").count();
        // Those of zeros are not drawn.
        assert!(figures >= 5, "{figures} charts");
        assert!(shown.stdout.contains(&format!("data-drawn=\"{figures}\"")), "all were drawn");
        assert!(names.iter().all(|name| shown.stdout.contains(name)), "{names:?}");
    }
    let none = e2e::run(&scene, &["bench", "compare", &page]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("not a file of `weir bench --json`"), "{}", none.stderr);
}

#[test]
fn a_limit_of_the_load_generators_own_is_said_to_be_its_own() {
    let Some(scene) = Scene::new("bench-own-limit", &["python3"]) else { return };
    let app = App::start(&scene, 11, &["--work-ms", "50"]);
    // One connection carries not quite 20 a second, and the server would bear more.
    let words = ["limit", "-q", "-c", "1", "--from", "8", "--precision", "30"];
    let times = ["--trial", "1s", "--confirm", "2s", "--objective", "errors<1%"];
    let ended = bench(&scene, &[&words[..], &times, &[&url(app.address())]].concat()).code(3);
    let found = ended.number("rate.intended_per_s");
    assert!((4.0..=24.0).contains(&found), "{found}");
    let ran_out = &ended.json["ran_out"];
    let own = ran_out.as_array().unwrap().iter().find(|found| found["what"] == "connections");
    assert_eq!(own.unwrap_or_else(|| panic!("{ran_out}"))["whose"], "generator");
    ended.says("the load generator's connections");
}
