//! The state file of a run, and the removal of what killed runs have left: everything that a run creates
//! can be found by its name.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::batch;
use crate::stop::Stop;

/// How namespaces of the lab begin.
pub(super) const NAMESPACES: &str = "weir-lab-";
/// Where runs say that they are there.
const STATES: &str = "/run/weir-lab";
/// How long processes have to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);

/// The state of a run, in /run/weir-lab/RUN.json until it ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The run's process, whose number is the run's name.
    pub pid: u32,
    /// The incident.
    pub incident: String,
    /// Its files.
    pub folder: PathBuf,
}

/// A run's state file, gone when this is dropped.
#[derive(Debug)]
pub struct Claim {
    file: PathBuf,
    folder: PathBuf,
    keeps_folder: bool,
}

impl Claim {
    /// Says that this process runs an incident, and makes a folder for its files.
    ///
    /// # Errors
    /// What could not be written, and what to do.
    pub fn new(incident: &str) -> Result<Claim, String> {
        let pid = std::process::id();
        let folder = std::env::temp_dir().join(format!("weir-lab-{pid}"));
        let described = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                format!("{STATES}: {error}; the lab needs root, since it makes networks")
            }
            _ => format!("{STATES}: {error}"),
        };
        std::fs::create_dir_all(STATES).map_err(described)?;
        let file = Path::new(STATES).join(format!("{pid}.json"));
        let state = State { pid, incident: incident.to_owned(), folder: folder.clone() };
        let text = serde_json::to_string(&state).map_err(|error| error.to_string())?;
        std::fs::write(&file, text).map_err(described)?;
        // One of that number is a dead process's.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(described)?;
        Ok(Claim { file, folder, keeps_folder: false })
    }

    /// Where the run's files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves the run's files where they are.
    pub fn keep_folder(&mut self) {
        self.keeps_folder = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Whatever stays is removed by `weir lab clean`.
        if !self.keeps_folder {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
        let _ = std::fs::remove_file(&self.file);
    }
}

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Namespaces, by name.
    pub namespaces: Vec<String>,
    /// Folders and state files.
    pub files: Vec<PathBuf>,
    /// Runs that are still going on, by their process.
    pub left: Vec<u32>,
}

/// Removes what runs have left behind whose process has gone; those that go on are left alone.
///
/// # Errors
/// What could not be removed, and why.
pub fn clean() -> Result<Removed, String> {
    let mut removed = Removed::default();
    for namespace in names_in(Path::new("/run/netns")) {
        let Some(pid) = run_of(&namespace) else { continue };
        if is_running(pid) {
            continue;
        }
        remove_namespace(&namespace)?;
        removed.namespaces.push(namespace);
    }
    for name in names_in(Path::new(STATES)) {
        let file = Path::new(STATES).join(&name);
        let Some(pid) = name.strip_suffix(".json").and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        if is_running(pid) {
            removed.left.push(pid);
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let state = serde_json::from_str::<State>(&text).ok();
        // Only a folder that the lab would have made.
        let own = std::env::temp_dir().join(format!("weir-lab-{pid}"));
        if let Some(folder) = state.map(|state| state.folder).filter(|folder| *folder == own)
            && folder.exists()
        {
            std::fs::remove_dir_all(&folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            removed.files.push(folder);
        }
        std::fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        removed.files.push(file);
    }
    Ok(removed)
}

/// Ends what runs in a namespace and removes it.
pub(super) fn remove_namespace(namespace: &str) -> Result<(), String> {
    let pids = || {
        // Out of a terminal's Ctrl-C, as in batches.
        let mut command = Command::new("ip");
        let output = command.args(["netns", "pids", namespace]).process_group(0).output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()).collect::<Vec<_>>()
    };
    for pid in pids() {
        // It may have ended meanwhile.
        let _ = os::process::signal(pid, os::process::Ask::Terminate);
        let _ = os::process::signal(pid, os::process::Ask::GoOn);
    }
    let ended = || pids().is_empty().then_some(());
    if Stop::never().until(GRACE, ended).is_none() {
        for pid in pids() {
            let _ = os::process::signal(pid, os::process::Ask::Kill);
        }
    }
    batch::run(&[format!("netns del {namespace}")], None)
}

/// The process that a namespace's name tells of.
fn run_of(namespace: &str) -> Option<u32> {
    namespace.strip_prefix(NAMESPACES)?.split('-').next()?.parse().ok()
}

/// Whether a run's process is there. A number that has become another program's counts as gone.
fn is_running(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    name.contains("lab")
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::run_of;

    #[test]
    fn only_the_labs_namespaces_are_known_as_its_own() {
        assert_eq!(run_of("weir-lab-4711-node3"), Some(4711));
        for other in ["weir-4711-0-lb", "weir-lab-x-node", "lab-4711-a", "weir-lab-"] {
            assert_eq!(run_of(other), None, "{other}");
        }
    }
}
