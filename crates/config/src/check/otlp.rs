//! Checks that there is a collector if the access log is sent to it, and that secrets for it are not sent in clear
//! text.

use model::AccessLog;

use crate::diagnostic::{Diagnostic, Problems};
use crate::raw::Document;

pub(super) fn check(document: &Document, problems: &Problems) {
    let log = &document.log;
    if log.log.access == AccessLog::Otlp && document.otlp.is_none() && !document.otlp_meant {
        let span = log.access.clone().unwrap_or_default();
        problems.report_absence(
            Diagnostic::error("access = \"otlp\" without [otlp]", span, "which collector?")
                .help("write [otlp] and below it endpoint = \"http://127.0.0.1:4318\""),
        );
    }
    let Some(raw) = &document.otlp else { return };
    if raw.otlp.fields.iter().any(|(_, value)| value.is_secret()) {
        super::secret_in_clear_text(&raw.endpoint, "a secret of `header`", problems);
    }
}
