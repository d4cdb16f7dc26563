//! Files that list servers: rows in TOML, or the format of Prometheus's file-based service discovery. Read again
//! when one of them, or the list of their names, changes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use discovery::{Answer, prometheus, rows};
use os::plain_file;

use super::report::Sink;
use crate::load::seen::{self, Seen};

/// How often the files' metadata are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The files are read again after this many looks, so that a change that leaves their metadata equal is found.
const LOOKS_MAX: u32 = 60;
/// Maximum size of a file: some 10,000 targets.
const FILE_MAX_BYTES: u64 = 1 << 20;
/// Maximum number of files.
const FILES_MAX: usize = 1_000;

/// Reads the servers of one file from its content and its name. The port replaces that of each server.
pub(super) type Parse = fn(&[u8], &str, Option<u16>) -> Result<Answer, String>;

/// Reads Prometheus's format: YAML if the name says so, otherwise JSON.
pub(super) fn prometheus(bytes: &[u8], name: &str, port: Option<u16>) -> Result<Answer, String> {
    let is_yaml = [".yml", ".yaml"].iter().any(|ending| name.ends_with(ending));
    let parse = if is_yaml { prometheus::yaml } else { prometheus::json };
    parse(bytes, name, &prometheus::Options { port })
}

/// Reads rows in TOML.
pub(super) fn rows(bytes: &[u8], name: &str, port: Option<u16>) -> Result<Answer, String> {
    rows::toml(bytes, name, port)
}

/// Reports the servers in all files in `folder` whose names match, now and when they change.
pub(super) async fn watch(
    folder: PathBuf,
    names: Box<str>,
    parse: Parse,
    port: Option<u16>,
    sink: Sink,
) {
    let mut before = None;
    let mut looks = 0;
    loop {
        let (folder, names) = (folder.clone(), names.clone());
        looks = (looks + 1) % LOOKS_MAX;
        let last = before.take().filter(|_| looks > 0);
        let looked = tokio::task::spawn_blocking(move || {
            let (stamps, files) = look(&folder, &names);
            if last.as_ref() == Some(&stamps) {
                return (stamps, None);
            }
            let read = files.and_then(|files| read(&folder, &files, parse, port));
            (stamps, Some(read))
        });
        let (stamps, read) = match looked.await {
            Ok((stamps, read)) => (Some(stamps), read),
            Err(_) => (None, Some(Err("the files could not be read: a bug".to_owned()))),
        };
        if let Some(read) = read {
            sink.send(os::clock::now(), read.map(|answer| (answer, None))).await;
        }
        before = stamps;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the stamps of the folder and its files, taken before they are read, and the files' names.
fn look(folder: &Path, pattern: &str) -> (Vec<Seen>, Result<Vec<OsString>, String>) {
    let names = seen::names(folder, pattern);
    let mut stamps = vec![Seen::of_names(folder, pattern, names.as_deref().ok())];
    let names = match names {
        Ok(names) => names,
        Err(error) => return (stamps, Err(format!("{}: {error}", folder.display()))),
    };
    if names.len() > FILES_MAX {
        let why = format!("{} has more than {FILES_MAX} such files", folder.display());
        return (stamps, Err(why));
    }
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        stamps.push(Seen::now(&folder.join(&name)));
        files.push(name);
    }
    files.sort_unstable();
    (stamps, Ok(files))
}

/// Returns the servers in all files. One that cannot be read, or is not of the format, makes the whole
/// answer unusable: its servers would seem to be gone.
fn read(
    folder: &Path,
    files: &[OsString],
    parse: Parse,
    port: Option<u16>,
) -> Result<Answer, String> {
    let mut all = Answer::default();
    if files.is_empty() {
        return Err(format!("no such file in {}", folder.display()));
    }
    for name in files {
        let path = folder.join(name);
        let shown = path.display();
        let (bytes, _) =
            plain_file::read(&path, FILE_MAX_BYTES).map_err(|error| format!("{shown}: {error}"))?;
        if bytes.len() as u64 > FILE_MAX_BYTES {
            return Err(format!("{shown}: more than {FILE_MAX_BYTES} bytes"));
        }
        let name = name.to_string_lossy();
        let answer = parse(&bytes, &name, port).map_err(|error| format!("{shown}: {error}"))?;
        all.add(answer)?;
    }
    Ok(all)
}
