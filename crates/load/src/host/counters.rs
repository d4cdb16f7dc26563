//! The kernel's counters, parsed from files below `/proc`, and their differences. Pure: the caller
//! passes in the texts.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use load_report::run::HostSecond;

/// Counters at one moment. What a kernel or a container does not show stays 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// User mode, in ticks of all processors (`/proc/stat`).
    user: u64,
    /// The kernel, with interrupts.
    system: u64,
    /// Time that the hypervisor gave to others.
    steal: u64,
    /// All of it, idle time too.
    total: u64,
    retransmissions: u64,
    syn_retransmissions: u64,
    listen_overflows: u64,
    listen_drops: u64,
    rx_bytes: u64,
    tx_bytes: u64,
    rx_packets: u64,
    tx_packets: u64,
}

impl Counters {
    /// From `/proc/stat`, `/proc/net/snmp`, `/proc/net/netstat` and `/proc/net/dev`, of which the
    /// line of `interface` counts.
    pub fn read(stat: &str, snmp: &str, netstat: &str, dev: &str, interface: &str) -> Counters {
        let mut counters = Counters::default();
        if let Some(line) = stat.lines().find_map(|line| line.strip_prefix("cpu ")) {
            let ticks: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
            let tick = |n: usize| ticks.get(n).copied().unwrap_or(0);
            // user nice system idle iowait irq softirq steal; guest time is part of user.
            counters.user = tick(0) + tick(1);
            counters.system = tick(2) + tick(5) + tick(6);
            counters.steal = tick(7);
            counters.total = (0..8).map(tick).sum();
        }
        counters.retransmissions = named(snmp, "Tcp:", "RetransSegs");
        counters.syn_retransmissions = named(netstat, "TcpExt:", "TCPSynRetrans");
        counters.listen_overflows = named(netstat, "TcpExt:", "ListenOverflows");
        counters.listen_drops = named(netstat, "TcpExt:", "ListenDrops");
        let line = dev.lines().find_map(|line| {
            let (name, rest) = line.split_once(':')?;
            (name.trim() == interface).then_some(rest)
        });
        if let Some(line) = line {
            let fields: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
            let field = |n: usize| fields.get(n).copied().unwrap_or(0);
            (counters.rx_bytes, counters.rx_packets) = (field(0), field(1));
            (counters.tx_bytes, counters.tx_packets) = (field(8), field(9));
        }
        counters
    }

    /// What has happened since `earlier`; `own_cpu_percent` is the process's own.
    pub fn since(&self, earlier: &Counters, at_s: f64, own_cpu_percent: f64) -> HostSecond {
        let total = self.total.saturating_sub(earlier.total).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 * 100.0 / total;
        HostSecond {
            at_s,
            cpu_user_percent: share(self.user, earlier.user),
            cpu_system_percent: share(self.system, earlier.system),
            cpu_steal_percent: share(self.steal, earlier.steal),
            own_cpu_percent,
            retransmissions: self.retransmissions.saturating_sub(earlier.retransmissions),
            syn_retransmissions: self
                .syn_retransmissions
                .saturating_sub(earlier.syn_retransmissions),
            listen_overflows: self.listen_overflows.saturating_sub(earlier.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(earlier.listen_drops),
            rx_bytes: self.rx_bytes.saturating_sub(earlier.rx_bytes),
            tx_bytes: self.tx_bytes.saturating_sub(earlier.tx_bytes),
            rx_packets: self.rx_packets.saturating_sub(earlier.rx_packets),
            tx_packets: self.tx_packets.saturating_sub(earlier.tx_packets),
        }
    }
}

/// A counter of `/proc/net/snmp` or `netstat`: a line of names, then a line of numbers.
fn named(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs.find(|(found, _)| *found == name).and_then(|(_, n)| n.parse().ok()).unwrap_or(0)
}

/// The interface over which packets to `address` leave, by `/proc/net/route` or
/// `/proc/net/ipv6_route`: the one of the longest prefix. Empty: none is known, as for those of this
/// machine's own IPv4 addresses that are not loopback's.
pub fn interface_towards(address: IpAddr, route: &str, ipv6_route: &str) -> String {
    match address.to_canonical() {
        address if address.is_loopback() => "lo".to_owned(),
        IpAddr::V4(address) => towards_ipv4(address, route),
        IpAddr::V6(address) => towards_ipv6(address, ipv6_route),
    }
}

fn towards_ipv4(address: Ipv4Addr, route: &str) -> String {
    // Addresses stand there as the bytes lie in memory, least significant first.
    let wanted = u32::from_le_bytes(address.octets());
    let rows = route.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |n: usize| u32::from_str_radix(fields.get(n)?, 16).ok();
        let (destination, mask) = (number(1)?, number(7)?);
        let name = (*fields.first()?).to_owned();
        (wanted & mask == destination).then_some((mask.count_ones(), name))
    });
    rows.max_by_key(|(prefix, _)| *prefix).map(|(_, name)| name).unwrap_or_default()
}

/// A route that refuses what it is for (`RTF_REJECT` of linux/route.h).
const REJECT: u32 = 0x0200;
/// An address of this machine (`RTF_LOCAL` of `linux/ipv6_route.h`).
const LOCAL: u32 = 0x8000_0000;

fn towards_ipv6(address: Ipv6Addr, route: &str) -> String {
    let rows = route.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |n: usize| u32::from_str_radix(fields.get(n)?, 16).ok();
        let destination = u128::from_str_radix(fields.first()?, 16).ok()?;
        let (prefix, metric, flags) = (number(1)?, number(5)?, number(8)?);
        let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or(0);
        let name = if flags & LOCAL == 0 { *fields.get(9)? } else { "lo" };
        let leads_there = address.to_bits() & mask == destination && flags & REJECT == 0;
        leads_there.then(|| ((prefix, Reverse(metric)), name.to_owned()))
    });
    rows.max_by_key(|(rank, _)| *rank).map(|(_, name)| name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0
  eth0:5000 50 0 0 0 0 0 0 700 7 0 0 0 0 0 0
";

    #[test]
    fn differences_are_told_by_name_and_in_percent() {
        let snmp = "Ip: A B\nIp: 1 2\nTcp: ActiveOpens RetransSegs\nTcp: 5 7\n";
        let netstat = "TcpExt: ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 1 2 3\n";
        let before = Counters::read("cpu  100 0 50 800 0 0 0 50 0 0\n", snmp, netstat, DEV, "eth0");
        let snmp = snmp.replace("5 7", "5 17");
        let netstat = netstat.replace("1 2 3", "1 4 9");
        let dev = DEV.replace("5000 50", "9000 90");
        let stat = "cpu  150 0 70 810 0 5 5 60 0 0\ncpu0 1 2 3\n";
        let after = Counters::read(stat, &snmp, &netstat, &dev, "eth0");
        let second = after.since(&before, 3.0, 12.5);
        let percents =
            (second.cpu_user_percent, second.cpu_system_percent, second.cpu_steal_percent);
        assert_eq!(percents, (50.0, 30.0, 10.0));
        assert_eq!((second.retransmissions, second.syn_retransmissions), (10, 6));
        assert_eq!((second.listen_overflows, second.listen_drops), (0, 2));
        assert_eq!((second.rx_bytes, second.rx_packets, second.tx_bytes), (4_000, 40, 0));
        assert_eq!(Counters::read("", "Tcp: x\n", "\n", "lo:\n", "lo"), Counters::default());
    }

    #[test]
    fn the_interface_is_that_of_the_longest_prefix() {
        let route = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
            eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\n\
            veth1\t0001630A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\n";
        let ipv6_route = "\
20010db8000000000000000000000000 40 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000100 00000001 00000000 00000001     veth1
20010db8000000000000000000000000 20 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000100 00000001 00000000 00000001     veth2
00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
20010db8000000000000000000000007 80 00000000000000000000000000000000 00 \
00000000000000000000000000000000 00000000 00000004 00000000 80200001    veth1
00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";
        let towards = |text: &str| interface_towards(text.parse().unwrap(), route, ipv6_route);
        assert_eq!(towards("10.99.1.11"), "veth1");
        assert_eq!(towards("10.99.2.11"), "eth0");
        assert_eq!(towards("127.0.0.5"), "lo");
        assert_eq!(towards("::1"), "lo");
        assert_eq!(towards("2001:db8::1"), "veth1");
        assert_eq!(towards("2001:db8:0:1::1"), "veth2");
        assert_eq!(towards("2001:db8::7"), "lo", "its own address");
        assert_eq!(towards("2001:db9::1"), "eth0");
        assert_eq!(interface_towards("10.0.0.1".parse().unwrap(), "", ""), "");
        assert_eq!(interface_towards("2001:db8::1".parse().unwrap(), "", "x y\n"), "");
    }
}
