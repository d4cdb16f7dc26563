//! A program requested a smaller listen backlog than the kernel allows.
//!
//! **When.** A socket's backlog is smaller than `net.core.somaxconn`, and either the socket is
//! under pressure (its queue has been more than half full, or it has dropped packets), or its
//! program is known for a small default (nginx: 511) and does not listen on a loopback address.
//!
//! **Why.** The smaller of the two values applies, so raising `somaxconn` has no effect on this
//! program. The backlog limits both the accept queue and the SYN queue. A burst of SYNs beyond it
//! is answered with SYN cookies, which the kernel log calls "possible SYN flooding". At one
//! company, `somaxconn` was 16,384, but nginx's default of 511 still caused dropped connections,
//! and clients waited 3 s and then 9 s.
//!
//! **What to do.** Raise the backlog in the program's own configuration (nginx: `listen 80
//! backlog=4096`; HAProxy: `backlog 4096`; Apache: `ListenBacklog 4096`; redis: `tcp-backlog
//! 4096`), then restart it: most programs do not open a new socket on a reload.
//!
//! **See also.** `backlog_stale` for a backlog that equals the old default of `somaxconn`,
//! `backlog_capped` for a backlog that the kernel limits.

use crate::backlog::{habit, is_under_pressure, raise_backlog};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(somaxconn) = view.setting("net.core.somaxconn", out) else { return };
    for listening in view.listeners(out).unwrap_or_default() {
        let backlog = u64::from(listening.backlog());
        let is_habit = habit(&listening)
            .is_some_and(|habit| habit.backlog == listening.backlog() && !habit.setting.is_empty());
        let is_public = !listening.address.ip().is_loopback();
        if backlog >= somaxconn
            || !(is_under_pressure(&listening, view) || is_habit && is_public)
            || super::backlog_stale::looks_stale(&listening, somaxconn)
        {
            continue;
        }
        let finding = out
            .finding(
                listening.address.to_string(),
                Severity::Advice,
                if is_habit { Certainty::Certain } else { Certainty::Likely },
                format!(
                    "{} requested a listen backlog of only {}; the kernel allows {}.",
                    listening.name(),
                    words::thousands(backlog),
                    words::thousands(somaxconn)
                ),
            )
            .evidence(Evidence::count("backlog", backlog, "connections"))
            .evidence(Evidence::count("net.core.somaxconn", somaxconn, "connections"))
            .why(
                "Larger bursts of connections are dropped or answered with SYN cookies: the smaller \
                 of the two values applies, so a larger somaxconn has no effect.",
            );
        out.push(
            raise_backlog(finding, &listening, view)
                .verify(format!(
                    "ss -ltn 'sport = :{}' shows the new backlog as Send-Q",
                    listening.address.port()
                ))
                .source(&["sock_diag (idiag_wqueue)", "/proc/sys/net/core/somaxconn"]),
        );
    }
}
