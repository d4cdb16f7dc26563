//! `/proc/net/dev` → each interface's traffic and drops.

use diagnose::facts::Interface;

/// Every interface but loopback, with its packets and bytes; the driver's part is filled in by
/// users of ethtool.
pub(crate) fn dev(text: &str) -> Vec<Interface> {
    text.lines().filter_map(line).filter(|interface| interface.name != "lo").collect()
}

/// `eth0: bytes packets errs drop fifo frame compressed multicast | bytes packets errs drop fifo
/// colls carrier compressed`. The kernel adds `rx_missed_errors` to the dropped.
fn line(line: &str) -> Option<Interface> {
    let (name, numbers) = line.rsplit_once(':')?;
    let numbers: Vec<u64> =
        numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let [rx_bytes, rx_packets, rx_errors, rx_dropped, rx_missed, _, _, _, sent @ ..] = &numbers[..]
    else {
        return None;
    };
    let [tx_bytes, tx_packets, tx_errors, tx_dropped, ..] = sent else { return None };
    Some(Interface {
        name: name.trim().to_owned(),
        rx_packets: *rx_packets,
        rx_bytes: *rx_bytes,
        rx_dropped: *rx_dropped,
        rx_errors: *rx_errors,
        rx_missed: *rx_missed,
        tx_packets: *tx_packets,
        tx_bytes: *tx_bytes,
        tx_dropped: *tx_dropped,
        tx_errors: *tx_errors,
        ..Interface::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_finds_its_place() {
        let interfaces = dev(include_str!("../../tests/data/dev"));
        let [eth0, alias] = interfaces.as_slice() else { panic!("{interfaces:?}") };
        assert_eq!(eth0.name, "eth0");
        assert_eq!((eth0.rx_bytes, eth0.rx_packets), (750_903_738, 35_809));
        assert_eq!((eth0.rx_errors, eth0.rx_dropped, eth0.rx_missed), (1, 2, 3));
        assert_eq!((eth0.tx_bytes, eth0.tx_packets), (2_576_858, 26_047));
        assert_eq!((eth0.tx_errors, eth0.tx_dropped), (4, 5));
        assert_eq!(alias.name, "eth0:1", "a colon may stand in a name");
    }

    #[test]
    fn what_is_no_row_is_left_out() {
        assert!(dev("eth0: 1 2 3\nnonsense\n:\n").is_empty());
    }
}
