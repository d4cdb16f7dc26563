//! Programs on hosts: finding, starting and stopping them. Their output goes to files.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use os::process::{Ask, signal};

use crate::stop::Stop;

/// How long a program has to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// The length of a program's last output in messages.
const LAST_WORDS_BYTES: usize = 600;

/// A running program.
#[derive(Debug)]
pub(super) struct Running {
    /// Its name, with its host's behind it if it runs on several.
    pub(super) name: String,
    /// The name in the incident's file.
    pub(super) of: String,
    pub(super) child: Child,
    output: PathBuf,
    errors: PathBuf,
    pub(super) is_stopped: bool,
}

impl Running {
    /// Starts a command; what it writes goes to `NAME.out` and `NAME.err` in the folder.
    pub(super) fn start(
        mut command: Command,
        name: &str,
        of: &str,
        folder: &Path,
    ) -> Result<Running, String> {
        let (output, errors) =
            (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let file = |path: &Path| {
            File::create(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        command.stdin(Stdio::null()).stdout(file(&output)?).stderr(file(&errors)?);
        // Their own output is read by programs, and they belong to no service manager.
        command.env("NO_COLOR", "1").env_remove("NOTIFY_SOCKET");
        // A terminal's Ctrl-C is for this program and for what it shares the terminal with.
        command.process_group(0);
        let child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (name, of) = (name.to_owned(), of.to_owned());
        Ok(Running { name, of, child, output, errors, is_stopped: false })
    }

    /// Its exit code, if it has ended; -1 for a signal.
    pub(super) fn ended(&mut self) -> Option<i32> {
        let status = self.child.try_wait().ok()??;
        Some(status.code().unwrap_or(-1))
    }

    /// Its standard output.
    pub(super) fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// The end of its standard error, or if that is empty, of its standard output.
    pub(super) fn last_words(&self) -> String {
        let errors = std::fs::read(&self.errors).unwrap_or_default();
        let text = if errors.is_empty() {
            self.said()
        } else {
            String::from_utf8_lossy(&errors).into_owned()
        };
        let from = text.floor_char_boundary(text.len().saturating_sub(LAST_WORDS_BYTES));
        text[from..].trim().to_owned()
    }

    /// Sends a signal, unless it has ended.
    pub(super) fn ask(&mut self, ask: Ask) {
        if self.ended().is_none() {
            let _ = signal(self.child.id(), ask);
        }
    }

    /// SIGTERM, and after a time SIGKILL.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.ask(Ask::GoOn);
        self.ask(Ask::Terminate);
        if Stop::never().until(GRACE, || self.ended()).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where a program is: in PATH, in the folders of the system's programs, among what
/// scripts/install-test-peers has built beside this one, or in the user's cache, where scripts that build for
/// minutes install a program as `weir-peers/NAME-VERSION/NAME`.
pub fn find(name: &str, weir: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].map(PathBuf::from);
    let beside = weir.ancestors().map(|folder| folder.join("peers/bin"));
    let here = std::env::current_dir().ok().map(|folder| folder.join("target/peers/bin"));
    let folders = system.into_iter().chain(std::env::split_paths(&path)).chain(beside).chain(here);
    folders
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .or_else(|| cached(name, &cache()?))
}

/// The user's cache.
fn cache() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)
}

/// A program in the user's cache; of several versions, the last by name.
fn cached(name: &str, cache: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(cache.join("weir-peers")).ok()?;
    versions
        .flatten()
        .filter(|entry| {
            let folder = entry.file_name().to_string_lossy().into_owned();
            folder.strip_prefix(name).is_some_and(|version| version.starts_with("-v"))
        })
        .map(|entry| entry.path().join(name))
        .filter(|program| program.is_file())
        .max()
}

#[cfg(test)]
mod tests {
    use super::cached;

    #[test]
    fn a_cached_program_is_found_by_its_name_in_the_folder_of_its_version() {
        let cache = std::env::temp_dir().join(format!("weir-lab-cache-{}", std::process::id()));
        for path in ["a-v1.2/a", "a-v1.3/a", "a-v1.4/other", "a-b-v9/a"] {
            let path = cache.join("weir-peers").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(cached("a", &cache), Some(cache.join("weir-peers/a-v1.3/a")));
        assert_eq!(cached("c", &cache), None);
        assert_eq!(cached("a", &cache.join("none")), None);
        std::fs::remove_dir_all(cache).unwrap();
    }
}
