//! Connection tracking counters, read directly from the kernel (netlink, nfnetlink): where
//! `/proc/net/stat/nf_conntrack` is not built in, this is the only way.

use std::io;
use std::ops::ControlFlow;

use crate::netlink::{Netlink, array, attributes};

/// What happened to packets and entries since the start, all CPUs together
/// (`enum ctattr_stats_cpu` of `include/uapi/linux/netfilter/nfnetlink_conntrack.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that belong to no connection.
    pub invalid: u64,
    /// Entries that could not be inserted, because the same connection existed already.
    pub insert_failed: u64,
    /// Packets dropped because no entry could be made: the table was full, or memory was short.
    pub drop: u64,
    /// Entries evicted to make room for new ones.
    pub early_drop: u64,
}

/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET_STATS_CPU`.
const GET_STATISTICS: u16 = 1 << 8 | 4;

/// Reads them for the calling thread's network namespace.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` in the namespace; when connection tracking is not loaded.
pub fn statistics() -> io::Result<Statistics> {
    let mut netlink = Netlink::open(rustix::net::netlink::NETFILTER)?;
    let mut sum = Statistics::default();
    // Struct nfgenmsg: family, version, resource.
    netlink.dump(GET_STATISTICS, &[0; 4], &mut |bytes| {
        for (attribute, value) in attributes(bytes.get(4..).unwrap_or_default()) {
            let value = u64::from(array(value, 0).map_or(0, u32::from_be_bytes));
            match attribute {
                4 => sum.invalid += value,
                8 => sum.insert_failed += value,
                9 => sum.drop += value,
                10 => sum.early_drop += value,
                _ => {}
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_or_refused_for_a_reason() {
        if let Err(error) = statistics() {
            let reasons = [libc::EPERM, libc::EOPNOTSUPP, libc::EINVAL, libc::EPROTONOSUPPORT];
            assert!(error.raw_os_error().is_some_and(|n| reasons.contains(&n)), "{error}");
        }
    }
}
