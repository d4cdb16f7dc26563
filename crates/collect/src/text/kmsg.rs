//! Records of `/dev/kmsg` → lines about the network.

use diagnose::facts::LogLine;

/// What such lines hold, each in the words of the kernel's source.
const WORDS: &[&str] = &[
    "SYN flooding",
    "nf_conntrack: table full",
    "nf_conntrack: nf_conntrack: table full",
    "TCP: out of memory",
    "time wait bucket table overflow",
    "neighbor table overflow",
    "neighbour: ",
    "too many orphaned sockets",
    "NETDEV WATCHDOG",
];

/// A record: `priority,sequence,microseconds,flags;text`, and further lines that begin with a
/// space. `None` for those that are about something else.
pub(crate) fn record(record: &str) -> Option<LogLine> {
    let (head, text) = record.split_once(';')?;
    let text = text.lines().next()?;
    if !WORDS.iter().any(|words| text.contains(words)) {
        return None;
    }
    let micros: u64 = head.split(',').nth(2)?.parse().ok()?;
    Some(LogLine { at_ms: micros / 1000, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_the_network_are_told_with_their_time() {
        let text = "4,512,84440731929,-;TCP: request_sock_TCP: Possible SYN flooding on port 80. \
                    Sending cookies.\n SUBSYSTEM=net\n";
        let line = record(text).unwrap();
        assert_eq!(line.at_ms, 84_440_731);
        assert!(line.text.ends_with("Sending cookies."), "{line:?}");
    }

    #[test]
    fn others_are_not() {
        for text in ["5,0,0,-;Linux version 6.18\n", "", "4,1", "x;SYN flooding", ",,;"] {
            assert_eq!(record(text), None, "{text:?}");
        }
    }
}
