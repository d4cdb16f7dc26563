//! What Weir writes: where the access log may go.

use std::path::{Path, PathBuf};
use std::time::Duration;

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
    assert!(finished.stderr.contains("nobody reads"), "{finished:?}");

    let mut weir = Weir::start(&scene, &config(&scene, &app, &scene.folder().join("log")));
    scene.file("weir.toml", &with_pipe);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("nobody reads"), "{}", answer.text());
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
    weir.wait_for_log_from(from, &["nobody reads"], SOON);
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
