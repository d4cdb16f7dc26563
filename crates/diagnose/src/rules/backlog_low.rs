//! A program asked for a shorter listen backlog than the kernel would grant.
//!
//! **When.** A socket's backlog is smaller than `net.core.somaxconn`, and the socket shows that it
//! matters: more than half of it has been seen taken, or it has dropped packets; or the program is
//! known to ask for little unless told otherwise and serves the public (nginx: 511).
//!
//! **Why.** The smaller of the two numbers counts, so raising `somaxconn` changes nothing for this
//! program. Both the accept queue and the SYN queue have this length: a burst of SYNs beyond it is
//! answered with SYN cookies, which the kernel's log calls "possible SYN flooding". At a company
//! with `somaxconn` at 16,384, nginx's own 511 kept connections being dropped, and clients waited 3
//! s and then 9 s.
//!
//! **What to do.** Raise the program's own setting (nginx: `listen 80 backlog=4096`; HAProxy:
//! `backlog 4096`; Apache: `ListenBacklog 4096`; redis: `tcp-backlog 4096`), then restart it: a
//! reload opens no new socket in most programs.
//!
//! **See also.** `backlog_stale` where the backlog looks like the somaxconn of old,
//! `backlog_capped` where the kernel is what limits.

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
                    "{} asked for a backlog of {} only; the kernel would grant {}.",
                    listening.name(),
                    words::thousands(backlog),
                    words::thousands(somaxconn)
                ),
            )
            .evidence(Evidence::count("backlog", backlog, "connections"))
            .evidence(Evidence::count("net.core.somaxconn", somaxconn, "connections"))
            .why(
                "A burst of more connections than that is dropped or answered with SYN cookies, \
                 whatever somaxconn says: the smaller number counts.",
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
