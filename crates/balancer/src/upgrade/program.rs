//! Finds the program of a new process: the one at this process's path, with the same arguments.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    words: Vec<OsString>,
}

impl Program {
    /// Returns how this process was started. Call it at startup: later another version may be
    /// installed at that path, which is then the one to start.
    pub fn this() -> Program {
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_default();
        let found = find(&name, std::env::var_os("PATH").as_deref());
        let path = found.or_else(|| std::env::current_exe().ok()).unwrap_or_else(|| name.into());
        Program { path, words: words.collect() }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.words);
        command
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

/// Returns where a shell would have found `name`. Symbolic links are kept, so that a link that is
/// changed to another version is followed.
fn find(name: &OsStr, search: Option<&OsStr>) -> Option<PathBuf> {
    if name.is_empty() {
        return None;
    }
    if name.as_bytes().contains(&b'/') {
        return std::path::absolute(name).ok();
    }
    let folders = std::env::split_paths(search?).map(|folder| folder.join(name));
    let is_program = |path: &PathBuf| Path::is_file(path);
    folders.filter(|path| path.is_absolute()).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_a_shell_finds_it() {
        let search = Some(OsStr::new("relative:/nonexistent:/usr/bin:/bin"));
        assert_eq!(find(OsStr::new("sh"), search), Some(PathBuf::from("/usr/bin/sh")));
        assert_eq!(find(OsStr::new("/opt/weir"), search), Some(PathBuf::from("/opt/weir")));
        assert!(find(OsStr::new("./weir"), search).unwrap().is_absolute());
        assert_eq!(find(OsStr::new("no such program"), search), None);
        assert_eq!(find(OsStr::new(""), search), None);
    }

    #[test]
    fn this_one_is_there() {
        let program = Program::this();
        assert!(program.path.is_file(), "{program}");
    }
}
