//! What an access line contains: chosen fields, the formats of other programs as those programs read
//! them, secrets of queries, and which lines are written.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use e2e::{App, Haproxy, Scene, Weir, find, http, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);

/// A target and fields that try to end what they stand in.
const HOSTILE: &[u8] =
    b"GET /h\"o\\s{|}tile?to%6ben=s3cret&x=\"1\"\\ HTTP/1.1\r\nHost: a.example\r\n\
    Referer: https://b.example/?token=s3cret&y=2\" 200 1 \"-\" \"forged\r\n\
    User-Agent: evil\" 200 1 \"-\" \"x\\\t\x80}\",\"cause\":\"forged\r\nConnection: close\r\n\r\n";

/// A configuration that logs into `log` as the lines `settings` of `[log]` say. Its routes: `/old`
/// redirects, `/dead` leads to a server that is not there, everything else to `app`.
fn config(scene: &Scene, app: SocketAddr, log: &Path, settings: &str) -> String {
    let raw = scene.address(1, 8081);
    scene.config(
        "workers = 1",
        &format!(
            "[log]\naccess = \"{}\"\n{settings}\n\
             [[listener]]\nname = \"raw\"\naddress = \"{raw}\"\nprotocol = \"tcp\"\nservice = \"app\"\n\
             [[route]]\nname = \"everything\"\nservice = \"app\"\n\
             [[route]]\npath = \"/old\"\nredirect = {{ path = \"/new\", status = 302 }}\n\
             [[route]]\nname = \"dead\"\npath = \"/dead\"\nservice = \"dead\"\n\
             [service.app]\n{}\n[service.dead]\nretries = {{ max = 0 }}\n{}",
            log.display(),
            e2e::server_tables("app", [app]),
            e2e::server_tables("dead", [scene.address(99, 9)]),
        ),
    )
}

/// The log's lines, once there are `count`.
fn lines(log: &Path, count: usize) -> Vec<String> {
    wait::until(&format!("{count} lines in {}", log.display()), SOON, || {
        let text = std::fs::read(log).ok()?;
        let text = String::from_utf8(text).expect("UTF-8");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert!(lines.len() <= count, "{text}");
        (lines.len() == count && text.ends_with('\n')).then_some(lines)
    })
}

/// Sends each of `requests` on a connection of its own, and waits for its end.
fn send(address: SocketAddr, requests: &[&[u8]]) {
    for request in requests {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(SOON)).expect("a timeout");
        stream.write_all(request).expect("a request");
        // The server may reset what it refuses.
        drop(stream.read_to_end(&mut Vec::new()));
    }
}

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n").into_bytes()
}

/// Runs `program` on the log's text; yields its standard output.
fn read_by(program: &str, words: &[&str], log: &Path) -> String {
    let output = Command::new(find(program).expect(program))
        .args(words)
        .stdin(std::fs::File::open(log).expect("the log"))
        .stderr(Stdio::piped())
        .output()
        .expect(program);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
    String::from_utf8(output.stdout).expect("UTF-8") + &said
}

fn log_of(scene: &Scene) -> PathBuf {
    scene.folder().join("access.log")
}

#[test]
fn chosen_fields_are_the_line_with_headers_and_without_secrets() {
    let Some(scene) = Scene::new("access-fields", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let log = log_of(&scene);
    let fields = "fields = [\"status\", \"route\", \"query\", \"user_agent\", \"request_header.Referer\", \
         \"response_header.x-served-by\", \"cause\"]\nredact_query = [\"token\"]";
    let weir = Weir::start(&scene, &config(&scene, app.address(), &log, fields));
    send(
        weir.front(),
        &[HOSTILE, &get("/old?token=1"), &get("/dead"), b"GET /b ad HTTP/1.1\r\n\r\n"],
    );
    let text = lines(&log, 4);
    assert!(text.iter().all(|line| !line.contains("s3cret")), "{text:#?}");
    assert!(
        text[0].starts_with("{\"status\":200,\"route\":\"everything\",\"query\":"),
        "{text:#?}"
    );
    let lines: Vec<Value> =
        text.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let served = &lines[0];
    assert!(lines.iter().all(|line| line.as_object().unwrap().len() == 7), "{lines:#?}");
    assert_eq!(served["query"], "to%6ben=[redacted]&x=\"1\"\\");
    assert_eq!(
        served["request_header.referer"],
        "https://b.example/?token=[redacted]&y=2\" 200 1 \"-\" \"forged"
    );
    let agent = "evil\" 200 1 \"-\" \"x\\\t\u{fffd}}\",\"cause\":\"forged";
    assert_eq!((&served["user_agent"], &served["cause"]), (&agent.into(), &"completed".into()));
    assert_eq!(served["response_header.x-served-by"], app.name());
    // Answers of Weir itself are not a server's, not even that of the server before.
    let of_route =
        |line: &Value| (line["route"].clone(), line["response_header.x-served-by"].clone());
    assert_eq!(lines[1]["query"], "token=[redacted]");
    assert_eq!(of_route(&lines[2]), ("dead".into(), Value::Null), "{lines:#?}");
    assert_eq!(of_route(&lines[3]), (Value::Null, Value::Null), "{lines:#?}");
}

#[test]
fn goaccess_reads_every_line_of_the_combined_format() {
    let Some(scene) = Scene::new("access-combined", &["python3", "goaccess"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let log = log_of(&scene);
    let settings = "format = \"combined\"\nredact_query = \"token\"";
    let weir = Weir::start(&scene, &config(&scene, app.address(), &log, settings));
    let refused = b"\x16\x03\x01\r\n\r\n";
    send(weir.front(), &[HOSTILE, &get("/plain"), &get("/old"), &get("/dead"), refused]);
    // A client that leaves before it is answered.
    let mut gone = http::Connection::open(weir.front()).unwrap();
    gone.send(&get("/slow?work_ms=30000")).unwrap();
    wait::until("the request at its server", SOON, || {
        (weir.api("/api/v1/requests")["requests"][0]["stage"] == "response").then_some(())
    });
    drop(gone);
    send(scene.address(1, 8081), &[&get("/by-tcp")]);
    let text = lines(&log, 7);
    assert!(text.iter().all(|line| !line.contains("s3cret")), "{text:#?}");
    assert!(text[0].contains(
        "\"GET /h\\x22o\\x5Cs{|}tile?to%6ben=[redacted]&x=\\x221\\x22\\x5C HTTP/1.1\" 200 "
    ));
    assert!(
        text.iter().any(|line| line.contains("\"GET /slow?work_ms=30000 HTTP/1.1\" 499 ")),
        "{text:#?}"
    );

    let report = scene.folder().join("report.json");
    let words = ["--log-format=COMBINED", "--no-global-config", "--no-progress", "-o"];
    read_by("goaccess", &[&words[..], &[&report.to_string_lossy(), "-"]].concat(), &log);
    let report: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let general = &report["general"];
    assert_eq!(
        (&general["valid_requests"], &general["failed_requests"]),
        (&7.into(), &0.into()),
        "{general}"
    );
    let requests = report["requests"]["data"].to_string();
    assert!(requests.contains("\"/plain\"") && !requests.contains("forged"), "{requests}");
}

/// Replaces what differs between two runs: ports, times, durations, sizes and how many connections
/// are still being closed.
fn comparable(line: &str) -> String {
    let parts: Vec<&str> = line.splitn(13, ' ').collect();
    let is_tcp = parts.len() < 12;
    let shape = |part: &str| -> String {
        let mut shaped: String =
            part.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        while shaped.contains("00") {
            shaped = shaped.replace("00", "0");
        }
        shaped
    };
    let kept: Vec<String> = parts
        .iter()
        .enumerate()
        .map(|(index, part)| match index {
            // Client, time, timers; bytes; counts.
            0 | 1 | 4 => shape(part),
            5 | 7 if is_tcp => shape(part),
            6 | 10 if !is_tcp => shape(part),
            _ => (*part).to_owned(),
        })
        .collect();
    kept.join(" ")
}

#[test]
fn the_haproxy_format_is_that_of_a_real_haproxy() {
    let Some(scene) = Scene::new("access-haproxy", &["python3", "haproxy", "halog"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let log = log_of(&scene);
    let (app, dead) = (app.address(), scene.address(99, 9));
    let weir = Weir::start(&scene, &config(&scene, app, &log, "format = \"haproxy\""));
    let (front, raw) = (scene.address(2, 8080), scene.address(2, 8081));
    let haproxy = Haproxy::start(
        &scene,
        &format!(
            "global\n log stdout format raw local0\n\
             defaults\n log global\n option dontlognull\n retries 0\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
             frontend public\n mode http\n option httplog\n bind {front}\n\
             \x20http-request redirect location /new if {{ path_beg /old }}\n\
             \x20use_backend dead if {{ path_beg /dead }}\n default_backend app\n\
             backend app\n mode http\n server {app} {app}\n\
             backend dead\n mode http\n server {dead} {dead}\n\
             frontend raw\n mode tcp\n option tcplog\n bind {raw}\n default_backend app_tcp\n\
             backend app_tcp\n mode tcp\n server {app} {app}\n",
        ),
        front,
    );
    let requests: [&[u8]; 6] = [
        &get("/plain?x=1"),
        HOSTILE,
        b"GET /ten HTTP/1.0\r\n\r\n",
        &get("/old"),
        &get("/dead"),
        b"GET /b ad HTTP/1.1\r\n\r\n",
    ];
    // One after the other, so that the lines are in this order.
    for (index, request) in requests.iter().enumerate() {
        send(weir.front(), &[request]);
        lines(&log, index + 1);
        send(front, &[request]);
    }
    send(scene.address(1, 8081), &[&get("/by-tcp")]);
    let ours = lines(&log, 7);
    send(raw, &[&get("/by-tcp")]);
    let theirs = wait::until("HAProxy's lines", SOON, || {
        let text = haproxy.process.stdout();
        let lines: Vec<String> = text
            .lines()
            .filter(|line| line.contains("] public ") || line.contains("] raw "))
            .map(str::to_owned)
            .collect();
        (lines.len() >= 7).then_some(lines)
    });
    let expected: Vec<String> = theirs
        .iter()
        .map(|line| {
            comparable(line)
                .replace(" app_tcp/", " app/")
                // A server that refuses is 502 by Weir and 503 by HAProxy.
                .replace(" 503 0 - - SC-- ", " 502 0 - - SC-- ")
        })
        .collect();
    let compared: Vec<String> = ours.iter().map(|line| comparable(line)).collect();
    assert_eq!(compared, expected, "Weir's, and HAProxy's lines");

    // For lines without a syslog header, halog skips fewer fields. The one of tcplog has no status.
    let servers = read_by("halog", &["-s", "-4", "-srv"], &log);
    assert!(servers.contains("7 lines in, 3 lines out, 1 parsing errors"), "{servers}");
    assert!(servers.contains(&format!("app/{app} 0 3 0 0 0 0 3 3 100.0")), "{servers}");
    let states = read_by("halog", &["-s", "-4", "-tc"], &log);
    for state in ["-- 3", "LR 1", "SC 1", "PR 1"] {
        assert!(states.contains(state), "{states}");
    }
    assert!(read_by("halog", &["-s", "-4", "-u"], &log).contains(" /h#22o\\s{|}tile\n"));
}

#[test]
fn a_share_of_the_successes_and_every_error_is_logged_with_its_weight() {
    let Some(scene) = Scene::new("access-sample", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let log = log_of(&scene);
    let token = scene.file("token", "0123456789abcdef0123\n");
    std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let settings = format!(
        "sample = {{ ok = 0.25, destination_unavailable = 0 }}\nexplain_token_file = \"{}\"",
        token.display()
    );
    let weir = Weir::start(&scene, &config(&scene, app.address(), &log, &settings));
    const REQUESTS: usize = 400;
    let mut connection = http::Connection::open(weir.front()).unwrap();
    for _ in 0..REQUESTS {
        assert_eq!(connection.get("/ok", &[]).unwrap().status, 200);
    }
    for _ in 0..20 {
        assert_eq!(connection.get("/fails?status=500", &[]).unwrap().status, 500);
    }
    assert_eq!(http::get(weir.front(), "/dead").unwrap().status, 502);
    let explain = ["Weir-Explain: 0123456789abcdef0123"];
    for _ in 0..20 {
        assert_eq!(connection.get("/explained", &explain).unwrap().status, 200);
    }
    drop(connection);
    // In order, so all others have been written before.
    assert_eq!(http::get(weir.front(), "/fails?status=500").unwrap().status, 500);
    let lines = wait::until("the lines", SOON, || {
        let text = std::fs::read_to_string(&log).ok()?;
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).ok()).collect::<Option<_>>()?;
        (lines.iter().filter(|line| line["path"] == "/fails").count() == 21).then_some(lines)
    });
    let of = |path: &str| lines.iter().filter(|line| line["path"] == path).collect::<Vec<_>>();
    assert!(of("/ok").iter().all(|line| line["sample_rate"] == 0.25), "{lines:#?}");
    assert!(of("/fails").iter().all(|line| line["sample_rate"] == 1), "{lines:#?}");
    assert_eq!((of("/dead").len(), of("/explained").len()), (1, 20));
    // One in four of 400: less than 1 in 10^10 that it is outside.
    let written = of("/ok").len();
    assert!((40..=165).contains(&written), "{written}");
    // Metrics count all of them.
    let counted = weir.metric("weir_listener_requests_total", &["cause=\"completed\""]);
    assert!(counted >= (REQUESTS + 41) as f64, "{counted}");
}
