//! An accept queue is nearly full in every sample.
//!
//! **When.** In every sample, more than 70 % of a listening socket's backlog is in use, and at
//! least two connections wait.
//!
//! **Why.** The next burst overflows the queue, and its clients wait for whole seconds. Connections
//! in the queue are already established for their clients, so the wait adds to their time to first
//! byte.
//!
//! **What to do.** Find out why the program accepts slowly (a single thread that accepts and works,
//! all workers busy, a stopped process). More listeners (`SO_REUSEPORT`) or more workers help. A
//! larger backlog only absorbs bursts.

use crate::backlog::raise_backlog;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

/// The share of its backlog from which a queue is nearly full.
const SHARE_MIN: f64 = 0.7;
/// Fewer connections than this may wait in any queue at any time.
const WAITING_MIN: u32 = 2;
/// Samples that make it more than a moment.
const SAMPLES_FOR_CERTAINTY: usize = 3;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    for listening in view.listeners(out).unwrap_or_default() {
        let (waiting, backlog) = listening.fullest;
        if listening.share_min <= SHARE_MIN || waiting < WAITING_MIN {
            continue;
        }
        let certainty = if listening.samples >= SAMPLES_FOR_CERTAINTY {
            Certainty::Likely
        } else {
            Certainty::Possible
        };
        let finding = out
            .finding(
                listening.address.to_string(),
                Severity::Warning,
                certainty,
                format!(
                    "The accept queue of {} is nearly full: {} of {} connections.",
                    listening.name(),
                    words::thousands(waiting.into()),
                    words::thousands(u64::from(backlog) + 1)
                ),
            )
            .evidence(Evidence::count("waiting", waiting.into(), "connections"))
            .evidence(Evidence::count("backlog", backlog.into(), "connections"))
            .evidence(Evidence::count("samples", listening.samples as u64, "with a nearly full queue"))
            .why("The next burst overflows it, and its clients wait whole seconds before they retransmit.")
            .remedy(
                "Find out why the program accepts slowly: all workers busy, or blocked",
                &[],
                "none",
            );
        out.push(
            raise_backlog(finding, &listening, view)
                .verify(format!(
                    "ss -ltn 'sport = :{}' shows Recv-Q near 0 most of the time",
                    listening.address.port()
                ))
                .source(&["sock_diag (idiag_rqueue, idiag_wqueue)"]),
        );
    }
}
