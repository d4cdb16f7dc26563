//! A busy socket's listen backlog equals `somaxconn`, which is probably what limits it.
//!
//! **When.** A socket's backlog equals `net.core.somaxconn`, and the socket is under pressure: its
//! queue has been more than half full, or it has dropped packets.
//!
//! **Why.** The kernel silently reduces the backlog that a program passes to `listen()` to
//! `somaxconn` (4,096 since Linux 5.4, 128 before). The value that the program requested is not
//! visible.
//!
//! **What to do.** Raise `net.core.somaxconn`, then restart the program: the limit is fixed when
//! the program calls `listen()`.

use crate::backlog::{is_under_pressure, raise_backlog};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(somaxconn) = view.setting("net.core.somaxconn", out) else { return };
    for listening in view.listeners(out).unwrap_or_default() {
        if u64::from(listening.backlog()) != somaxconn || !is_under_pressure(&listening, view) {
            continue;
        }
        let finding = out
            .finding(
                listening.address.to_string(),
                Severity::Advice,
                Certainty::Likely,
                format!(
                    "somaxconn limits the listen backlog of {} to {}.",
                    listening.name(),
                    words::thousands(somaxconn)
                ),
            )
            .evidence(Evidence::count("backlog", listening.backlog().into(), "connections"))
            .evidence(Evidence::count("net.core.somaxconn", somaxconn, "connections"))
            .why("Bursts beyond it are dropped, however large a backlog the program requests.");
        out.push(
            raise_backlog(finding, &listening, view)
                .verify(format!(
                    "ss -ltn 'sport = :{}' shows the new limit as Send-Q",
                    listening.address.port()
                ))
                .source(&["sock_diag (idiag_wqueue)", "/proc/sys/net/core/somaxconn"]),
        );
    }
}
