//! Weir does not see changes to the Kubernetes cluster.
//!
//! **When.** For at least 60 seconds, the API server has not answered, or Weir cannot read some kinds of objects: warning.
//! Or the thread of Weir that reads the cluster has ended: critical. Critical, too, if not everything has been read once,
//! since Weir serves no Gateway then.
//!
//! **Why.** Weir goes on with what it knows, so requests are served. But it does not see new Pods, routes and
//! certificates: new Pods get no requests, and removed ones still do until their checks fail. If only single Secrets cannot
//! be read, only their new contents are not seen: a renewed certificate is not used.
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

/// What fails without effect on what Weir sees: it is no evidence.
const LEASE: &str = "the Lease";

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
            ("Fix what the reasons name, for example Weir's role", "weir status --json")
        }
    };
    out.push(
        out.finding("kubernetes", severity, Certainty::Certain, what)
            .evidences(evidence(&problem, state))
            .why(why(&problem, state))
            .remedy(remedy, &[command], "none")
            .verify(
                "weir status says that Kubernetes is connected, and names nothing that cannot be read",
            )
            .source(&["the state of the connection in /api/v1/status"]),
    );
}

/// Returns the consequence.
fn why(problem: &Problem, state: &TrafficKubernetes) -> &'static str {
    let is_single = |what: &str| what.starts_with("Secret ") || what.starts_with("ConfigMap ");
    let mut unread = unread(state).peekable();
    match problem {
        Problem::Partly(_) if !state.awaited.is_empty() => {
            "Weir serves Gateways only once all of this has been read."
        }
        Problem::Partly(_)
            if unread.peek().is_some() && unread.all(|(what, _)| is_single(what)) =>
        {
            "New contents of these Secrets and ConfigMaps are not seen: renewed certificates are not \
             used."
        }
        Problem::Partly(_) => {
            "Changes to these kinds of objects are not seen, such as new Pods, routes and \
             certificates."
        }
        Problem::Ended | Problem::Disconnected(_) => {
            "New Pods, routes and certificates are not seen."
        }
    }
}

/// Returns what has not been read, with the reason.
fn unread(state: &TrafficKubernetes) -> impl Iterator<Item = (&str, &str)> {
    let failing = state.failing.iter().filter(|(what, _)| *what != LEASE);
    let failing = failing.map(|(what, why)| (what.as_str(), why.as_str()));
    let awaited = state.awaited.iter().filter(|what| !state.failing.contains_key(*what));
    failing.chain(awaited.map(|what| (what.as_str(), "not read yet")))
}

fn evidence(problem: &Problem, state: &TrafficKubernetes) -> Vec<Evidence> {
    let reason = if state.error.is_empty() { "unknown" } else { &state.error };
    let mut unread = unread(state).take(SHOWN_MAX).peekable();
    if !matches!(problem, Problem::Partly(_)) || unread.peek().is_none() {
        return vec![Evidence::text("reason", reason.to_owned())];
    }
    unread.map(|(what, why)| Evidence::text(what, why.to_owned())).collect()
}
