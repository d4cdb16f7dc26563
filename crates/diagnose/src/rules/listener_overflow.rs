//! A program accepts too slowly, so its listening socket drops new connections.
//!
//! **When.** More connections wait in a socket's accept queue than its backlog says (it holds one
//! more than that), or the socket's drops and `TcpExtListenOverflows` rise together between two
//! samples. Where the drops of other sockets could explain every overflow, it is *possible*. Past
//! drops without present ones are reported as advice if the namespace has counted overflows. Drops of a
//! socket alone prove nothing: they also count SYNs that were repeated because an answer was lost.
//!
//! **Why.** A connection that finds the queue full is dropped without a word. The client sends its
//! SYN again after 1 s (3 s before Linux 3.1), then after 1, 2 or 4 s more, so users see waits of
//! whole seconds while the server's own response times look fine.
//!
//! **What to do.** If the queue stays full, the program does not accept: check whether it is
//! blocked or stopped, or whether all its workers are busy. If the queue overflows in bursts, let
//! the program accept faster or use more listeners (`SO_REUSEPORT`), then raise the backlog: both
//! the program's own `listen` setting and `net.core.somaxconn`. The smaller of the two applies, and
//! only from the next `listen()` on, so restart the program after a change. If the program is too
//! slow on average, a larger backlog only makes connections wait longer.
//!
//! **See also.** `ss -ltn` shows the queue length as Recv-Q and its limit as Send-Q; `nstat -az
//! TcpExtListenOverflows` shows the drops of the namespace. `listener_near_full` warns before the
//! queue overflows.

use crate::backlog::raise_backlog;
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::view::{Change, Listening, Out, View};
use crate::words;

/// Overflows a second from which connections are lost steadily rather than now and then.
const CRITICAL_PER_S: f64 = 1.0;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let overflows = view.counter("TcpExtListenOverflows", out);
    let all = view.listeners(out).unwrap_or_default();
    let dropped = |one: &Listening<'_>| one.drops.map_or(0, |drops| drops.by);
    let dropped_by_all = words::sum(all.iter().map(dropped));
    for listening in all {
        let drops = listening.drops.filter(|drops| drops.is_rising());
        let finding = match (overflows.filter(|one| one.is_rising()), drops) {
            (Some(overflows), Some(drops)) => {
                // Overflows that no other socket's drops can stand for are this one's.
                let of_others = dropped_by_all.saturating_sub(dropped(&listening));
                let is_proven = overflows.by > of_others || listening.is_full();
                now(&listening, overflows, drops, is_proven, out)
            }
            _ if listening.is_full() => full(&listening, out),
            // Its drops are repeated SYNs where the namespace has counted no overflow.
            _ if listening.has_dropped() => match overflows.filter(|one| one.in_all > 0) {
                Some(overflows) => past(&listening, overflows, out),
                None => continue,
            },
            _ => continue,
        };
        let finding = finding
            .evidence(Evidence::text(
                "accept queue",
                format!(
                    "{} wait, backlog {}",
                    words::thousands(listening.fullest.0.into()),
                    words::thousands(listening.fullest.1.into())
                ),
            ))
            .evidences(
                view.setting_if_any("net.core.somaxconn")
                    .map(|max| Evidence::count("net.core.somaxconn", max, "connections")),
            );
        let finding = if listening.is_full() {
            finding.remedy(
                "Find out why the program does not accept: stopped, blocked, or all \
                 workers busy",
                &[&format!("ss -ltnp 'sport = :{}'", listening.address.port())],
                "none",
            )
        } else {
            finding
        };
        out.push(
            raise_backlog(finding, &listening, view)
                .verify(format!(
                    "nstat -az TcpExtListenOverflows no longer rises under the same load; ss -ltn \
                     'sport = :{}' shows Recv-Q well below Send-Q",
                    listening.address.port()
                ))
                .source(&["sock_diag (idiag_rqueue, idiag_wqueue, sk_drops)", "/proc/net/netstat"]),
        );
    }
}

fn now(
    listening: &Listening<'_>,
    overflows: Change,
    drops: Change,
    is_proven: bool,
    out: &Out,
) -> Finding {
    // Drops count repeated SYNs too, so that no more of them are overflows than the namespace counted.
    let lost = Change { by: drops.by.min(overflows.by), ..drops };
    let severity = match lost.per_s() {
        _ if !is_proven => Severity::Advice,
        per_s if per_s >= CRITICAL_PER_S => Severity::Critical,
        _ => Severity::Warning,
    };
    let what = if is_proven {
        format!(
            "{} drops {} new connections a second: its accept queue is full.",
            listening.name(),
            words::number(lost.per_s())
        )
    } else {
        format!(
            "{} may drop new connections, up to {} a second, if its accept queue is full at times.",
            listening.name(),
            words::number(lost.per_s())
        )
    };
    out.finding(
        listening.address.to_string(),
        severity,
        if is_proven { Certainty::Certain } else { Certainty::Possible },
        what,
    )
    .evidence(drops.evidence("drops of this socket"))
    .evidence(overflows.evidence("TcpExtListenOverflows"))
    .why(
        "Clients whose connection is dropped wait whole seconds before they retransmit; the \
         program's own response times do not show it.",
    )
}

fn full(listening: &Listening<'_>, out: &Out) -> Finding {
    out.finding(
        listening.address.to_string(),
        Severity::Critical,
        Certainty::Certain,
        format!("{} does not accept: its accept queue is full.", listening.name()),
    )
    .evidences(listening.drops.map(|drops| drops.evidence("drops of this socket")))
    .why(
        "Every further connection is silently dropped, and its client retransmits only \
         after whole seconds.",
    )
}

fn past(listening: &Listening<'_>, overflows: Change, out: &Out) -> Finding {
    let drops = words::sum(listening.sockets.iter().filter_map(|one| one.drops.get().copied()));
    out.finding(
        listening.address.to_string(),
        Severity::Advice,
        Certainty::Possible,
        format!(
            "{} may have dropped up to {} since it was opened, none during this measurement.",
            listening.name(),
            words::plural(drops.min(overflows.in_all), "new connection")
        ),
    )
    .evidence(Evidence::count("drops of this socket", drops, "packets"))
    .evidence(overflows.evidence("TcpExtListenOverflows"))
    .why(
        "Accept queues of this namespace have overflowed in a burst, perhaps this one; clients \
         waited whole seconds. Repeated SYNs count among the drops too.",
    )
}
