//! A real Prometheus scrapes Weir, as text and with native histograms. It answers which server is slow,
//! evaluates the rules in `packaging/prometheus`, and answers the queries of the dashboard in
//! `packaging/grafana`.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use e2e::{App, Authority, Process, Scene, Weir, find, http, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

/// Queries of the dashboard that find nothing in a test, by the panel and what the legend contains: they
/// show trouble that the test does not cause, or look an hour back.
const QUIET: [(&str, &str); 13] = [
    ("", "an hour ago"),
    ("What is wrong", ""),
    ("Queued and refused", "{{cause}}"),
    ("New connections and handshakes", "TLS"),
    ("New connections and handshakes", "pauses"),
    ("Retransmitted to servers", "SYNs"),
    ("Key sets", ""),
    ("Fetches of key sets", ""),
    ("What did not fit", ""),
    ("Sent to the OpenTelemetry collector", "dropped"),
    ("Configuration changed", ""),
    ("Process started", ""),
    ("Alerts", ""),
];

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// Starts a Prometheus that scrapes `target` and evaluates the packaged rules every second.
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
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\n\
             rule_files: ['{}']\nscrape_configs:\n\
             - {{ job_name: weir, static_configs: [{{ targets: ['{target}'] }}] }}\n",
            packaging("prometheus/weir.rules.yml").display()
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

/// Returns the series that a query finds, or why Prometheus does not answer it.
fn answer(prometheus: SocketAddr, query: &str) -> Result<Vec<Value>, String> {
    let encode = |c: char| match c {
        'a'..='z' | '0'..='9' | '_' => c.to_string(),
        other => format!("%{:02X}", other as u32),
    };
    let target = format!("/api/v1/query?query={}", query.chars().map(encode).collect::<String>());
    let response = http::get(prometheus, &target).map_err(|e| e.to_string())?;
    if response.status != 200 {
        return Err(format!("{}: {}", response.status, response.text()));
    }
    Ok(response.json()["data"]["result"].as_array().cloned().unwrap_or_default())
}

/// Returns the value of each series that a query finds, with its label `by`.
fn query(prometheus: SocketAddr, query: &str, by: &str) -> Vec<(String, f64)> {
    // It answers 503 while it starts.
    let found = answer(prometheus, query).unwrap_or_default();
    let value = |one: &Value| {
        let number =
            one["value"][1].as_str()?.parse().ok().filter(|value: &f64| value.is_finite())?;
        Some((one["metric"][by].as_str().unwrap_or_default().to_owned(), number))
    };
    let mut found: Vec<_> = found.iter().filter_map(value).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

/// Returns the string `key` of each of `list` (rules, alerts), sorted.
fn strings(list: &Value, key: &str) -> Vec<String> {
    let each = list.as_array().into_iter().flatten();
    let mut found: Vec<String> =
        each.filter_map(|one| one.pointer(key)?.as_str().map(str::to_owned)).collect();
    found.sort();
    found.dedup();
    found
}

/// Runs `packaging/check`.
fn check(words: &[&str]) -> Output {
    Command::new(packaging("check")).args(words).output().unwrap()
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

#[test]
fn the_packaged_rules_and_dashboard_fit_a_balancer_with_traffic() {
    let Some(scene) = Scene::new("prometheus-packaging", &["python3", "prometheus", "promtool"])
    else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let metrics = scene.address(2, 9100);
    let pair = Authority::new(&scene, "ca").issue("tls", &["app.example.com"]);
    // No collector listens at this address; the metrics about sending exist all the same.
    let rest = format!(
        "[metrics]\naddress = \"{metrics}\"\nserver_histograms = true\n\
         [otlp]\nendpoint = \"http://{}\"\ninterval = \"1h\"\n\
         [fleet]\naddress = \"{}\"\nkeys = [\"a secret of a fleet in a test, 48 bytes of letters\"]\n\
         [[listener]]\nname = \"tls\"\naddress = \"{}\"\n\
         tls = {{ certificates = [{{ chain = \"{}\", key = \"{}\" }}] }}\n\
         [[route]]\nservice = \"app\"\n[service.app]\nin_flight_max = 8\n\
         queue = {{ length_max = 10, wait_max = \"5s\" }}\n\
         check = {{ path = \"/status\", interval = \"1s\" }}\n\
         discover = {{ files = \"{}\" }}\n{}",
        scene.address(5, 4318),
        scene.address(1, 7946),
        scene.address(1, 8443),
        pair.chain.display(),
        pair.key.display(),
        scene.file("rows.toml", "server = []\n").display(),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let (_native, native) = prometheus(&scene, 3, metrics, &["--enable-feature=native-histograms"]);
    let (_classic, classic) = prometheus(&scene, 4, metrics, &[]);
    let send = || {
        // Each on a new connection, so that there are connections to count; the last is no HTTP.
        assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
        assert_eq!(http::get(weir.front(), "/?status=500&close=1").unwrap().status, 500);
        drop(http::raw(weir.front(), b"no request\r\n\r\n"));
    };
    send();

    let text = http::get(metrics, "/metrics").unwrap().text();
    let file = scene.file("metrics", &text).display().to_string();
    let checked = check(&[&file]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let renamed = text.replace("weir_queue_length ", "weir_queue_size ").replace("stage=", "step=");
    let file = scene.file("renamed", renamed).display().to_string();
    let checked = check(&[&file]);
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!checked.status.success());
    for mistake in ["has no weir_queue_length", "weir_server_latency_seconds has no label stage"] {
        assert!(said.contains(mistake), "{said}");
    }

    let queries = String::from_utf8(check(&["--queries"]).stdout).unwrap();
    for prometheus in [native, classic] {
        wait::until("a scrape", SOON, || {
            query(prometheus, "up", "job").contains(&("weir".to_owned(), 1.0)).then_some(())
        });
        dashboard_is_answered(prometheus, &queries, &send);
        rules_are_evaluated(prometheus, &send);
    }
}

/// Asks every query of the dashboard, until those that are about traffic find some.
fn dashboard_is_answered(prometheus: SocketAddr, queries: &str, send: &dyn Fn()) {
    for line in queries.lines() {
        let [title, legend, promql] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let ask =
            || answer(prometheus, promql).unwrap_or_else(|e| panic!("{title}: {promql}: {e}"));
        let is_quiet =
            |(panel, word): &(&str, &str)| title.contains(panel) && legend.contains(word);
        if QUIET.iter().any(is_quiet) {
            ask();
            continue;
        }
        wait::until(&format!("data of {title}, {legend}: {promql}"), SOON, || {
            send();
            (!ask().is_empty()).then_some(())
        });
    }
}

/// No rule has an error; the alerts see that half of the answered requests fail.
fn rules_are_evaluated(prometheus: SocketAddr, send: &dyn Fn()) {
    let get = |path: &str| http::get(prometheus, path).unwrap().json();
    wait::until("every rule to be evaluated", SOON, || {
        let rules = get("/api/v1/rules");
        let mut groups = rules["data"]["groups"].as_array()?.iter().map(|group| &group["rules"]);
        groups
            .all(|rules| {
                assert_eq!(strings(rules, "/lastError"), Vec::<String>::new());
                strings(rules, "/health") == ["ok"]
            })
            .then_some(())
    });
    // Pending: none fires so early.
    let expected = ["WeirServerFailing", "WeirServiceFailing", "WeirServiceFailsSlowly"];
    let names = wait::until("the alerts on failures", SOON, || {
        send();
        let alerts = get("/api/v1/alerts");
        let names = strings(&alerts["data"]["alerts"], "/labels/alertname");
        expected.iter().all(|one| names.iter().any(|name| name == one)).then_some(names)
    });
    // Every scrape has found the same process. (Alerts on slowness depend on the machine.)
    for absent in ["WeirDown", "WeirRestartsRepeatedly", "WeirNoServerReady", "WeirFailsByItself"] {
        assert!(!names.iter().any(|name| name == absent), "{names:?}");
    }
}
