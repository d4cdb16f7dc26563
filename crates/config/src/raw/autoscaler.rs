//! Reads `[keda]` and `external_metrics` of `[kubernetes]`: listeners for autoscalers.

use std::net::SocketAddr;

use super::table::Table;
use super::{RawListenerTls, net, tls};
use crate::diagnostic::{At, Diagnostic};

/// A listener for autoscalers.
#[derive(Debug)]
pub(crate) struct RawAutoscaler {
    pub(crate) address: At<SocketAddr>,
    pub(crate) tls: Option<RawListenerTls>,
}

/// Reads `[keda]`. `None` after a mistake, which is reported.
pub(super) fn keda(mut table: Table<'_>) -> Option<RawAutoscaler> {
    let address = table.text("address", net::ip_address);
    let tls = tls::of_listener(&mut table);
    table.finish();
    Some(RawAutoscaler { address: address?, tls })
}

/// Reads `external_metrics`. `None` after a mistake, which is reported.
pub(super) fn external_metrics(table: Table<'_>) -> Option<RawAutoscaler> {
    let problems = table.problems;
    let read = keda(table)?;
    if let Some(tls) = read.tls.as_ref().filter(|tls| tls.clients.is_some()) {
        let title = "`client_certificates` of external metrics come from the cluster";
        problems.report(
            Diagnostic::error(title, tls.span.clone(), "has `client_certificates`")
                .help("remove it: the API server's authority is in a ConfigMap, which Weir reads"),
        );
    }
    Some(read)
}
