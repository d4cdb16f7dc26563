//! The number of processors that this process may use.

/// Returns the number of processors that this process can keep busy: those of its affinity mask,
/// fewer if a cgroup quota (a container's CPU limit) allows less. At least 1.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the numbers of the processors in this thread's affinity mask, ascending, as
/// [`crate::threads::pin`] takes them. Empty if the kernel does not provide them.
pub fn allowed() -> Vec<usize> {
    let Ok(mask) = rustix::thread::sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_cores_than_the_mask_allows() {
        assert!(cores() >= 1);
        assert!(cores() <= allowed().len());
    }
}
