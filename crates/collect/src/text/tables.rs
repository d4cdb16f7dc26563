//! Parses tables of the network stack: `softnet_stat`, `sockstat`, and those of `/proc/net/stat`.

use std::collections::BTreeMap;

use diagnose::facts::{Known, SockStat, Softnet};

/// `/proc/net/softnet_stat`: hexadecimal, without a header, a row per online processor. Columns
/// were added at the end over time; which processor a row is about is said since Linux 5.10.
pub(crate) fn softnet(text: &str) -> Vec<Softnet> {
    let row = |(place, line): (usize, &str)| {
        let columns: Vec<u64> = line.split_ascii_whitespace().map_while(hexadecimal).collect();
        let column = |n: usize| columns.get(n).copied();
        Some(Softnet {
            cpu: column(12).unwrap_or(place as u64) as u32,
            processed: column(0)?,
            dropped: column(1)?,
            time_squeeze: column(2)?,
            received_rps: column(9).unwrap_or(0),
            flow_limit: column(10).unwrap_or(0),
            backlog: column(11)
                .map_or_else(|| Known::unknown("softnet_stat has no such column"), Known::Is),
        })
    };
    text.lines().enumerate().filter_map(row).collect()
}

/// `/proc/net/sockstat`: the line `TCP: inuse 4 orphan 0 tw 2 alloc 7 mem 265`.
pub(crate) fn sockstat(text: &str) -> Option<SockStat> {
    let number = |name: &str| number_of(text, "TCP:", name);
    Some(SockStat {
        in_use: number("inuse")?,
        orphans: number("orphan")?,
        time_wait: number("tw")?,
        allocated: number("alloc")?,
        memory_pages: number("mem")?,
    })
}

/// `/proc/net/sockstat6`: the line `TCP6: inuse 4`, which the other file does not count.
pub(crate) fn sockstat6_in_use(text: &str) -> Option<u64> {
    number_of(text, "TCP6:", "inuse")
}

/// In a line that begins with `line`, the number behind `name`.
fn number_of(text: &str, line: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|one| one.strip_prefix(line))?;
    let mut words = line.split_ascii_whitespace().skip_while(|&word| word != name);
    words.nth(1)?.parse().ok()
}

/// A table of `/proc/net/stat`: a line of names, then hexadecimal rows, one per processor. Names
/// and their order changed between kernels, so columns are found by name. Rows are added up, but
/// for `entries`, which every row repeats.
pub(crate) fn per_processor(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_ascii_whitespace().collect();
    let mut sums = BTreeMap::new();
    for line in lines {
        for (name, value) in names.iter().zip(line.split_ascii_whitespace()) {
            let Some(value) = hexadecimal(value) else { continue };
            let sum: &mut u64 = sums.entry((*name).to_owned()).or_default();
            *sum = if *name == "entries" { value } else { sum.saturating_add(value) };
        }
    }
    sums
}

fn hexadecimal(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_softnet_are_not_processors() {
        // Processor 1 is offline.
        let rows = softnet(include_str!("../../tests/data/softnet_stat"));
        let figures: Vec<_> =
            rows.iter().map(|r| (r.cpu, r.processed, r.dropped, r.time_squeeze)).collect();
        assert_eq!(figures, [(0, 0x033e_f2a3, 0, 4), (2, 0x02f7_229d, 0x11, 0x2a)]);
        assert_eq!(rows[1].backlog, Known::Is(3));
    }

    #[test]
    fn an_older_kernel_has_fewer_columns() {
        let rows = softnet("0000001a 00000002 00000003 00000000\n");
        assert_eq!((rows[0].cpu, rows[0].processed, rows[0].dropped), (0, 26, 2));
        assert!(rows[0].backlog.get().is_none());
        assert!(softnet("garbage\n\n1 2\n").is_empty());
    }

    #[test]
    fn sockstat_is_read_by_name() {
        let text = "sockets: used 18\nTCP: inuse 1 orphan 2 tw 350 alloc 5 mem 265\nUDP: inuse 0\n";
        let read = sockstat(text).unwrap();
        assert_eq!((read.in_use, read.orphans, read.time_wait), (1, 2, 350));
        assert_eq!((read.allocated, read.memory_pages), (5, 265));
        assert!(sockstat("TCP: inuse 1\n").is_none());
        assert!(sockstat("").is_none());
        assert_eq!(sockstat6_in_use("TCP6: inuse 3\nUDP6: inuse 1\n"), Some(3));
        assert_eq!(sockstat6_in_use("UDP6: inuse 1\n"), None);
    }

    #[test]
    fn conntrack_is_found_by_header_whatever_the_kernel() {
        let new = per_processor(include_str!("../../tests/data/nf_conntrack-6.18"));
        assert_eq!((new["entries"], new["drop"], new["early_drop"]), (0x100, 0x13, 0x21));
        assert_eq!(new["clashres"], 0);
        // Before 4.9 the second column was `searched`.
        let old = per_processor("entries  searched found new\n00000002  0000000a 1 1\n2 1 1 0\n");
        assert_eq!((old["entries"], old["searched"], old["new"]), (2, 11, 1));
        assert!(per_processor("").is_empty());
    }
}
