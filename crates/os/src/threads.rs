//! Thread names, CPU affinity and scheduling.

#![allow(unsafe_code, reason = "rustix has no sched_setattr")]

use std::ffi::CString;
use std::io;
use std::num::NonZeroU64;

use rustix::thread::CpuSet;

/// Names the calling thread, as shown by `top -H` and `/proc`: the first 15 bytes of `name`.
///
/// # Errors
/// The kernel's error; it has no reason to refuse.
pub fn name(name: &str) -> io::Result<()> {
    let shown: Vec<u8> = name.bytes().take_while(|&b| b != 0).take(15).collect();
    Ok(rustix::thread::set_name(&CString::new(shown)?)?)
}

/// Pins the calling thread to one processor, a number from [`crate::cpu::allowed`].
///
/// # Errors
/// `InvalidInput` when the system has no such processor, or this process may not run on it.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut mask = CpuSet::new();
    mask.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &mask)?)
}

/// The shortest slice of processor time that the scheduler grants on request, in nanoseconds
/// (sched(7), `sched_runtime` of `SCHED_OTHER`).
const SLICE_MIN_NS: u64 = 100_000;

/// Makes the kernel wake the calling thread when its waits end, and not up to 50 µs later, as it
/// may by default (`PR_SET_TIMERSLACK`, proc(5)); and makes it run soon after: a thread that
/// requests a short time slice is scheduled before those with long ones, without a greater share
/// (Linux 6.12; older ones ignore it).
///
/// # Errors
/// When the kernel refuses, as a system call filter may. The first of the two settings may have
/// been made then.
pub fn wake_precisely() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    // SAFETY: all fields are numbers, for which zero is a value; it names `SCHED_OTHER`.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes at most `size` bytes into `attributes`, which has as many.
    let got =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0_u32) };
    if got == 0 && attributes.sched_policy == libc::SCHED_OTHER.cast_unsigned() {
        attributes.sched_runtime = SLICE_MIN_NS;
        // SAFETY: `attributes` is what the kernel wrote, with its size in it, and is only read.
        let set =
            unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0_u32) };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
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
