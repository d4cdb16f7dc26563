//! A sysctl file sets `tcp_tw_recycle`, which no longer exists or breaks clients behind NAT.
//!
//! **When.** A line of `/etc/sysctl.conf` or of a sysctl directory sets `net.ipv4.tcp_tw_recycle`.
//! A warning if the running kernel still has the setting and it is 1.
//!
//! **Why.** Before Linux 4.12, this setting made the kernel drop SYNs whose timestamp was older
//! than the last one from the same address. Clients behind one NAT address have different clocks,
//! so some of them could not connect, intermittently and for no visible reason. Linux 4.12 removed
//! the setting, and the line is only a leftover.
//!
//! **What to do.** Remove the line. Many sockets in `TIME_WAIT` are harmless (`time_wait_many`).

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_tw_recycle";
    let Some(files) = out.want("files of kernel settings", &facts.host.sysctl_files) else {
        return;
    };
    let own = facts.namespaces.iter().find(|namespace| namespace.is_own);
    let value =
        own.and_then(|own| own.settings.get()).and_then(|settings| settings.values.get(SETTING));
    let is_on = value.is_some_and(|value| value == "1");
    for file in files {
        let review = crate::sysctl::lines(&file.text);
        for line in review.iter().filter(|line| line.name == SETTING) {
            out.push(
                out.finding(
                    format!("{} line {}", file.path, line.number),
                    if is_on { Severity::Critical } else { Severity::Advice },
                    Certainty::Certain,
                    if is_on {
                        "tcp_tw_recycle is on: clients behind a NAT are dropped at random."
                    } else {
                        "A file sets tcp_tw_recycle, which this kernel does not have."
                    },
                )
                .evidence(Evidence::text(
                    format!("{}:{}", file.path, line.number),
                    line.text.clone(),
                ))
                .evidences(value.map(|value| Evidence::text(SETTING, value)))
                .why("The setting was removed from Linux 4.12 because it broke clients behind NAT.")
                .remedy(
                    "Remove the line",
                    &[&format!("sed -i '/tcp_tw_recycle/d' {}", file.path)],
                    "none",
                )
                .verify(format!("grep tcp_tw_recycle {} finds nothing", file.path))
                .source(&[
                    "/etc/sysctl.conf",
                    "/etc/sysctl.d",
                    "/proc/sys/net/ipv4",
                ]),
            );
        }
    }
}
