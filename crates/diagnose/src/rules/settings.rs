//! Which kernel settings rules ask for, so that who looks at a host only to diagnose it need not read
//! the other four hundred.

/// By dotted name. Those that the host's own files set are asked for besides
/// (`sysctl-not-applied`).
pub const SETTINGS: &[&str] = &[
    "net.core.netdev_budget",
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_abort_on_overflow",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_min_snd_mss",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_recycle",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::SETTINGS;

    /// Names in quotes, in the code of rules and of what they share, tests left out.
    fn named_in_code() -> BTreeSet<String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let rules = std::fs::read_dir(source.join("rules")).unwrap();
        let rules = rules.map(|file| file.unwrap().path());
        let shared = ["backlog.rs", "segments.rs", "servers.rs", "view.rs"];
        let files = rules.filter(|path| !path.ends_with("settings.rs"));
        let mut names = BTreeSet::new();
        for path in files.chain(shared.map(|name| source.join(name))) {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let quoted = code.split('"').skip(1).step_by(2);
            let is_name = |word: &&str| {
                ["net.", "vm.", "fs.", "kernel."].iter().any(|start| word.starts_with(start))
                    && !word.contains(|c: char| c.is_whitespace() || "{}".contains(c))
            };
            names.extend(quoted.filter(is_name).map(str::to_owned));
        }
        names
    }

    #[test]
    fn they_are_what_the_rules_name() {
        let listed: BTreeSet<String> = SETTINGS.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(listed, named_in_code());
    }
}
