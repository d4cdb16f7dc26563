//! What a default, or the worth of a value, depends on: the kernel's version and the machine's
//! size.

use crate::facts::Host;

/// A kernel's version, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kernel(pub u32, pub u32);

impl Kernel {
    /// The one that stands for all whose version is not known.
    pub const CURRENT: Kernel = Kernel(6, 18);

    /// From `uname -r`: `6.18.44-generic` → 6.18.
    pub fn parse(release: &str) -> Option<Kernel> {
        let mut parts = release.split(['.', '-', '+']);
        let (major, minor) = (parts.next()?, parts.next()?);
        Some(Kernel(major.parse().ok()?, minor.parse().ok()?))
    }
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its kernel.
    pub kernel: Kernel,
    /// Its memory, where known.
    pub memory_bytes: Option<u64>,
    /// Bytes in a page.
    pub page_bytes: u64,
}

impl Machine {
    /// What the facts say, and what is usual where they say nothing.
    pub fn of(host: &Host) -> Machine {
        let release = host.kernel_release.get();
        Machine {
            kernel: release.and_then(|text| Kernel::parse(text)).unwrap_or(Kernel::CURRENT),
            memory_bytes: host.memory_bytes.get().copied(),
            page_bytes: host.page_size_bytes.get().copied().unwrap_or(4096),
        }
    }

    /// A current kernel on a machine of unknown size.
    pub fn usual() -> Machine {
        Machine { kernel: Kernel::CURRENT, memory_bytes: None, page_bytes: 4096 }
    }
}

#[cfg(test)]
mod tests {
    use super::Kernel;

    #[test]
    fn versions_are_read_from_releases() {
        assert_eq!(Kernel::parse("6.18.44-fc-v595"), Some(Kernel(6, 18)));
        assert_eq!(Kernel::parse("4.4-rc1"), Some(Kernel(4, 4)));
        assert_eq!(Kernel::parse("2.6.32-generic"), Some(Kernel(2, 6)));
        assert_eq!(Kernel::parse("linux"), None);
        assert!(Kernel(5, 10) > Kernel(5, 4));
    }
}
