//! Tutorials do what they say: their files are written and their commands run, as a reader would, in a network
//! namespace of their own.
//!
//! A block of a document with the language `toml NAME` is a file, one with `sh` is run, and one with `text` shows lines
//! of what the commands before it print, with `…` for what varies. Numbers may differ, too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use e2e::{NAMESPACES, Process, Scene, binary, find};

enum Block {
    File { name: String, text: String },
    Commands(String),
    Shown(String),
}

fn blocks(document: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("```") {
        let (language, after) = after.split_once('\n').unwrap();
        let (text, after) = after.split_once("```").unwrap();
        rest = after;
        let text = text.to_owned();
        match language.split_once(' ') {
            Some(("toml", name)) => found.push(Block::File { name: name.to_owned(), text }),
            _ if language == "sh" => found.push(Block::Commands(text)),
            _ if language == "text" => found.push(Block::Shown(text)),
            _ => {}
        }
    }
    found
}

/// Returns the lines, each with any number, and any run of spaces, as one character.
fn shape(text: &str) -> Vec<String> {
    let line = |line: &str| {
        let mut shape = String::new();
        for character in line.trim().chars() {
            let character = match character {
                '0'..='9' | '.' | ',' => '0',
                ' ' | '\t' => ' ',
                other => other,
            };
            if !(matches!(character, '0' | ' ') && shape.ends_with(character)) {
                shape.push(character);
            }
        }
        shape
    };
    text.lines().map(line).collect()
}

/// Returns whether a line consists of these parts, with anything in place of each `…`.
fn is_like(line: &str, shape: &str) -> bool {
    let mut rest = Some(line);
    let mut parts = shape.split('…').map(str::trim);
    let first = parts.next().unwrap_or_default();
    rest = rest.and_then(|rest| rest.strip_prefix(first));
    for part in parts {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, after)| after);
    }
    rest.is_some_and(|rest| rest.is_empty() || shape.ends_with('…'))
}

/// Runs a document's commands in one shell, and returns what it shows that they did not print.
fn follow(scene: &Scene, document: &str) -> Vec<String> {
    let mut script = String::from("set -eu\nip link set lo up\n");
    let mut shown: Vec<(usize, String)> = Vec::new();
    let mut count = 0;
    for block in blocks(document) {
        match block {
            Block::File { name, text } => {
                scene.file(&name, text);
            }
            Block::Commands(text) => {
                count += 1;
                let _ = writeln!(script, "echo '@@ {count}'\n{text}");
            }
            Block::Shown(text) => shown.push((count, text)),
        }
    }
    assert!(count > 0, "the document has no commands");
    let folder = scene.folder().to_string_lossy().into_owned();
    let beside = binary().parent().unwrap().to_string_lossy().into_owned();
    let script = format!("cd {folder}\nexport PATH={beside}:$PATH\n{script}");
    let file = scene.file("commands.sh", format!("exec 2>&1\n{script}"));
    let words = ["--net", "--pid", "--fork", "--kill-child", "bash", &file.to_string_lossy()]
        .map(str::to_owned);
    let finished = Process::start(scene, "commands", &find("unshare").unwrap(), words)
        .wait(Duration::from_mins(3));
    assert_eq!(finished.code, Some(0), "{}", finished.stdout);
    let printed: Vec<Vec<String>> = finished.stdout.split("@@ ").map(shape).collect();
    let mut missing = Vec::new();
    for (number, text) in shown {
        for (line, shape) in text.lines().zip(shape(&text)) {
            if !printed[number].iter().any(|line| is_like(line, &shape)) {
                missing.push(format!("{line}\nis not in what block {number} printed:"));
                missing.extend(printed[number].iter().cloned());
            }
        }
    }
    missing
}

#[test]
#[ignore = "half a minute; part of `make prove`"]
fn the_first_hour_goes_as_it_says() {
    let Some(scene) = Scene::alone("documents-first-hour", &["curl", "unshare", NAMESPACES]) else {
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/first-hour.md");
    let missing = follow(&scene, &std::fs::read_to_string(path).unwrap());
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
