//! Names and places of threads.

use std::ffi::CString;
use std::io;
use std::num::NonZeroU64;

use rustix::thread::CpuSet;

/// Names the calling thread, as `top -H` and `/proc` show it: the first 15 bytes of `name`.
pub fn name(name: &str) -> io::Result<()> {
    let shown: Vec<u8> = name.bytes().take_while(|&b| b != 0).take(15).collect();
    Ok(rustix::thread::set_name(&CString::new(shown)?)?)
}

/// Keeps the calling thread on one processor, a number out of [`crate::cpu::allowed`].
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut mask = CpuSet::new();
    mask.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &mask)?)
}

/// Has the kernel wake the calling thread when its waits end, and not up to 50 µs later, which is
/// what it allows itself otherwise (`PR_SET_TIMERSLACK`, proc(5)).
pub fn wake_precisely() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_takes_its_name_and_its_place() {
        let last = crate::cpu::allowed().pop().unwrap();
        let thread = std::thread::spawn(move || {
            name("weir-worker-number-12").unwrap();
            pin(last).unwrap();
            let named = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
            (named, crate::cpu::allowed())
        });
        let (named, allowed) = thread.join().unwrap();
        assert_eq!(named, "weir-worker-num\n");
        assert_eq!(allowed, [last]);
        assert!(pin(usize::MAX).is_err());
    }
}
