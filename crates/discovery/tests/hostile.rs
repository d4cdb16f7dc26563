//! Answers that are broken, huge, or made to exhaust memory: an error or refused rows, never a panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::fmt::Write as _;
use std::path::Path;

use discovery::consul::{self, Reading};
use discovery::etcd::{self, Keys};
use discovery::nomad;
use discovery::prometheus::{Options, json, yaml};
use discovery::rows;
use discovery::{Answer, REFUSED_MAX, ROWS_MAX};
use model::{ListedLimits, RouteTagFormat};

/// The name of a source's entry, with a character that must not be shown.
const OBJECT: &str = "o\n";
const PORT_8080: Options = Options { port: Some(8080) };

/// Reads the bytes in every way, and checks the bounds of what is returned.
fn read_all(bytes: &[u8]) {
    for options in [Options::default(), PORT_8080] {
        check(yaml(bytes, &OBJECT.repeat(1_000), &options));
    }
    read_all_but_yaml(bytes);
}

/// As [`read_all`]. YAML takes most of its time, and JSON is YAML, too.
fn read_all_but_yaml(bytes: &[u8]) {
    let object = OBJECT.repeat(1_000);
    for options in [Options::default(), PORT_8080] {
        check(json(bytes, &object, &options));
    }
    check(read(bytes, ListedLimits::Each));
    check(read(bytes, ListedLimits::Added));
    let of_nomad = nomad::Reading { limits: ListedLimits::Added, port: None, tag: None };
    check(nomad::registrations(bytes, &of_nomad));
    check(rows::toml(bytes, &object, None));
    check(keys(bytes).map(|keys| keys.answer()));
    check(watched(bytes).map(|keys| keys.answer()));
    // No host is allowed, so nothing is published, whatever the tags are.
    let published = consul::tags::published(bytes, RouteTagFormat::ALL, &[], &[]);
    assert!(published.as_ref().map_or(0, |published| published.routes.len()) == 0);
    check(published.map(|published| {
        let refused = published.refused;
        Answer { rows: Vec::new(), refused: refused.examples, refused_count: refused.count }
    }));
    let (why, _) = etcd::refusal(500, bytes, str::to_owned);
    check(Err(why));
}

fn check(answer: Result<Answer, String>) {
    let is_line = |text: &str| text.len() <= 512 && !text.contains(char::is_control);
    match answer {
        Ok(answer) => {
            assert!(answer.rows.len() <= ROWS_MAX && answer.refused.len() <= REFUSED_MAX);
            assert!(answer.refused.len() as u64 <= answer.refused_count);
            assert!(answer.rows.iter().all(|row| row.object.len() <= 256 && is_line(&row.object)));
            for refused in &answer.refused {
                assert!(is_line(&refused.object) && is_line(&refused.why), "{refused:?}");
            }
        }
        Err(why) => assert!(is_line(&why) && !why.is_empty(), "{why}"),
    }
}

/// Reads bytes in several ways.
type Read = fn(&[u8]);

/// Returns the answers in the cases, each with how it is read.
fn cases() -> Vec<(Read, Vec<u8>)> {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut all = Vec::new();
    for folder in ["consul", "etcd", "nomad", "prometheus", "rows"] {
        let read: Read = if folder == "prometheus" { read_all } else { read_all_but_yaml };
        let entries = std::fs::read_dir(cases.join(folder)).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension != "expected"))
            .collect();
        files.sort();
        all.extend(files.iter().map(|file| (read, std::fs::read(file).unwrap())));
    }
    all
}

#[test]
fn every_prefix_of_an_answer_is_read_or_refused() {
    for (read, bytes) in cases() {
        for end in 0..=bytes.len() {
            read(&bytes[..end]);
        }
    }
}

#[test]
fn changed_bytes_are_read_or_refused() {
    let marks = b"[]{}\"\\:,-&*!?|>%@`'#\n\t \0\xff09";
    let mut random = fastrand::Rng::with_seed(0x5eed);
    for (read, bytes) in cases().into_iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            for _ in 0..random.usize(1..=4) {
                let at = random.usize(..bytes.len());
                match random.u8(..4) {
                    0 => bytes[at] ^= 1 << random.u8(..8),
                    1 => bytes[at] = marks[random.usize(..marks.len())],
                    2 => bytes.insert(at, marks[random.usize(..marks.len())]),
                    _ if bytes.len() > 1 => drop(bytes.remove(at)),
                    _ => {}
                }
            }
            read(&bytes);
        }
    }
}

#[test]
fn nesting_is_bounded() {
    const DEPTH: usize = 100_000;
    for opening in [
        "[",
        "{\"a\":",
        "- ",
        "? ",
        "[{\"targets\":",
        "{a: ",
        "!a ",
        "&a ",
        "a.",
        "[a.",
        "[[a.",
        "a = {a.",
    ] {
        read_all(opening.repeat(DEPTH).as_bytes());
    }
    for before in [
        "- targets: ",
        "- labels: ",
        "[{\"targets\": ",
        "[{\"Node\": ",
        "[{\"Tags\": ",
        "server = ",
        "server = [{a = ",
        "[[server]]\na = ",
        "{\"kvs\": ",
        "{\"result\": {\"events\": ",
        "{\"result\": {\"ignored\": ",
        "[{\"Node\": {\"Node\": \"n\", \"Address\": \"10.0.0.1\", \"Ignored\": ",
    ] {
        read_all(format!("{before}{}", "[".repeat(DEPTH)).as_bytes());
        read_all(format!("{before}{}", "{\"a\":".repeat(DEPTH)).as_bytes());
    }
}

#[test]
fn aliases_do_not_multiply() {
    let refused = |text: &str| {
        let why = yaml(text.as_bytes(), "a.yml", &Options::default()).unwrap_err();
        assert!(why.len() <= 512, "{why}");
    };
    // A list of lists of lists: not even of the format.
    let mut laughs = "- &a0 {targets: [a:1]}\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(",");
        let _ = writeln!(laughs, "- &a{level} [{aliases}]");
    }
    refused(&laughs);
    // Many targets, in many groups.
    let wide = "a:1,".repeat(10_000);
    refused(&format!("- targets: &a [{wide}]\n{}", "- targets: *a\n".repeat(10_000)));
    // A long target, many times.
    let long = "x".repeat(500_000);
    refused(&format!("- targets:\n  - &a {long}\n{}", "  - *a\n".repeat(50_000)));
    // Long labels in many groups.
    let groups = "- targets: [a:1]\n  labels: *l\n".repeat(10_000);
    refused(&format!("- targets: [a:1]\n  labels: &l {{zone: {long}}}\n{groups}"));
    // Merge keys.
    let merged = "- {<<: *a}\n".repeat(20_000);
    refused(&format!("- &a {{targets: [{wide}]}}\n{merged}"));
}

#[test]
fn labels_shared_by_thousands_of_groups_are_no_attack() {
    let mut text = "- targets: [a:1]\n  labels: &l {zone: z}\n".to_owned();
    for at in 0..10_000 {
        let _ = writeln!(text, "- targets: [\"10.0.{}.{}:80\"]\n  labels: *l", at / 250, at % 250);
    }
    let answer = yaml(text.as_bytes(), "a.yml", &Options::default()).unwrap();
    assert_eq!((answer.rows.len(), answer.refused_count), (10_001, 0));
    assert!(answer.rows.iter().all(|row| row.server.zone.as_deref() == Some("z")));
}

#[test]
fn an_answer_with_too_many_servers_is_refused_as_a_whole() {
    let targets = |count: usize| {
        let target = |at: usize| format!("\"10.{}.{}.1:80\"", at / 256, at % 256);
        let targets: Vec<_> = (0..count).map(target).collect();
        format!("[{{\"targets\": [{}]}}]", targets.join(","))
    };
    let instances = |count: usize| {
        let instance = |at: usize| {
            format!(
                "{{\"Node\": {{\"Node\": \"n\", \"Address\": \"10.{}.{}.1\"}}, \"Service\": {{\"ID\": \"{at}\", \"Port\": 80}}}}",
                at / 256,
                at % 256
            )
        };
        format!("[{}]", (0..count).map(instance).collect::<Vec<_>>().join(","))
    };
    let registrations = |count: usize| {
        let one = |at: usize| {
            let (high, low) = (at / 256, at % 256);
            format!("{{\"ID\": \"{at}\", \"Address\": \"10.{high}.{low}.1\", \"Port\": 80}}")
        };
        let text = format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","));
        let reading = nomad::Reading { limits: ListedLimits::Each, port: None, tag: None };
        nomad::registrations(text.as_bytes(), &reading)
    };
    let in_toml = |count: usize| {
        let one =
            |at: usize| format!("[[server]]\naddress = \"10.{}.{}.1:80\"\n", at / 256, at % 256);
        rows::toml((0..count).map(one).collect::<String>().as_bytes(), "a.toml", None)
    };
    let options = Options::default();
    for (most, more) in [
        (registrations(ROWS_MAX), registrations(ROWS_MAX + 1)),
        (in_toml(ROWS_MAX), in_toml(ROWS_MAX + 1)),
        (
            json(targets(ROWS_MAX).as_bytes(), "a", &options),
            json(targets(ROWS_MAX + 1).as_bytes(), "a", &options),
        ),
        (
            yaml(targets(ROWS_MAX).as_bytes(), "a", &options),
            yaml(targets(ROWS_MAX + 1).as_bytes(), "a", &options),
        ),
        (
            read(instances(ROWS_MAX).as_bytes(), ListedLimits::Each),
            read(instances(ROWS_MAX + 1).as_bytes(), ListedLimits::Added),
        ),
    ] {
        assert_eq!(most.unwrap().rows.len(), ROWS_MAX);
        assert_eq!(more.unwrap_err(), "16385 servers; a service has at most 16384");
    }
}

#[test]
fn refused_entries_are_counted_and_the_first_are_kept() {
    let targets = vec!["\"bad\""; 1_000].join(",");
    let text = format!("[{{\"targets\": [\"10.0.0.1:80\", {targets}]}}]");
    let answer = json(text.as_bytes(), "a.json", &Options::default()).unwrap();
    assert_eq!(answer.rows.len(), 1);
    assert_eq!((answer.refused.len(), answer.refused_count), (REFUSED_MAX, 1_000));
}

#[test]
fn texts_of_the_source_are_cut_and_escaped() {
    let long = "\\u001b[31m\\n\\u202e\\\"".repeat(2_000);
    for text in [
        format!("[{{\"targets\": [\"{long}\"]}}]"),
        format!("[{{\"targets\": [\"a:1\"], \"labels\": {{\"weir_zone\": \"{long}\"}}}}]"),
        format!("[{{\"{long}\": []}}]"),
        format!("[{{\"targets\": \"{long}\"}}]"),
        format!(
            "[{{\"Node\": {{\"Node\": \"{long}\", \"Address\": \"{long}\"}}, \"Service\": {{\"ID\": \"{long}\", \"Port\": 80}}}}]"
        ),
        format!(
            "[{{\"Node\": {{\"Node\": \"{long}\", \"Address\": \"a\"}}, \"Service\": {{\"ID\": \"{long}\", \"Port\": 80}}}}]"
        ),
        format!("[{{\"ID\": \"{long}\", \"Address\": \"{long}\", \"Port\": 80}}]"),
        format!("[[server]]\naddress = \"a:1\"\n\"{}\" = 1\n", long.replace("\\u001b", "\\u202e")),
        format!("[[server]]\naddress = \"{long}\"\n"),
        format!("\"{long}\" = 1\n"),
        format!("{{\"header\": {{\"revision\": \"{long}\"}}}}"),
        format!("{{\"result\": {{\"canceled\": true, \"cancel_reason\": \"{long}\"}}}}\n"),
        format!("{{\"error\": {{\"message\": \"{long}\"}}}}\n"),
        format!("{{\"error\": \"{long}\"}}"),
    ] {
        read_all(text.as_bytes());
    }
}

const OF_ETCD: etcd::Reading = etcd::Reading { limits: ListedLimits::Each, port: None };

fn keys(bytes: &[u8]) -> Result<Keys, String> {
    Keys::listed(bytes, "/web/", OF_ETCD)
}

/// Reads the bytes as messages of a watch.
fn watched(bytes: &[u8]) -> Result<Keys, String> {
    let mut keys = keys(b"{\"header\":{\"revision\":\"1\"}}").unwrap();
    let mut lines = etcd::Lines::new();
    lines.push(bytes);
    while let Some(line) = lines.next_line()? {
        if let etcd::Step::Ended(why) = keys.on_message(line)? {
            check(Err(why));
        }
    }
    Ok(keys)
}

fn read(bytes: &[u8], limits: ListedLimits) -> Result<Answer, String> {
    consul::instances(bytes, Reading { limits, port: None })
}
