//! A socket still has the old `somaxconn` default as its backlog: it was opened before the change,
//! or its program requests that value.
//!
//! **When.** A socket's backlog is 128, the default of `net.core.somaxconn` before Linux 5.4,
//! although `somaxconn` is larger now, and the program is not one that always requests 128 (sshd).
//! Loopback addresses are included, because balancers connect to them.
//!
//! **Why.** The backlog is fixed when a program calls `listen()`. A new `somaxconn` does not change
//! sockets that are already open: the administrator expects the new limit, but bursts are still
//! dropped.
//!
//! **What to do.** Restart the program, and check again. If the backlog is still 128, the program
//! requests 128 itself: raise the backlog in its configuration.

use crate::backlog::{habit, is_under_pressure, raise_backlog};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Listening, Out, View};
use crate::words;

/// Default of somaxconn before Linux 5.4, and what many programs have copied.
const OLD_SOMAXCONN: u32 = 128;

/// Whether this backlog is likely the somaxconn of old.
pub(super) fn looks_stale(listening: &Listening<'_>, somaxconn: u64) -> bool {
    listening.backlog() == OLD_SOMAXCONN
        && u64::from(OLD_SOMAXCONN) < somaxconn
        && habit(listening).is_none_or(|habit| habit.backlog != OLD_SOMAXCONN)
}

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(somaxconn) = view.setting("net.core.somaxconn", out) else { return };
    for listening in view.listeners(out).unwrap_or_default() {
        if !looks_stale(&listening, somaxconn) {
            continue;
        }
        let pressed = is_under_pressure(&listening, view);
        let finding = out
            .finding(
                listening.address.to_string(),
                if pressed { Severity::Warning } else { Severity::Advice },
                Certainty::Possible,
                format!(
                    "{} has a listen backlog of 128, although somaxconn allows {}.",
                    listening.name(),
                    words::thousands(somaxconn)
                ),
            )
            .evidence(Evidence::count("backlog", u64::from(OLD_SOMAXCONN), "connections"))
            .evidence(Evidence::count("net.core.somaxconn", somaxconn, "connections"))
            .why(
                "A backlog is fixed when a program calls listen(): either this socket was opened before \
                 somaxconn was raised, or its program requests 128 itself.",
            )
            .remedy(
                format!("Restart {} to open the socket again", listening.program()),
                &[],
                "a restart briefly closes the socket",
            );
        out.push(
            raise_backlog(finding, &listening, view)
                .verify(format!(
                    "ss -ltn 'sport = :{}' shows a Send-Q above 128",
                    listening.address.port()
                ))
                .source(&["sock_diag (idiag_wqueue)", "/proc/sys/net/core/somaxconn"]),
        );
    }
}
