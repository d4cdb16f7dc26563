//! A file of settings names `tcp_tw_recycle`, which is dead, or breaks clients behind NAT.
//!
//! **When.** A line of `/etc/sysctl.conf` or of a sysctl directory sets `net.ipv4.tcp_tw_recycle`;
//! a warning where the running kernel still has it and it is 1.
//!
//! **Why.** Before Linux 4.12 it made the kernel drop SYNs whose timestamp is older than the last
//! one from the same address. Behind one address of a NAT there are many clocks, so some of its
//! users could not connect, now and then, for no visible reason. Since 4.12 it does not exist, and
//! the line only shows that nobody has read the file for years.
//!
//! **What to do.** Remove the line. Many sockets in TIME-WAIT are harmless (`time_wait_many`).

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
