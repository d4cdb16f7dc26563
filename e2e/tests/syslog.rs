//! The access log by syslog: to real and to hostile collectors. Whatever a collector does, requests
//! are served, and the log can be moved elsewhere.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use e2e::{App, Process, Scene, Weir, find, http, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

fn config(scene: &Scene, app: &App, access: &str) -> String {
    let service = scene.one_service("", &[app.address()]);
    format!("reload = {{ watch = false }}\n{service}\n[log]\naccess = {access}\n")
}

/// Checks a message of RFC 5424 and yields its line.
fn line(message: &[u8], pid: u32) -> Value {
    let text = std::str::from_utf8(message).expect("UTF-8");
    let parts: Vec<&str> = text.splitn(8, ' ').collect();
    // Local0 is 16, info 6.
    assert_eq!(parts[0], "<134>1", "{text}");
    assert_eq!((parts[1].len(), &parts[1][4..5], &parts[1][23..]), (24, "-", "Z"), "{text}");
    assert_eq!(parts[3..7], ["weir", &pid.to_string(), "access", "-"], "{text}");
    serde_json::from_str(parts[7]).unwrap_or(Value::String(parts[7].to_owned()))
}

/// Reads a message behind its length (RFC 6587).
fn read_message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        match byte[0] {
            b' ' => break,
            digit => length = length * 10 + usize::from(digit - b'0'),
        }
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).ok()?;
    Some(message)
}

#[test]
fn lines_are_messages_by_udp_and_by_a_unix_socket_and_long_ones_are_cut() {
    let Some(scene) = Scene::new("syslog-datagrams", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let udp = UdpSocket::bind(scene.address(50, 514)).unwrap();
    udp.set_read_timeout(Some(SOON)).unwrap();
    let path = scene.folder().join("log");
    let unix = UnixDatagram::bind(&path).unwrap();
    unix.set_read_timeout(Some(SOON)).unwrap();
    let access = format!("{{ syslog = \"udp://{}\" }}", scene.ip(50));
    let mut weir = Weir::start(&scene, &config(&scene, &app, &access));
    let pid = weir.process().pid();
    let mut buffer = vec![0; 65536];
    let long = format!("/{}", "x".repeat(8000));

    http::get(weir.front(), "/one").unwrap();
    let count = udp.recv(&mut buffer).unwrap();
    assert_eq!(line(&buffer[..count], pid)["path"], "/one");
    http::get(weir.front(), &long).unwrap();
    let count = udp.recv(&mut buffer).unwrap();
    assert!(count <= 8192, "{count}");
    assert!(line(&buffer[..count], pid).as_str().unwrap().ends_with("xxx[truncated]"));

    let access = format!("{{ syslog = \"unix:{}\" }}", path.display());
    scene.file("weir.toml", config(&scene, &app, &access));
    assert_eq!(weir.ask("/api/v1/reload").status, 200);
    http::get(weir.front(), "/two").unwrap();
    // Lines from before the reload may still come, by whichever socket.
    let found = wait::until("the line of /two", SOON, || {
        let count = unix.recv(&mut buffer).ok()?;
        let text = std::str::from_utf8(&buffer[..count]).expect("UTF-8");
        let (head, line) =
            text.split_once(&format!(" weir[{pid}]: ")).expect("the form of syslog(3)");
        assert!(head.starts_with("<134>") && head.len() == 20, "{head}");
        let line: Value = serde_json::from_str(line).expect("JSON");
        (line["path"] == "/two").then_some(line)
    });
    assert_eq!(found["status"], 200);
}

#[test]
fn a_collector_that_comes_late_or_restarts_gets_the_lines() {
    let Some(scene) = Scene::new("syslog-restart", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let address = scene.address(50, 601);
    let mut weir =
        Weir::start(&scene, &config(&scene, &app, &format!("{{ syslog = \"tcp://{address}\" }}")));
    let pid = weir.process().pid();
    http::get(weir.front(), "/early").unwrap();
    weir.wait_for_log(&["cannot send the access log", &address.to_string()], SOON);

    let listener = TcpListener::bind(address).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let next = |stream: &mut TcpStream| line(&read_message(stream).expect("a message"), pid);
    assert_eq!(next(&mut stream)["path"], "/early");
    weir.wait_for_log(&["the access log is sent again"], SOON);
    http::get(weir.front(), "/two").unwrap();
    assert_eq!(next(&mut stream)["path"], "/two");

    // It closes: that is noticed before the next line is sent.
    drop(stream);
    http::get(weir.front(), "/three").unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    assert_eq!(next(&mut stream)["path"], "/three");
    assert!(weir.metric("weir_access_log_lines_dropped_total", &[]) < 1.0);

    // The last lines are sent before the process ends.
    http::get(weir.front(), "/last").unwrap();
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));
    assert_eq!(next(&mut stream)["path"], "/last");
    assert!(read_message(&mut stream).is_none());
}

/// What a hostile collector does with a connection.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    /// Accepts and never reads.
    Nothing,
    /// Closes at once.
    Close,
    /// Resets after some bytes.
    Reset,
    /// Reads a byte now and then.
    Trickle,
}

/// Runs a hostile collector until the test ends. Yields how many connections it has accepted.
fn hostile(address: SocketAddr, does: Does, ends: &Arc<AtomicBool>) -> Arc<AtomicUsize> {
    let listener = TcpListener::bind(address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (ends, accepted) = (Arc::clone(ends), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&accepted);
    std::thread::spawn(move || {
        let mut held = Vec::new();
        while !ends.load(Ordering::Relaxed) {
            if let Ok((mut stream, _)) = listener.accept() {
                counted.fetch_add(1, Ordering::Relaxed);
                match does {
                    Does::Close => drop(stream),
                    // Closing with unread bytes resets.
                    Does::Reset => drop(stream.read(&mut [0; 16])),
                    Does::Nothing | Does::Trickle => held.push(stream),
                }
            }
            if does == Does::Trickle {
                for stream in &mut held {
                    stream.set_nonblocking(true).unwrap();
                    drop(stream.read(&mut [0; 1]));
                }
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    accepted
}

#[test]
fn no_collector_holds_up_requests_or_the_way_to_another_log() {
    let Some(scene) = Scene::new("syslog-hostile", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let ends = Arc::new(AtomicBool::new(false));
    // Larger than what the kernel and Weir keep for a collector, in few requests.
    let long = format!("/{}", "x".repeat(8000));
    const FLOOD: usize = 4_000;
    let file = scene.folder().join("access.log");
    let to_file = config(&scene, &app, &format!("\"{}\"", file.display()));
    let mut weir = Weir::start(&scene, &to_file);
    let cases =
        [Some(Does::Nothing), Some(Does::Close), Some(Does::Reset), Some(Does::Trickle), None];
    for (index, does) in cases.into_iter().enumerate() {
        let address = scene.address(50 + index as u8, 601);
        let accepted = does.map(|does| hostile(address, does, &ends));
        let access = format!("{{ syslog = \"tcp://{address}\" }}");
        scene.file("weir.toml", config(&scene, &app, &access));
        assert_eq!(weir.ask("/api/v1/reload").status, 200);
        let lost = weir.metric("weir_access_log_lines_dropped_total", &[]);
        let mut connection = http::Connection::open(weir.front()).unwrap();
        for _ in 0..FLOOD {
            assert_eq!(connection.get(&long, &[]).unwrap().status, 200);
        }
        if matches!(does, None | Some(Does::Nothing | Does::Trickle)) {
            wait::until("lost lines in the metric", SOON, || {
                let now = weir.metric("weir_access_log_lines_dropped_total", &[]);
                assert!(now - lost <= FLOOD as f64, "{now} after {lost}");
                (now > lost).then_some(())
            });
        }
        // The pauses between connections grow, so that a collector that closes gets few.
        let accepted = accepted.map_or(0, |accepted| accepted.load(Ordering::Relaxed));
        assert!(accepted <= 100, "{accepted} connections");

        scene.file("weir.toml", &to_file);
        assert_eq!(weir.ask("/api/v1/reload").status, 200);
        // The first line in the file is written after the collector's lost lines are known. The worker
        // that hands over the second one adds them to the metric before it serves the last request.
        let mut connection = http::Connection::open(weir.front()).unwrap();
        for marker in [format!("/after-{index}"), format!("/lost-known-{index}")] {
            assert_eq!(connection.get(&marker, &[]).unwrap().status, 200);
            wait::until(&format!("the line of {marker}"), SOON, || {
                std::fs::read_to_string(&file).ok()?.contains(&marker).then_some(())
            });
        }
        assert_eq!(connection.get("/counted", &[]).unwrap().status, 200);
    }
    let log = weir.log();
    assert!(log.contains("lines of the access log are lost"), "{log}");
    // Each kind of complaint at most once for each collector here, whatever the number of lines.
    let complaints = log.matches("access log").count();
    assert!(complaints <= 3 * cases.len(), "{log}");

    // Nor the end of the process.
    let address = scene.address(50, 601);
    let access = format!("{{ syslog = \"tcp://{address}\" }}");
    scene.file("weir.toml", config(&scene, &app, &access));
    assert_eq!(weir.ask("/api/v1/reload").status, 200);
    let mut connection = http::Connection::open(weir.front()).unwrap();
    for _ in 0..FLOOD {
        assert_eq!(connection.get(&long, &[]).unwrap().status, 200);
    }
    drop(connection);
    weir.begin_to_stop();
    let begun = Instant::now();
    assert_eq!(weir.wait(SOON).code, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    ends.store(true, Ordering::Relaxed);
}

/// What rsyslogd has written of each message, as the template says.
fn written(file: &Path, count: usize) -> Vec<String> {
    wait::until(&format!("{count} messages"), SOON, || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (lines.len() == count && text.ends_with('\n')).then_some(lines)
    })
}

#[test]
fn a_real_rsyslogd_reads_every_message() {
    let Some(scene) = Scene::new("syslog-rsyslogd", &["python3", "rsyslogd"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (udp, tcp) = (scene.address(50, 5514), scene.address(51, 5514));
    let folder = scene.folder();
    let (out, unix) = (folder.join("received"), folder.join("dev-log"));
    let file = scene.file(
        "rsyslog.conf",
        format!(
            "global(workDirectory=\"{0}\")\nmodule(load=\"imudp\")\nmodule(load=\"imtcp\")\n\
             module(load=\"imuxsock\" SysSock.Use=\"off\")\n\
             template(name=\"seen\" type=\"string\" string=\"%syslogfacility-text%|%syslogseverity-text%|%app-name%|%procid%|%msgid%|%msg%\\n\")\n\
             ruleset(name=\"all\") {{ action(type=\"omfile\" file=\"{1}\" template=\"seen\") }}\n\
             input(type=\"imudp\" address=\"{2}\" port=\"5514\" ruleset=\"all\")\n\
             input(type=\"imtcp\" address=\"{3}\" port=\"5514\" ruleset=\"all\")\n\
             input(type=\"imuxsock\" Socket=\"{4}\" ruleset=\"all\")\n",
            folder.display(),
            out.display(),
            udp.ip(),
            tcp.ip(),
            unix.display()
        ),
    );
    let words = [
        "-n".to_owned(),
        "-f".to_owned(),
        file.to_string_lossy().into_owned(),
        "-i".to_owned(),
        folder.join("rsyslogd.pid").to_string_lossy().into_owned(),
    ];
    let mut rsyslogd = Process::start(&scene, "rsyslogd", &find("rsyslogd").unwrap(), words);
    wait::until("rsyslogd to listen", SOON, || {
        assert!(rsyslogd.is_running(), "{}", rsyslogd.stderr());
        (unix.exists() && TcpStream::connect(tcp).is_ok()).then_some(())
    });
    let to = |target: &str| {
        config(
            &scene,
            &app,
            &format!("{{ syslog = \"{target}\", facility = \"local7\", app_name = \"edge-1\" }}"),
        )
    };
    let mut weir = Weir::start(&scene, &to(&format!("udp://{udp}")));
    let pid = weir.process().pid();
    let hostile = b"GET /h\"o\\s{|}tile%0a<13>1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (index, target) in
        [format!("udp://{udp}"), format!("tcp://{tcp}"), format!("unix:{}", unix.display())]
            .iter()
            .enumerate()
    {
        scene.file("weir.toml", to(target));
        assert_eq!(weir.ask("/api/v1/reload").status, 200);
        let mut stream = TcpStream::connect(weir.front()).unwrap();
        stream.write_all(hostile).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        let lines = written(&out, index + 1);
        let parts: Vec<&str> = lines[index].splitn(6, '|').collect();
        // The form of syslog(3) has no MSGID.
        let id = if target.starts_with("unix:") { "-" } else { "access" };
        assert_eq!(
            parts[..5],
            ["local7", "info", "edge-1", &pid.to_string(), id],
            "{target}: {lines:#?}"
        );
        let line: Value =
            serde_json::from_str(parts[5]).unwrap_or_else(|e| panic!("{target}: {e}: {lines:#?}"));
        assert_eq!(
            (&line["path"], &line["status"]),
            (&"/h\"o\\s{|}tile%0a<13>1".into(), &200.into())
        );
    }
    rsyslogd.terminate(SOON);
}
