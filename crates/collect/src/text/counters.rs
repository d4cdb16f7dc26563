//! `/proc/net/snmp`, `netstat` and `snmp6` → counters by the names that `nstat` prints.

use std::collections::BTreeMap;

/// Adds what `text` holds, in the form of snmp and netstat: a line of names and a line of numbers,
/// each begun by the same word. Negative numbers (`TcpMaxConn` is -1) are left out.
pub(crate) fn paired(text: &str, into: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((group, names)), Some((same, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            return;
        };
        if group != same {
            return;
        }
        for (name, value) in names.split_ascii_whitespace().zip(values.split_ascii_whitespace()) {
            if let Ok(value) = value.parse() {
                into.insert([group, name].concat(), value);
            }
        }
    }
}

/// Adds what `text` holds, in the form of snmp6: a name and a number a line.
pub(crate) fn single(text: &str, into: &mut BTreeMap<String, u64>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        if let (Some(name), Some(Ok(value))) = (words.next(), words.next().map(str::parse)) {
            into.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_nstat() {
        let mut counters = BTreeMap::new();
        paired(include_str!("../../tests/data/snmp"), &mut counters);
        paired(include_str!("../../tests/data/netstat"), &mut counters);
        assert_eq!(counters["TcpRetransSegs"], 32_442);
        assert_eq!(counters["TcpOutSegs"], 103_906_924);
        assert_eq!(counters["TcpExtListenOverflows"], 143);
        assert_eq!(counters["TcpExtTCPReqQFullDoCookies"], 38);
        assert!(!counters.contains_key("TcpMaxConn"), "it is -1");
        single("Ip6InReceives                   \t34\nIcmp6OutType133\t7\n", &mut counters);
        assert_eq!((counters["Ip6InReceives"], counters["Icmp6OutType133"]), (34, 7));
    }

    #[test]
    fn lines_that_do_not_belong_together_end_it() {
        for text in ["Tcp: A B\nUdp: 1 2\n", "Tcp: A\n", "nonsense\nnonsense\n", "", "Tcp:\nTcp:\n"]
        {
            let mut counters = BTreeMap::new();
            paired(text, &mut counters);
            assert!(counters.is_empty(), "{text:?}: {counters:?}");
        }
        let mut counters = BTreeMap::new();
        paired("Tcp: A B\nTcp: 1\n", &mut counters);
        assert_eq!(counters.len(), 1, "a name without a number is left out");
    }
}
