//! The report's page in a real browser: every chart is drawn, without errors and without a network.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hdrhistogram::Histogram;
use load_report::run::{
    FORMAT, Host, HostSecond, Percentiles, RanOut, Rate, Second, Target, Totals, Whose,
};
use load_report::{Named, Run, Summary, page};

/// A run as a service gives it that stalls for two seconds in the middle.
fn stalled(seconds: u64, rate: u64, scale: f64) -> Run {
    let mut intended = Histogram::<u64>::new(3).unwrap();
    let mut service = Histogram::<u64>::new(3).unwrap();
    let (mut rows, mut host) = (Vec::new(), Vec::new());
    let mut random = fastrand::Rng::with_seed(7);
    for at in 0..seconds {
        let is_stalled = at >= seconds / 2 && at < seconds / 2 + 2;
        let mut slow = Histogram::<u64>::new(3).unwrap();
        let mut quick = Histogram::<u64>::new(3).unwrap();
        for _ in 0..rate {
            let own = (4e6 + 20e6 * -random.f64().max(1e-9).ln() * scale) as u64;
            let wait = if is_stalled { (random.f64() * 2e9) as u64 } else { 0 };
            quick.record(own).unwrap();
            slow.record(own + wait).unwrap();
        }
        intended.add(&slow).unwrap();
        service.add(&quick).unwrap();
        rows.push(Second {
            at_s: at as f64,
            intended: Some(rate),
            started: rate,
            completed: if is_stalled { rate / 5 } else { rate },
            errors: if is_stalled { rate / 20 } else { 0 },
            connections_open: if is_stalled { 60 } else { 12 },
            intended_start: Some(percentiles(&slow)),
            service: Some(percentiles(&quick)),
            lateness_p99_9_ms: Some(0.3 + random.f64()),
            timer_lateness_p99_9_ms: Some(0.2 + random.f64() * 0.8),
            ..Second::default()
        });
        host.push(host_second(at, rate, is_stalled, &mut random));
    }
    let requests = rate * seconds;
    let words = ["weir", "bench", "--rate", "400", "https://shop.test/listings?q=a<b>"];
    let mut run = Run {
        format: FORMAT,
        kind: "http".to_owned(),
        weir: "0.1.0".to_owned(),
        command: words.map(str::to_owned).to_vec(),
        started_at: "2026-11-22T01:24:05Z".to_owned(),
        targets: vec![target()],
        totals: Totals {
            requests,
            responses: requests - rate / 10,
            errors: rate / 10,
            connections: 60,
            duration_s: seconds as f64,
            ..Totals::default()
        },
        rate: Rate {
            intended_per_s: Some(rate as f64),
            achieved_per_s: rate as f64 * 0.97,
            responses_per_s: rate as f64 * 0.96,
        },
        seconds: rows,
        host_seconds: host,
        ran_out: vec![RanOut {
            whose: Whose::Server,
            what: "concurrency".to_owned(),
            evidence: "throughput was flat at 400/s while latency grew and CPU was free".to_owned(),
        }],
        ..Run::default()
    };
    run.host =
        Host { name: "load-1".to_owned(), kernel: "6.18.0".to_owned(), cpus: 4, ..Host::default() };
    run.totals.statuses.insert("200".to_owned(), requests - rate / 10);
    run.totals.errors_by_kind.insert("http_response_timeout".to_owned(), rate / 10);
    run.latency.intended_start = Some(Summary::of(&intended));
    run.latency.service = Summary::of(&service);
    run.latency.phases.first_byte = Summary::of(&service);
    run
}

fn host_second(at: u64, rate: u64, is_stalled: bool, random: &mut fastrand::Rng) -> HostSecond {
    HostSecond {
        at_s: at as f64,
        cpu_user_percent: 22.0 + random.f64() * 4.0,
        cpu_system_percent: 31.0 + random.f64() * 6.0,
        cpu_steal_percent: random.f64() * 2.0,
        own_cpu_percent: 48.0 + random.f64() * 5.0,
        retransmissions: if is_stalled { 40 } else { random.u64(0..3) },
        rx_bytes: rate * 50_400,
        tx_bytes: rate * 900,
        ..HostSecond::default()
    }
}

fn target() -> Target {
    Target {
        url: "https://shop.test/listings?q=a<b>&c=\"d\"".to_owned(),
        method: "GET".to_owned(),
        weight: 1,
        addresses: vec!["192.0.2.7:443".to_owned()],
    }
}

fn percentiles(of: &Histogram<u64>) -> Percentiles {
    let at = |quantile| of.value_at_quantile(quantile) as f64 / 1e6;
    Percentiles {
        mean_ms: of.mean() / 1e6,
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p99_ms: at(0.99),
        p99_9_ms: at(0.999),
        max_ms: of.max() as f64 / 1e6,
    }
}

fn named(name: &str, run: Run) -> Named {
    Named { name: name.to_owned(), run }
}

/// The browser, or `None` when it is not there, which is an error in CI.
fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("chromium"))
        .find(|program| program.is_file());
    let in_ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
    assert!(found.is_some() || !in_ci, "not there: chromium; in CI that is a failure");
    if found.is_none() {
        eprintln!("SKIPPED, not there: chromium (`make test` installs what tests need)");
    }
    found
}

/// Opens the page; yields its document as scripts left it, and what the browser logged.
fn open(browser: &Path, name: &str, html: &str, words: &[&str]) -> (String, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let page = folder.join("report.html");
    std::fs::write(&page, html).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .args(words)
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = String::from_utf8_lossy(&output.stderr);
    let log = log.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
    (String::from_utf8_lossy(&output.stdout).into_owned(), log)
}

/// Every figure of the page holds a chart, with its legend, and the browser had nothing to say.
fn assert_drawn(dom: &str, log: &str, lines: &[&str]) {
    assert_eq!(log, "", "the console is empty");
    let figures = dom.matches("<figure>").count();
    assert!(figures >= 7, "{figures} charts");
    assert!(dom.contains(&format!("data-drawn=\"{figures}\"")), "the script came to its end");
    assert_eq!(dom.matches("<canvas").count(), figures);
    for line in lines {
        assert!(dom.contains(&format!(">{line}<")), "{line} is in a legend");
    }
}

#[test]
fn the_page_of_one_run_is_drawn() {
    let Some(browser) = chromium() else { return };
    let html = page(&[named("run", stalled(60, 400, 1.0))]);
    let (dom, log) = open(&browser, "one", &html, &["--window-size=1280,900"]);
    let lines = ["intended", "answered", "service p99", "an empty timer", "segments retransmitted"];
    assert_drawn(&dom, &log, &lines);
    assert!(
        dom.contains("Only 388 of 400 intended requests/s were started"),
        "the shortfall is the headline"
    );
    assert!(dom.contains("https://shop.test/listings?q=a&lt;b&gt;&amp;c="), "as text");
}

#[test]
fn the_page_of_several_runs_is_drawn_and_fits_a_phone() {
    let Some(browser) = chromium() else { return };
    let mut hostile = stalled(45, 300, 1.6);
    hostile.command = vec!["</script><script>console.log('evil')</script>".to_owned()];
    let runs = [named("before", stalled(60, 400, 1.0)), named("<b>after</b>", hostile)];
    // A page wider than the phone would say so where its title was.
    let html = page(&runs).replace(
        "</body>",
        "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth;\
         </script></body>",
    );
    let (dom, log) = open(&browser, "phone", &html, &["--window-size=500,900"]);
    assert_drawn(&dom, &log, &["before", "&lt;b&gt;after&lt;/b&gt;"]);
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
    let (width, screen) = title.split_once(" of ").unwrap();
    assert_eq!(width, screen, "nothing is cut off at the side");
}

#[test]
fn a_run_without_seconds_is_a_page_too() {
    let Some(browser) = chromium() else { return };
    let html = page(&[named("empty", Run { format: FORMAT, ..Run::default() })]);
    let (dom, log) = open(&browser, "empty", &html, &[]);
    assert_eq!(log, "");
    assert!(dom.contains("data-drawn=\"0\""), "{}", dom.len());
}
