//! Resource limits of this process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files (`RLIMIT_NOFILE`) to at least `wanted`, as far as the system
/// permits: also the hard limit if this process may (root, `CAP_SYS_RESOURCE`). Never lowers it.
/// Returns the soft and the hard limit now in force; the caller compares the soft one with what it
/// wanted. `u64::MAX` means no limit.
///
/// # Errors
/// When the kernel refuses the soft limit up to the hard one, as a security module may.
pub fn raise_nofile(wanted: u64) -> io::Result<(u64, u64)> {
    let (soft, hard) = nofile();
    if soft >= wanted {
        return Ok((soft, hard));
    }
    if wanted > hard {
        // Refused without the privilege, and above fs.nr_open for any process: then the hard limit
        // is the maximum.
        let raised = Rlimit { current: Some(wanted), maximum: Some(wanted) };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            return Ok(nofile());
        }
    }
    setrlimit(
        Resource::Nofile,
        Rlimit { current: Some(wanted.min(hard)), maximum: (hard != u64::MAX).then_some(hard) },
    )?;
    Ok(nofile())
}

/// Returns the soft and the hard limit of open files; `u64::MAX` is no limit.
pub fn nofile() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Returns the memory page size in bytes.
pub fn page_size_bytes() -> usize {
    rustix::param::page_size()
}

/// Returns whether an error means that this process or machine is out of descriptors or memory, so
/// that retrying at once would spin.
pub fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_raises_up_to_what_is_possible_and_never_lowers() {
        let (soft, hard) = nofile();
        assert_eq!(raise_nofile(1).unwrap(), (soft, hard));
        let (raised, _) = raise_nofile(hard).unwrap();
        assert_eq!(raised, hard);
        let (most, _) = raise_nofile(u64::MAX - 1).unwrap();
        assert!(most >= raised);
    }
}
