//! A configuration of several files, with environment variables and secret files: what a reload and the
//! watch make of changes, what is shown, and files that no configuration should name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use e2e::{Finished, Scene, Weir, http, run, wait};

const SOON: Duration = Duration::from_secs(5);

fn folder(scene: &Scene, name: &str) -> PathBuf {
    let folder = scene.folder().join(name);
    fs::create_dir_all(&folder).expect("a folder in the test's folder");
    folder
}

fn answer(path: &str, body: &str) -> String {
    format!("[[route]]\npath = \"{path}\"\nrespond = {{ body = \"{body}\" }}\n")
}

fn body(weir: &Weir, path: &str) -> String {
    http::get(weir.front(), path).expect("an answer").text()
}

#[test]
fn a_reload_reads_included_files_and_names_the_one_with_a_mistake() {
    let Some(scene) = Scene::new("several-reload", &[]) else {
        return;
    };
    let top = "include = [\"conf.d/*.toml\"]\nworkers = 1\nreload = { watch = false }";
    let weir = Weir::start(&scene, &scene.config(top, &answer("/", "main")));
    assert_eq!(body(&weir, "/a"), "main");

    let conf = folder(&scene, "conf.d");
    fs::write(conf.join("a.toml"), answer("/a", "one")).unwrap();
    let reloaded = weir.ask("/api/v1/reload");
    assert_eq!(reloaded.json()["result"], "applied", "{}", reloaded.text());
    assert_eq!((body(&weir, "/a"), body(&weir, "/b")), ("one".to_owned(), "main".to_owned()));

    let mistake = format!("{}\n[[route]]\npth = \"/c\"\ndeny = 403\n", answer("/b", "two"));
    fs::write(conf.join("b.toml"), mistake).unwrap();
    let refused = weir.ask("/api/v1/reload");
    assert_eq!(refused.status, 422, "{}", refused.text());
    let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
    let place = format!("{}:6:1", conf.join("b.toml").display());
    assert!(message.contains(&place) && message.contains("pth"), "{place} in {message}");
    assert_eq!(body(&weir, "/b"), "main", "the old configuration stays");
    let file = scene.folder().join("weir.toml");
    let checked = run(&scene, &["check", &file.to_string_lossy()]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.contains(&place), "{checked:?}");
    let json = run(&scene, &["check", "--json", "--file-only", &file.to_string_lossy()]);
    let said: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let at = &said["mistakes"][0]["at"];
    assert_eq!(at["file"].as_str(), conf.join("b.toml").to_str(), "{said}");
    assert_eq!(at["line"], 6, "{said}");

    let from = weir.log().len();
    weir.hang_up();
    weir.wait_for_log_from(from, &["pth"], SOON);
    fs::write(conf.join("b.toml"), answer("/b", "two")).unwrap();
    fs::remove_file(conf.join("a.toml")).unwrap();
    assert_eq!(weir.ask("/api/v1/reload").json()["result"], "applied");
    assert_eq!((body(&weir, "/a"), body(&weir, "/b")), ("main".to_owned(), "two".to_owned()));
}

#[test]
fn included_files_that_come_change_and_go_are_noticed() {
    let Some(scene) = Scene::new("several-watch", &[]) else {
        return;
    };
    let top = "include = [\"conf.d/*.toml\"]\nworkers = 1";
    let weir = Weir::start(&scene, &scene.config(top, &answer("/", "main")));
    let becomes = |expected: &str| {
        wait::until("the change to be noticed", SOON, || {
            (body(&weir, "/a") == expected).then_some(())
        });
    };
    becomes("main");
    let conf = folder(&scene, "conf.d");
    fs::write(conf.join("a.toml"), answer("/a", "one")).unwrap();
    becomes("one");
    fs::write(conf.join("new"), answer("/a", "two, longer")).unwrap();
    fs::rename(conf.join("new"), conf.join("a.toml")).unwrap();
    becomes("two, longer");
    fs::remove_file(conf.join("a.toml")).unwrap();
    becomes("main");
    // A file that is named itself is waited for: without it, the configuration would be another.
    let by_name = top.replace("conf.d/*", "named");
    let named = scene.file("named.toml", answer("/a", "three"));
    scene.file("weir.toml", scene.config(&by_name, &answer("/", "main")));
    becomes("three");
    fs::remove_file(&named).unwrap();
    scene.file("weir.toml", scene.config(&by_name, &answer("/", "other")));
    scene.file("named.toml", answer("/a", "four"));
    becomes("four");
    let receipts = weir.api("/api/v1/reloads");
    let results: Vec<_> = receipts["reloads"].as_array().unwrap().iter().collect();
    assert!(results.iter().all(|one| one["trigger"] == "file"), "{receipts:#}");
}

#[test]
fn a_secret_from_a_file_is_used_and_not_shown() {
    let Some(scene) = Scene::new("several-secrets", &[]) else {
        return;
    };
    const SECRET: &str = "hunter2-hunter2";
    scene.file("token", format!("{SECRET}\n"));
    let top = "zone = \"${ZONE}\"\nworkers = 1\n[log]\ndecisions = 1";
    let rest = "[[route]]\nheader = { X-Key = \"${file:token}\" }\n\
         respond = { body = \"${file:token}\", headers = { X-Token = \"Bearer ${file:token}\" } }\n\
         [[route]]\nservice = \"app\"\nrequest_header = { set = { X-Token = \"${file:token}\" } }\n\
         [service.app]\ncheck = { header = { X-Token = \"${file:token}\" } }\n\
         server = [{ address = \"127.0.0.1:1\" }]\n";
    let weir = Weir::start_by(&scene, &scene.config(top, rest), &["env", "ZONE=zone-of-the-test"]);
    let with = |key: &str| {
        http::get_with(weir.front(), "/", &[&format!("X-Key: {key}")]).expect("an answer")
    };
    let answer = with(SECRET);
    assert_eq!(answer.text(), SECRET);
    assert_eq!(answer.field("x-token"), Some("Bearer hunter2-hunter2"));
    assert!(with("another").status >= 500, "its server does not exist");
    let shown = weir.api("/api/v1/configuration").to_string();
    assert!(shown.contains("(secret)") && shown.contains("zone-of-the-test"), "{shown}");

    // A message about it says where it is; the old one stays in force.
    let from = weir.log().len();
    scene.file("token", "hunter3\u{1b}[31m\nhunter3");
    weir.wait_for_log_from(from, &["reload refused"], SOON);
    assert_eq!(with(SECRET).text(), SECRET);
    let file = scene.folder().join("weir.toml").to_string_lossy().into_owned();
    let outputs = |words: &[&str]| {
        let Finished { stdout, stderr, .. } = run(&scene, words);
        format!("{stdout}{stderr}")
    };
    let mut all = shown + &outputs(&["check", &file]) + &outputs(&["check", "--json", &file]);
    scene.file("token", "hunter4-hunter4");
    wait::until("the change to be noticed", SOON, || {
        (with("hunter4-hunter4").status == 200).then_some(())
    });
    let admin = scene.admin().to_string();
    for path in ["status", "services", "configuration", "reloads", "findings"] {
        all += &weir.ask(&format!("/api/v1/{path}")).text();
    }
    all += &outputs(&["status", "--admin", &admin]);
    all += &weir.log();
    all.extend(weir.access().iter().map(ToString::to_string));
    assert!(all.contains("not shown: it may be a secret"), "{all}");
    assert!(!all.contains("hunter"), "{all}");
}

/// Each is reported at once, in one message.
#[test]
fn what_is_no_file_of_text_is_refused_as_included() {
    let Some(scene) = Scene::new("several-hostile", &[]) else {
        return;
    };
    let check = |include: &str| {
        let text = scene.config(&format!("include = [{include}]"), &answer("/", "main"));
        let file = scene.file("weir.toml", text);
        run(&scene, &["check", &file.to_string_lossy()])
    };
    let conf = folder(&scene, "conf.d");
    let bad = |name: &str| conf.join(name);
    let refused = |expected: &str| {
        let finished = check("\"conf.d/*\"");
        assert_eq!(finished.code, Some(2), "{expected}: {finished:?}");
        assert!(finished.stderr.contains(expected), "{expected}: {finished:?}");
        assert!(finished.stderr.contains("weir.toml:1:12"), "{expected}: {finished:?}");
    };
    assert!(Command::new("mkfifo").arg(bad("pipe")).status().unwrap().success());
    refused("not a file");
    fs::remove_file(bad("pipe")).unwrap();
    fs::create_dir(bad("folder")).unwrap();
    refused("not a file");
    fs::remove_dir(bad("folder")).unwrap();
    for (target, expected) in [
        ("/dev/zero", "not a file"),
        ("/dev/stdin", "not a file"),
        ("link", "symbolic links"),
        ("missing", "No such file"),
        ("../weir.toml", "the configuration file includes itself"),
    ] {
        symlink(target, bad("link")).unwrap();
        refused(expected);
        fs::remove_file(bad("link")).unwrap();
    }
    fs::write(bad("latin"), b"# one\n# caf\xe9\n").unwrap();
    refused("line 2 is not UTF-8");
    fs::remove_file(bad("latin")).unwrap();
    fs::File::create(bad("large")).unwrap().set_len(1 << 40).unwrap();
    refused("more than 16777216 bytes");
    fs::remove_file(bad("large")).unwrap();

    // Another name of a file is another file.
    fs::write(bad("a"), answer("/a", "one")).unwrap();
    symlink("a", bad("b")).unwrap();
    let twice = check("\"conf.d/*\", \"conf.d/a\"");
    assert!(twice.stderr.contains("two routes match the same requests"), "{twice:?}");
    assert!(twice.stderr.contains("conf.d/b:1:1"), "{twice:?}");
    fs::remove_file(bad("b")).unwrap();
    assert_eq!(check("\"conf.d/*\", \"conf.d/a\"").code, Some(0));

    for number in 0..10_000 {
        fs::write(bad(&format!("{number}.toml")), "").unwrap();
    }
    refused("more than 10000 entries");
    fs::remove_file(bad("a")).unwrap();
    refused("more than 1000 included files");
}
