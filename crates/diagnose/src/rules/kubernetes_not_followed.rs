//! Weir does not see changes to the Kubernetes cluster.
//!
//! **When.** For at least 60 seconds, the API server has not answered, or Weir cannot read some kinds of objects: warning.
//! Or the thread of Weir that reads the cluster has ended: critical. Critical, too, if not everything has been read once,
//! since Weir serves no Gateway then.
//!
//! **Why.** Weir goes on with what it knows, so requests are served. But it does not see new Pods, routes and
//! certificates: new Pods get no requests, and removed ones still do until their checks fail.
//!
//! **What to do.** Read the reason. Does the API server run, and can this host reach it? Is the token or the certificate
//! of the kubeconfig or of the service account still valid? Does Weir's role permit what the reason names? If the thread
//! has ended, restart Weir and report the line in its log.

use crate::facts::{Traffic, TrafficKubernetes};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Shorter absences are those of a restart or an upgrade of the API server.
const FOR_S_MIN: u64 = 60;

/// At most this many things that cannot be read are evidence.
const SHOWN_MAX: usize = 5;

/// What keeps Weir from following the cluster.
enum Problem {
    Ended,
    Disconnected(u64),
    /// For this long, some kinds have failed, or are awaited at the start.
    Partly(u64),
}

impl Problem {
    fn of(state: &TrafficKubernetes) -> Option<Problem> {
        let lasting = |seconds: Option<u64>| seconds.filter(|seconds| *seconds >= FOR_S_MIN);
        if state.has_ended {
            return Some(Problem::Ended);
        }
        let disconnected = lasting(state.disconnected_s).map(Problem::Disconnected);
        disconnected.or_else(|| lasting(state.not_followed_s).map(Problem::Partly))
    }
}

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(state) = &traffic.kubernetes else { return };
    let Some(problem) = Problem::of(state) else { return };
    let served = if state.awaited.is_empty() { "what it knows" } else { "no Gateway yet" };
    let shown = |seconds: u64| words::duration(std::time::Duration::from_secs(seconds));
    let what = match problem {
        Problem::Ended => {
            "The thread that reads the Kubernetes cluster has ended; Weir serves what it knew then."
                .to_owned()
        }
        Problem::Disconnected(seconds) => format!(
            "The Kubernetes API server has not answered for {}; Weir serves {served}.",
            shown(seconds)
        ),
        Problem::Partly(seconds) => format!(
            "For {}, Weir has not been able to read all that it needs of the Kubernetes cluster; it serves {served}.",
            shown(seconds)
        ),
    };
    let is_critical = state.has_ended || !state.awaited.is_empty();
    let severity = if is_critical { Severity::Critical } else { Severity::Warning };
    let (remedy, command) = match problem {
        Problem::Ended => ("Restart Weir, and report the error in its log", "journalctl -u weir"),
        Problem::Disconnected(_) => (
            "Let the API server answer again; the reason says what is wrong",
            "kubectl get --raw /readyz",
        ),
        Problem::Partly(_) => {
            ("Let Weir read it; the reason says what is wrong", "weir status --json")
        }
    };
    out.push(
        out.finding("kubernetes", severity, Certainty::Certain, what)
            .evidences(evidence(&problem, state))
            .why("New Pods, routes and certificates are not seen.")
            .remedy(remedy, &[command], "none")
            .verify(
                "weir status says that Kubernetes is connected, and names nothing that cannot be read",
            )
            .source(&["the state of the connection in /api/v1/status"]),
    );
}

fn evidence(problem: &Problem, state: &TrafficKubernetes) -> Vec<Evidence> {
    let reason = if state.error.is_empty() { "unknown" } else { &state.error };
    let is_partly = matches!(problem, Problem::Partly(_));
    if !is_partly || state.failing.is_empty() && state.awaited.is_empty() {
        return vec![Evidence::text("reason", reason.to_owned())];
    }
    let failing = state.failing.iter().map(|(what, why)| (what, why.as_str()));
    let awaited = state.awaited.iter().filter(|what| !state.failing.contains_key(*what));
    let all = failing.chain(awaited.map(|what| (what, "not read yet")));
    all.take(SHOWN_MAX).map(|(what, why)| Evidence::text(what, why.to_owned())).collect()
}
