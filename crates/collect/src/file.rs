//! Reads a small file; errors name it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use diagnose::facts::Known;
use os::folder::Folder;

/// Larger than any file of /proc and /sys that is read here, on a machine of a thousand processors.
const FILE_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Most files fit, so that one read gets all of it and a second one finds its end.
const FIRST_BYTES: usize = 8192;

/// The whole of a file, or why not, with its path.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    whole(File::open(path)).map_err(|error| format!("{}: {}", path.display(), reason(&error)))
}

/// A folder of which several files are read, so that its path is walked once.
#[derive(Debug)]
pub(crate) struct Files {
    folder: std::io::Result<Folder>,
    path: &'static str,
}

impl Files {
    pub(crate) fn of(path: &'static str) -> Files {
        Files { folder: Folder::open(path), path }
    }

    /// As [`read`], of the file `name` in it.
    pub(crate) fn read(&self, name: &str) -> Result<String, String> {
        let why = |error: &std::io::Error| format!("{}/{name}: {}", self.path, reason(error));
        let folder = self.folder.as_ref().map_err(why)?;
        whole(folder.file(name)).map_err(|error| why(&error))
    }

    /// As [`known`], of the file `name` in it.
    pub(crate) fn known<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Known<T> {
        parsed(self.read(name), parse, || format!("{}/{name}", self.path))
    }

    /// As [`number`], of the file `name` in it.
    pub(crate) fn number(&self, name: &str) -> Known<u64> {
        self.known(name, |text| text.trim().parse().ok())
    }
}

fn whole(file: std::io::Result<File>) -> std::io::Result<String> {
    let mut bytes = Vec::with_capacity(FIRST_BYTES);
    file?.take(FILE_MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// What `parse` makes of a file, or why there is nothing.
pub(crate) fn known<T>(path: impl AsRef<Path>, parse: impl FnOnce(&str) -> Option<T>) -> Known<T> {
    let path = path.as_ref();
    parsed(read(path), parse, || path.display().to_string())
}

fn parsed<T>(
    text: Result<String, String>,
    parse: impl FnOnce(&str) -> Option<T>,
    path: impl FnOnce() -> String,
) -> Known<T> {
    match text {
        Ok(text) => match parse(&text) {
            Some(fact) => Known::Is(fact),
            None => Known::unknown(format!("{}: not in a form that is known", path())),
        },
        Err(why) => Known::Unknown(why),
    }
}

/// A file that holds one number.
pub(crate) fn number(path: impl AsRef<Path>) -> Known<u64> {
    known(path, |text| text.trim().parse().ok())
}

/// An error for people: without the operating system's number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text.get(..at).unwrap_or_default().to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_path() {
        let missing: Known<u64> = number("/proc/sys/net/none");
        let why = "/proc/sys/net/none: No such file or directory";
        assert_eq!(missing.as_result(), Err(why));
        assert_eq!(Files::of("/proc/sys/net").number("none"), missing);
        let nowhere = Files::of("/proc/sys/net/none").number("none");
        assert!(nowhere.as_result().is_err_and(|why| why.starts_with("/proc/sys/net/none/none: ")));
        let odd = number("/proc/sys/kernel/ostype");
        assert!(odd.as_result().unwrap_err().ends_with("ostype: not in a form that is known"));
        assert_eq!(Files::of("/proc/sys/kernel").number("ostype"), odd);
        assert!(number("/proc/sys/kernel/pid_max").get().is_some_and(|&max| max > 100));
    }
}
