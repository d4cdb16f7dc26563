//! Parses the files of `/proc/PID`: `stat`, `limits`, the names of its descriptors.

/// The inode in `socket:[38117]`, as a descriptor of a socket is named.
pub(crate) fn socket_inode(link: &[u8]) -> Option<u64> {
    let number = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// When a process started, in ticks since the machine did: field 22 of `stat`. Its name, in
/// parentheses, may hold anything, so fields are counted from behind it.
pub(crate) fn started_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The soft limit on open files, out of `limits`; `u64::MAX` when there is none.
pub(crate) fn open_files_max(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_ascii_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_known_by_its_inode() {
        assert_eq!(socket_inode(b"socket:[38117]"), Some(38_117));
        for other in [&b"pipe:[1]"[..], b"/dev/null", b"socket:[x]", b"socket:[1", b""] {
            assert_eq!(socket_inode(other), None);
        }
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "77 (a) R 1 (b) S 1 77 77 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 8123 0 0";
        assert_eq!(started_ticks(stat), Some(8_123));
        assert_eq!(started_ticks("77 nginx S 1"), None);
        assert_eq!(started_ticks("77 (nginx) S 1"), None);
    }

    #[test]
    fn no_limit_is_the_largest_number() {
        let limits =
            "Limit      Soft Limit   Hard Limit  Units\nMax open files    1024   4096  files\n";
        assert_eq!(open_files_max(limits), Some(1024));
        assert_eq!(open_files_max("Max open files  unlimited unlimited files"), Some(u64::MAX));
        assert_eq!(open_files_max("Max processes 1 2 x"), None);
    }
}
