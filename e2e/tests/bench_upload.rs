//! `weir bench upload` against a real server of S3, in clear text and over TLS.

use std::path::PathBuf;
use std::time::Duration;

use e2e::{Authority, Finished, Process, Scene, VERSITYGW, find, run, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(20);

/// A server of S3 with one bucket, which is a folder.
struct Gateway {
    _process: Process,
    bucket: PathBuf,
    url: String,
}

impl Gateway {
    fn start(scene: &Scene, host: u8, tls: Option<&Authority>) -> Gateway {
        let name = format!("s3-{host}");
        let bucket = scene.folder().join(&name).join("photos");
        std::fs::create_dir_all(&bucket).unwrap();
        let address = scene.address(host, 7070);
        let mut words = ["--access", "key", "--secret", "secret", "--quiet", "--port"]
            .map(str::to_owned)
            .to_vec();
        words.push(address.to_string());
        if let Some(authority) = tls {
            let pair = authority.issue(&name, &[&address.ip().to_string()]);
            for (flag, file) in [("--cert", &pair.chain), ("--key", &pair.key)] {
                words.extend([flag.to_owned(), file.display().to_string()]);
            }
        }
        words.extend(["posix".to_owned(), scene.folder().join(&name).display().to_string()]);
        let process = Process::start(scene, &name, &find(VERSITYGW).unwrap(), words);
        wait::until("the S3 server", SOON, || std::net::TcpStream::connect(address).ok());
        let scheme = if tls.is_some() { "https" } else { "http" };
        Gateway { _process: process, bucket, url: format!("{scheme}://{address}") }
    }

    /// Parts that were neither made an object nor removed.
    fn leftovers(&self) -> usize {
        let multipart = self.bucket.join(".sgwtmp/multipart");
        std::fs::read_dir(multipart).map_or(0, Iterator::count)
    }
}

fn upload(scene: &Scene, secret: &str, words: &[&str]) -> Finished {
    let secret = scene.file("secret", format!("{secret}\n"));
    let keys = ["bench", "upload", "--access-key", "key", "--secret-key-file"];
    let secret = secret.display().to_string();
    let words: Vec<&str> =
        keys.into_iter().chain([secret.as_str()]).chain(words.iter().copied()).collect();
    run(scene, &words)
}

/// The text that is uploaded: lines of 64 bytes, each with its offset.
fn wanted(size: usize) -> Vec<u8> {
    let line = |offset: usize| format!("{offset:014} {}\n", "weir".repeat(12));
    let mut text: Vec<u8> = (0..size).step_by(64).flat_map(|at| line(at).into_bytes()).collect();
    text.truncate(size);
    text
}

#[test]
fn the_object_is_what_was_sent_and_every_part_is_timed() {
    let Some(scene) = Scene::new("bench-upload", &[VERSITYGW]) else { return };
    let authority = Authority::new(&scene, "ca");
    let (plain, tls) =
        (Gateway::start(&scene, 11, None), Gateway::start(&scene, 12, Some(&authority)));
    let (json, csv) = (scene.folder().join("up.json"), scene.folder().join("up.csv"));
    let (json_word, csv_word) = (json.display().to_string(), csv.display().to_string());
    let (near, far) = (format!("near={}", plain.url), format!("far={}", tls.url));
    let ca = authority.pem().display().to_string();
    let ended = upload(
        &scene,
        "secret",
        &[
            "--bucket",
            "photos",
            "--size",
            "23456789B",
            "--part-size",
            "5MiB",
            "--parallel",
            "3",
            "--key",
            "a b/ü.bin",
            "--cacert",
            &ca,
            "--json",
            &json_word,
            "--csv",
            &csv_word,
            &near,
            &far,
        ],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for gateway in [&plain, &tls] {
        let object = std::fs::read(gateway.bucket.join("a b/ü.bin")).unwrap();
        assert!(object == wanted(23_456_789), "{}: the object differs", gateway.url);
        assert_eq!(gateway.leftovers(), 0);
    }
    let rows: Vec<&str> = ended.stdout.lines().map(|l| l.split("  ").next().unwrap()).collect();
    assert_eq!(rows, ["endpoint", "near", "far"], "{}", ended.stdout);

    let figures: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    for endpoint in figures["endpoints"].as_array().unwrap() {
        let parts = endpoint["parts"].as_array().unwrap();
        let bytes: Vec<u64> = parts.iter().map(|part| part["bytes"].as_u64().unwrap()).collect();
        assert_eq!(bytes, [5_242_880, 5_242_880, 5_242_880, 5_242_880, 2_485_269]);
        let real = endpoint["real_s"].as_f64().unwrap();
        for part in parts {
            let took = part["took_s"].as_f64().unwrap();
            assert!(took > 0.0 && took <= real, "{part} within {real} s");
        }
        let sum = endpoint["user_s"].as_f64().unwrap() + endpoint["system_s"].as_f64().unwrap();
        assert!((endpoint["total_s"].as_f64().unwrap() - sum).abs() < 1e-9);
    }
    let lines = std::fs::read_to_string(csv).unwrap();
    assert_eq!(lines.lines().count(), 1 + 2 * 5, "{lines}");
}

#[test]
fn what_fails_is_one_line_and_leaves_nothing_behind() {
    let Some(scene) = Scene::new("bench-upload-fails", &[VERSITYGW]) else { return };
    let gateway = Gateway::start(&scene, 11, None);
    let url = gateway.url.as_str();
    let nobody = format!("http://{}", scene.address(13, 1));
    for (secret, words, wanted) in [
        ("secret", vec!["--bucket", "none", url], "404 NoSuchBucket"),
        ("wrong", vec!["--bucket", "photos", url], "403 SignatureDoesNotMatch"),
        ("secret", vec!["--bucket", "photos", "--part-size", "1MB", url], "400 EntityTooSmall"),
        ("secret", vec!["--bucket", "photos", "--retries", "0", &nobody], "connection_refused"),
    ] {
        let mut words = words;
        words.extend(["--size", "3MB"]);
        let ended = upload(&scene, secret, &words);
        assert_eq!(ended.code, Some(1), "{words:?}: {}", ended.stderr);
        let said: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(wanted), "{said:?}");
    }
    assert_eq!(gateway.leftovers(), 0);
    // Without a key of one's own the object is removed in the end.
    let ended = upload(&scene, "secret", &["--bucket", "photos", "--size", "1MB", url]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let left = std::fs::read_dir(&gateway.bucket).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, [".sgwtmp"], "nothing else");
}
