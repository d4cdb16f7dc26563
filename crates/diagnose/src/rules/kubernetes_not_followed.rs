//! Weir does not see changes to the Kubernetes cluster.
//!
//! **When.** The API server has not answered for at least 60 seconds: warning. Or the thread of Weir that reads the
//! cluster has ended: critical. Critical, too, if not everything has been read once, since Weir serves no Gateway then.
//!
//! **Why.** Weir goes on with what it knows, so requests are served. But it does not see new Pods, routes and
//! certificates: new Pods get no requests, and removed ones still do until their checks fail.
//!
//! **What to do.** Read the reason. Does the API server run, and can this host reach it? Is the token or the certificate
//! of the kubeconfig or of the service account still valid? If the thread has ended, restart Weir and report the line in
//! its log.

use crate::facts::Traffic;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::Out;
use crate::words;

/// Shorter absences are those of a restart or an upgrade of the API server.
const DISCONNECTED_S_MIN: u64 = 60;

pub(super) fn check(traffic: &Traffic, out: &mut Out) {
    let Some(state) = &traffic.kubernetes else { return };
    let away = state.disconnected_s.filter(|seconds| *seconds >= DISCONNECTED_S_MIN);
    let what = match away {
        _ if state.has_ended => {
            "The thread that reads the Kubernetes cluster has ended; Weir serves what it knew then."
                .to_owned()
        }
        Some(seconds) => {
            let since = words::duration(std::time::Duration::from_secs(seconds));
            let served = if state.awaited.is_empty() { "what it knows" } else { "no Gateway yet" };
            format!("The Kubernetes API server has not answered for {since}; Weir serves {served}.")
        }
        None => return,
    };
    let is_critical = state.has_ended || !state.awaited.is_empty();
    let severity = if is_critical { Severity::Critical } else { Severity::Warning };
    let (remedy, command) = if state.has_ended {
        ("Restart Weir, and report the error in its log", "journalctl -u weir")
    } else {
        (
            "Let the API server answer again; the reason says what is wrong",
            "kubectl get --raw /readyz",
        )
    };
    let reason = if state.error.is_empty() { "unknown" } else { &state.error };
    out.push(
        out.finding("kubernetes", severity, Certainty::Certain, what)
            .evidence(Evidence::text("reason", reason.to_owned()))
            .why("New Pods, routes and certificates are not seen.")
            .remedy(remedy, &[command], "none")
            .verify("weir status says that Kubernetes is connected")
            .source(&["the state of the connection in /api/v1/status"]),
    );
}
