//! Reads the kernel log (`/dev/kmsg`): its current contents, without waiting for more.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum length of a record with its continuation lines (`PRINTK_MESSAGE_MAX` of
/// `kernel/printk/internal.h` is 2,048).
const RECORD_BYTES: usize = 8192;

/// Maximum number of records: the log's buffer holds a few thousand.
const RECORDS_MAX: usize = 100_000;

/// Passes every record to `each`, oldest first, as the kernel writes it:
/// `priority,sequence,microseconds,flags;text`.
///
/// # Errors
/// When this process may not read it (`kernel.dmesg_restrict`, `CAP_SYSLOG`), or there is none.
pub fn each(mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut options = File::options();
    let mut log = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
    let mut record = [0; RECORD_BYTES];
    for _ in 0..RECORDS_MAX {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => each(&String::from_utf8_lossy(record.get(..length).unwrap_or_default())),
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN) => break,
                // EPIPE: records were overwritten meanwhile; the next read continues after them.
                Some(libc::EPIPE | libc::EINTR) => {}
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_described_or_refused_for_a_reason() {
        let mut first = None;
        match each(|record| first = first.take().or_else(|| Some(record.to_owned()))) {
            Ok(()) => {
                let head = first.unwrap_or_default();
                assert!(head.is_empty() || head.contains(';'), "{head}");
            }
            Err(error) => {
                let kinds = [io::ErrorKind::PermissionDenied, io::ErrorKind::NotFound];
                assert!(kinds.contains(&error.kind()), "{error}");
            }
        }
    }
}
