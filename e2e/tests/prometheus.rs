//! A real Prometheus scrapes Weir, as text and with native histograms, and answers which server is slow.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{App, Process, Scene, Weir, find, http, server_tables, wait};

const SOON: Duration = Duration::from_secs(20);

/// Starts a Prometheus that scrapes `target` every second.
fn prometheus(
    scene: &Scene,
    host: u8,
    target: SocketAddr,
    words: &[&str],
) -> (Process, SocketAddr) {
    let address = scene.address(host, 9090);
    let file = scene.file(
        &format!("prometheus-{host}.yml"),
        format!(
            "global: {{ scrape_interval: 1s }}\nscrape_configs:\n\
             - {{ job_name: weir, static_configs: [{{ targets: ['{target}'] }}] }}\n"
        ),
    );
    let folder = scene.folder().join(format!("prometheus-{host}"));
    let mut all = vec![
        format!("--config.file={}", file.display()),
        format!("--storage.tsdb.path={}", folder.display()),
        format!("--web.listen-address={address}"),
    ];
    all.extend(words.iter().map(|word| (*word).to_owned()));
    let name = format!("prometheus-{host}");
    (Process::start(scene, &name, &find("prometheus").unwrap(), all), address)
}

/// Returns the value of each series that a query finds, with its label `by`.
fn query(prometheus: SocketAddr, query: &str, by: &str) -> Vec<(String, f64)> {
    let encode = |c: char| match c {
        'a'..='z' | '0'..='9' | '_' => c.to_string(),
        other => format!("%{:02X}", other as u32),
    };
    let target = format!("/api/v1/query?query={}", query.chars().map(encode).collect::<String>());
    let Ok(response) = http::get(prometheus, &target) else { return Vec::new() };
    if response.status != 200 {
        // It answers 503 while it starts.
        return Vec::new();
    }
    let found = response.json()["data"]["result"].as_array().cloned().unwrap_or_default();
    let value = |one: &serde_json::Value| {
        let number =
            one["value"][1].as_str()?.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some((one["metric"][by].as_str().unwrap_or_default().to_owned(), number))
    };
    let mut found: Vec<_> = found.iter().filter_map(value).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Passes an exposition to `promtool check metrics`, which applies Prometheus's rules for names and
/// help texts, and returns what it objects to.
fn objections(exposition: &str) -> String {
    let mut promtool = Command::new(find("promtool").unwrap())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut promtool.stdin.take().unwrap(), exposition.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if output.status.success() { said.into_owned() } else { format!("{}: {said}", output.status) }
}

#[test]
fn prometheus_finds_the_slow_server_with_native_histograms_and_without() {
    let Some(scene) = Scene::new("prometheus", &["python3", "prometheus", "promtool"]) else {
        return;
    };
    let (quick, slow) =
        (App::start(&scene, 11, &[]), App::start(&scene, 12, &["--work-ms", "200"]));
    let metrics = scene.address(2, 9100);
    let config = |server_histograms: bool| {
        let rest = format!(
            "[metrics]\naddress = \"{metrics}\"\nserver_histograms = {server_histograms}\n\
             [[route]]\nservice = \"app\"\n[service.app]\n{}",
            server_tables("app", [quick.address(), slow.address()]),
        );
        scene.config("workers = 2", &rest)
    };
    let weir = Weir::start(&scene, &config(false));
    let (_native, native) = prometheus(&scene, 3, metrics, &["--enable-feature=native-histograms"]);
    let (_classic, classic) = prometheus(&scene, 4, metrics, &[]);
    let servers = [quick.address(), slow.address()].map(|address| address.to_string());
    let by_server = "by (address) (rate(weir_server_latency_seconds{stage=\"first_byte\"}[10s]))";
    let ask = |what: &str, address: SocketAddr, promql: &str, slow: Range<f64>| {
        wait::until(what, SOON, || {
            http::get(weir.front(), "/").unwrap();
            let found = query(address, promql, "address");
            let [(one, of_one), (other, of_other)] = &found[..] else { return None };
            let is_right = [one, other] == [&servers[0], &servers[1]]
                && *of_one < 0.1
                && slow.contains(of_other);
            is_right.then_some(())
        });
    };
    // A bucket is 9 % wide.
    let median = format!("histogram_quantile(0.5, sum {by_server})");
    ask("native histograms", native, &median, 0.18..0.23);
    // All of the service: half of the requests take 0.2 s.
    wait::until("the service's native histogram", SOON, || {
        http::get(weir.front(), "/").unwrap();
        let whole = "histogram_quantile(0.9, rate(weir_request_duration_seconds[10s]))";
        let found = query(native, whole, "service");
        matches!(&found[..], [(_, seconds)] if (0.18..0.25).contains(seconds)).then_some(())
    });
    // The text formats have no histograms of servers, unless they are configured.
    let up = wait::until("a scrape as text", SOON, || {
        Some(query(classic, "weir_server_up", "address")).filter(|found| found.len() == 2)
    });
    assert!(up.iter().all(|(_, value)| *value > 0.5), "{up:?}");
    assert_eq!(query(classic, "weir_server_latency_seconds_count", "address"), []);
    std::fs::write(Path::new(scene.folder()).join("weir.toml"), config(true)).unwrap();
    weir.hang_up();
    let buckets = by_server
        .replace("(address)", "(address, le)")
        .replace("latency_seconds", "latency_seconds_bucket");
    // From 0.1 to 0.25 s is one bucket.
    let median = format!("histogram_quantile(0.5, sum {buckets})");
    ask("classic histograms", classic, &median, 0.1..0.25);

    let text = http::get(metrics, "/metrics").unwrap().text();
    assert_eq!(objections(&text), "");
    let open = ["Accept: application/openmetrics-text"];
    assert!(http::get_with(metrics, "/metrics", &open).unwrap().text().ends_with("# EOF\n"));
}
