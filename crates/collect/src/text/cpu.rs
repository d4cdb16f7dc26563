//! Processors, interrupts and memory: `/proc/stat`, `/proc/interrupts`, `/proc/meminfo`.

use diagnose::facts::{Cpu, NetworkInterrupt};

/// `/proc/stat`: the total, and each online processor.
pub(crate) fn stat(text: &str) -> Option<(Cpu, Vec<Cpu>)> {
    let mut total = None;
    let mut each = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("cpu") else { break };
        let (number, times) = rest.split_once(' ')?;
        let cpu = times_of(number.parse().unwrap_or(0), times)?;
        if number.is_empty() { total = Some(cpu) } else { each.push(cpu) }
    }
    Some((total?, each))
}

/// Kernels before 2.6.11 tell no steal; those are not supported, but it is no reason to fail.
fn times_of(id: u32, text: &str) -> Option<Cpu> {
    let times: Vec<u64> = text.split_ascii_whitespace().map_while(|t| t.parse().ok()).collect();
    let time = |n: usize| times.get(n).copied();
    Some(Cpu {
        id,
        user: time(0)?,
        nice: time(1)?,
        system: time(2)?,
        idle: time(3)?,
        iowait: time(4).unwrap_or(0),
        irq: time(5).unwrap_or(0),
        softirq: time(6).unwrap_or(0),
        steal: time(7).unwrap_or(0),
    })
}

/// `/proc/interrupts`: the rows of network queues. Rows name devices and queues as their drivers
/// like: `ens5-Tx-Rx-0`, `virtio2-input.0`, `mlx5_comp3@pci:0000:00:05.0`. `interfaces` are
/// those of this host.
pub(crate) fn interrupts(text: &str, interfaces: &[&str]) -> Vec<NetworkInterrupt> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus: Vec<u32> = header.filter_map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
    let row = |line: &str| {
        let (irq, rest) = line.trim_start().split_once(':')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let name = *words.last()?;
        if words.len() <= cpus.len() || !is_of_network(name, interfaces) {
            return None;
        }
        let counts = words.iter().map_while(|word| word.parse().ok());
        let per_cpu = cpus.iter().copied().zip(counts).collect();
        Some(NetworkInterrupt { irq: irq.to_owned(), name: name.to_owned(), per_cpu })
    };
    lines.filter_map(row).collect()
}

fn is_of_network(name: &str, interfaces: &[&str]) -> bool {
    // mlx5_comp3@pci:…, ens5-Tx-Rx-0: the device's name stands before one of these.
    let device = name.split(['-', '@', ':']).next().unwrap_or_default();
    if interfaces.contains(&device) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let queue = |of: &str| {
        lower.starts_with("virtio")
            && lower
                .split('-')
                .nth(1)
                .is_some_and(|q| q.strip_prefix(of).is_some_and(|rest| rest.starts_with('.')))
    };
    queue("input")
        || queue("output")
        || lower.contains("tx-rx")
        || lower.contains("txrx")
        || lower.starts_with("mlx5_comp")
        || lower.starts_with("mlx4-")
}

/// A line of `/proc/meminfo`, in bytes.
pub(crate) fn memory_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_field() {
        let text = "cpu  10 1 20 300 4 5 6 77 8 9\ncpu0 10 1 20 300 4 5 6 70\ncpu3 0 0 0 0 0 0 0 7\n\
                    intr 1\n";
        let (total, each) = stat(text).unwrap();
        assert_eq!((total.steal, total.softirq, total.idle), (77, 6, 300));
        let stolen: Vec<_> = each.iter().map(|cpu| (cpu.id, cpu.steal)).collect();
        assert_eq!(stolen, [(0, 70), (3, 7)]);
        assert!(stat("intr 1\n").is_none());
        assert!(stat("cpu  1 2\n").is_none());
    }

    #[test]
    fn only_network_queues_are_told() {
        let rows = interrupts(include_str!("../../tests/data/interrupts"), &["eth0", "ens5"]);
        let names: Vec<_> = rows.iter().map(|row| &*row.name).collect();
        let expected = ["virtio2-input.0", "virtio2-output.0", "ens5-Tx-Rx-0"];
        assert_eq!(names, expected);
        assert_eq!(rows[0].per_cpu, [(0, 0), (1, 22_796)]);
        assert_eq!(rows[2].irq, "45");
    }

    #[test]
    fn memory_is_told_in_bytes() {
        let text =
            "MemTotal:       24684096 kB\nMemAvailable:   24053132 kB\nHugePages_Total:  0\n";
        assert_eq!(memory_bytes(text, "MemTotal"), Some(25_276_514_304));
        assert_eq!(memory_bytes(text, "Mem"), None);
        assert_eq!(memory_bytes(text, "HugePages_Total"), None);
    }
}
