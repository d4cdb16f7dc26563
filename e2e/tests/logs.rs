//! Logs: destinations of the access log, and how much a peer can write to a log.

use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::frames::{ACK, Frames, code, kind};
use e2e::{App, Scene, Weir, http, run, wait};
use rustix::fs::{CWD, FileType, Mode};

const SOON: Duration = Duration::from_secs(5);

/// A configuration whose access log is `log`, read only when the test says so.
fn config(scene: &Scene, app: &App, log: &Path) -> String {
    let service = scene.one_service("", &[app.address()]);
    let log = format!("[log]\naccess = \"{}\"\n", log.display());
    format!("reload = {{ watch = false }}\n{service}\n{log}")
}

fn fifo(scene: &Scene, name: &str) -> PathBuf {
    let path = scene.folder().join(name);
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn a_pipe_without_a_reader_holds_up_neither_start_nor_reload_nor_stop() {
    let Some(scene) = Scene::new("logs-fifo", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pipe = fifo(&scene, "pipe");
    let with_pipe = config(&scene, &app, &pipe);
    let file = scene.file("pipe.toml", &with_pipe);
    let finished = run(&scene, &["serve", &file.to_string_lossy()]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("without a reader"), "{finished:?}");

    let mut weir = Weir::start(&scene, &config(&scene, &app, &scene.folder().join("log")));
    scene.file("weir.toml", &with_pipe);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("without a reader"), "{}", answer.text());
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));
}

#[test]
fn a_pipe_whose_reader_leaves_holds_up_no_rotation_and_no_stop() {
    let Some(scene) = Scene::new("logs-reader", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let pipe = fifo(&scene, "pipe");
    // Opened for both directions: that does not wait for a writer.
    let reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let mut weir = Weir::start(&scene, &config(&scene, &app, &pipe));
    assert_eq!(http::get(weir.front(), "/read").unwrap().status, 200);
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(&reader), &mut line).unwrap();
    assert!(line.contains("/read"), "{line}");

    drop(reader);
    let from = weir.log().len();
    weir.hang_up();
    weir.wait_for_log_from(from, &["without a reader"], SOON);
    assert_eq!(http::get(weir.front(), "/unread").unwrap().status, 200);
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));
}

#[test]
fn root_follows_no_symbolic_link_with_or_without_a_user() {
    let Some(scene) = Scene::new("logs-link", &["python3"]) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let app = App::start(&scene, 11, &[]);
    let precious = scene.file("precious", "untouched");
    let link = scene.folder().join("access.log");
    std::os::unix::fs::symlink(&precious, &link).unwrap();
    let text = config(&scene, &app, &link);
    for top in ["", "user = \"nobody\"\n"] {
        let file = scene.file("link.toml", format!("{top}{text}"));
        let finished = run(&scene, &["serve", &file.to_string_lossy()]);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains("symbolic link"), "{finished:?}");
    }
    // A reload, and a rotation, open the log again: as root, by the same rule.
    let weir = Weir::start(&scene, &config(&scene, &app, &scene.folder().join("log")));
    scene.file("weir.toml", &text);
    assert_eq!(weir.ask("/api/v1/reload").status, 422);
    std::fs::remove_file(scene.folder().join("log")).unwrap();
    std::os::unix::fs::symlink(&precious, scene.folder().join("log")).unwrap();
    let from = weir.log().len();
    weir.hang_up();
    weir.wait_for_log_from(from, &["symbolic link"], SOON);
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    let read = || std::fs::read_to_string(&precious).unwrap();
    wait::measure_for(Duration::from_millis(100));
    assert_eq!(read(), "untouched");
}

#[test]
fn a_flood_of_frames_is_one_line_of_the_access_log() {
    let Some(scene) = Scene::new("logs-flood", &["python3"]) else {
        return;
    };
    const FRAMES: usize = 10_000;
    let app = App::start(&scene, 11, &[]);
    let weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let before = weir.log().len();
    let mut client = Frames::client(weir.front()).unwrap();
    // None was requested. The connection ends before all of them are sent.
    let sent = (0..FRAMES).take_while(|_| client.send(kind::PING, ACK, 0, &[7; 8]).is_ok()).count();
    let end = client.until(|frame| frame.kind == kind::GOAWAY);
    assert!(end.is_err() || end.is_ok_and(|frame| frame.code() == code::ENHANCE_YOUR_CALM));
    drop(client);
    let line = wait::until("the access line", SOON, || {
        weir.access().into_iter().find(|line| line["cause"] == "enhance_your_calm")
    });
    assert_eq!((&line["detail"], &line["fault"]), (&"PING frames".into(), &"client".into()));
    assert_eq!(weir.access().len(), 1, "for {sent} frames: {:?}", weir.access());
    let log = weir.log()[before..].to_owned();
    assert!(!log.contains("PING"), "{log}");
    assert_eq!(http::get(weir.front(), "/").unwrap().status, 200, "others are served");
}

#[test]
fn the_time_of_a_slow_head_counts_from_its_first_byte() {
    let Some(scene) = Scene::new("logs-slow", &[]) else {
        return;
    };
    let service = scene.one_service("", &[scene.address(11, 8080)]);
    let listener = "name = \"public\"\ntimeouts = { head = \"700ms\" }";
    let weir = Weir::start(&scene, &service.replace("name = \"public\"", listener));
    let mut slow = http::Connection::open(weir.front()).unwrap();
    slow.send(b"GET / HTTP/1.1\r\nHos").unwrap();
    assert_eq!(slow.response(false).unwrap().status, 408);
    let mut bad = http::Connection::open(weir.front()).unwrap();
    bad.send(b"GET / HTTP/1.1\r\nno colon\r\n\r\n").unwrap();
    assert_eq!(bad.response(false).unwrap().status, 400);
    let line = |cause: &str| {
        wait::until("the access line", SOON, || {
            weir.access().into_iter().find(|line| line["cause"] == cause)
        })
    };
    let total_ms = |cause: &str| line(cause)["total_ms"].as_f64().unwrap();
    let slow = total_ms("http_request_timeout");
    assert!((700.0..30_000.0).contains(&slow), "{slow} ms");
    // Others are answered at once, and say so.
    let bad = total_ms("http_request_error");
    assert!(bad < 700.0, "{bad} ms");
}
