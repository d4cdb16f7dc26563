//! Reading a small file, with an error that names it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use diagnose::facts::Known;

/// Larger than any file of /proc and /sys that is read here, on a machine of a thousand processors.
const FILE_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The whole of a file, or why not, with its path.
pub(crate) fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    let failed = |error: std::io::Error| format!("{}: {}", path.display(), reason(&error));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What `parse` makes of a file, or why there is nothing.
pub(crate) fn known<T>(path: impl AsRef<Path>, parse: impl FnOnce(&str) -> Option<T>) -> Known<T> {
    let path = path.as_ref();
    match read(path) {
        Ok(text) => match parse(&text) {
            Some(fact) => Known::Is(fact),
            None => Known::unknown(format!("{}: not in a form that is known", path.display())),
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
        let odd = number("/proc/sys/kernel/ostype");
        assert!(odd.as_result().unwrap_err().ends_with("not in a form that is known"));
        assert!(number("/proc/sys/kernel/pid_max").get().is_some_and(|&max| max > 100));
    }
}
