//! `weir bundle`: saves the recent past of a running balancer in one file.

pub(super) mod gather;
mod secrets;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diagnose::words::{bytes, thousands};
use flate2::Compression;
use flate2::write::GzEncoder;
use model::units::show_duration;
use observe::TimestampCache;
use serde_json::Value;

use super::doctor::facts;
use crate::api_client::Client;
use crate::flags::{BundleArgs, Exit, FactsArgs};
use crate::incident::Bundle;

/// How long the host is observed for facts.
const FACTS: Duration = Duration::from_secs(3);

/// The file name that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// The default of `--output`: the words in capitals are replaced.
const DEFAULT: &str = "weir-bundle-HOST-TIME.json.gz";

pub(crate) fn run(args: &BundleArgs) -> Exit {
    let client = match Client::new(&args.admin) {
        Ok(client) => client,
        Err(error) => return error.tell(),
    };
    let mut bundle = match gather::gather(&client, args.last) {
        Ok(bundle) => bundle,
        Err(error) => return error.tell(),
    };
    if !args.no_facts {
        match host_facts() {
            Ok(facts) => bundle.facts = facts,
            Err(why) => _ = bundle.failed.insert("facts".to_owned(), why),
        }
    }
    let path = path_of(&args.output, &bundle);
    match write(&bundle, &path) {
        Ok(size) => {
            report(&bundle, &path, size);
            Exit::Done
        }
        Err(error) => {
            eprintln!("weir: {}: {error}", path.display());
            Exit::Failed
        }
    }
}

fn host_facts() -> Result<Value, String> {
    let args = FactsArgs { time: FACTS, netns: "all".to_owned(), from: None, json: false };
    let facts = facts::get(&args, facts::Settings::All).map_err(|missing| missing.to_string())?;
    serde_json::to_value(facts).map_err(|error| error.to_string())
}

/// Returns the file to write: by default named after host and time.
fn path_of(output: &Path, bundle: &Bundle) -> PathBuf {
    if output != Path::new(DEFAULT) {
        return output.to_owned();
    }
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '-' | '.' | '_');
    let host: String = bundle.host.chars().filter(is_plain).collect();
    let time = TimestampCache::default().at(Duration::from_millis(bundle.at_unix_ms)).to_string();
    let time: String = time.chars().take(19).filter(|char| !matches!(char, '-' | ':')).collect();
    format!("weir-bundle-{host}-{time}Z.json.gz").into()
}

/// Writes it, readable for its owner only, since it names clients. Returns its size.
fn write(bundle: &Bundle, path: &Path) -> io::Result<u64> {
    let mut text = serde_json::to_vec(bundle)?;
    text.push(b'\n');
    if path == Path::new(STANDARD_OUTPUT) {
        io::stdout().lock().write_all(&text)?;
        return Ok(text.len() as u64);
    }
    let is_plain = path.extension().is_some_and(|extension| extension == "json");
    if !is_plain {
        let mut compressed = GzEncoder::new(Vec::new(), Compression::default());
        compressed.write_all(&text)?;
        text = compressed.finish()?;
    }
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        // A pipe or a device.
        OpenOptions::new().write(true).open(path)?.write_all(&text)?;
        return Ok(text.len() as u64);
    }
    // Under another name first: a file that exists may be readable for others, or a link to another one.
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(part)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| std::fs::rename(part, path));
    if written.is_err() {
        // What could not be written is of no use.
        let _ = std::fs::remove_file(part);
    }
    written?;
    Ok(text.len() as u64)
}

/// Says on standard error what was written, what is missing, and what can be done with it.
fn report(bundle: &Bundle, path: &Path, size: u64) {
    for (path, why) in &bundle.failed {
        eprintln!("weir: not in the bundle: {path}: {why}");
    }
    if path == Path::new(STANDARD_OUTPUT) {
        return;
    }
    let span = Duration::from_millis(bundle.at_unix_ms.saturating_sub(bundle.from_unix_ms));
    let series = bundle.history.iter().map(|answer| answer.series.len() as u64).sum();
    eprintln!(
        "{}: the last {} of {}, {} series, {}",
        path.display(),
        show_duration(Duration::from_secs(span.as_secs())),
        bundle.host,
        thousands(series),
        bytes(size),
    );
    if io::stderr().is_terminal() {
        eprintln!("read it with `weir explain {}`, or open it in a dashboard", path.display());
    }
}
