//! Checks `[consul]` against the services that use it.

use crate::diagnostic::{Diagnostic, Problems};
use crate::raw::{Document, RawConsul};

pub(super) fn check(document: &Document, problems: &Problems) {
    let Some(raw) = &document.consul else { return };
    if document.has_consul && !document.uses_consul() && document.services_known {
        let span = raw.address.span.clone();
        problems.report_absence(
            Diagnostic::warning("no service takes its servers from Consul", span, "not used")
                .help("write discover = { consul = \"NAME\" } in a [service.NAME]"),
        );
    }
    secret_in_clear_text(raw, problems);
}

fn secret_in_clear_text(raw: &RawConsul, problems: &Problems) {
    let address = &raw.address;
    let is_seen = !address.value.is_https() && !address.value.is_of_this_machine();
    if is_seen && raw.consul.token.is_some() {
        problems.report(
            Diagnostic::warning(
                "the token of Consul is sent in clear text",
                address.span.clone(),
                "anyone on the way can read it",
            )
            .help("write https://"),
        );
    }
}
