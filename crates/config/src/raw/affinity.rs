//! Reads `affinity` of a service and of a route.

use std::path::PathBuf;

use model::{Affinity, RouteAffinity, SessionCarrier};

use super::table::Table;
use super::{http, paths};
use crate::diagnostic::{At, Diagnostic};

/// The affinity of a route, completed from its file.
#[derive(Debug)]
pub(crate) struct RawRouteAffinity {
    pub(crate) affinity: RouteAffinity,
    /// The contents become the key.
    pub(crate) key_file: Option<At<PathBuf>>,
}

/// Reads that of a service, and the file of its key, which `files` reads.
pub(super) fn of_service(mut table: Table<'_>) -> (Option<Affinity>, Option<At<PathBuf>>) {
    let cookie = table.text("cookie", http::cookie_name);
    let max_age = table.duration_if("max_age").map(|at| at.value);
    let key_file = table.text("key_file", paths::file_path);
    table.finish();
    let named = |cookie: At<String>| Affinity { cookie: cookie.value, max_age, key_file: None };
    (cookie.map(named), key_file)
}

/// Reads that of a route; `None`: it is not known what carries its sessions.
pub(super) fn of_route(mut table: Table<'_>) -> Option<RawRouteAffinity> {
    let lifetime_max = table.duration_if("lifetime_max").map(|at| at.value);
    let idle_max = table.duration_if("idle_max").map(|at| at.value);
    let key_file = table.text("key_file", paths::file_path);
    let carrier = carrier(&mut table);
    if let Some(SessionCarrier::Cookie { is_permanent: true, .. }) = carrier
        && !table.has_or_means("lifetime_max")
    {
        let span = table.span_of("permanent");
        let diagnostic = Diagnostic::error(
            "a permanent cookie without `lifetime_max`",
            span,
            "for how long should browsers keep it?",
        );
        table.problems.report(diagnostic.help("write lifetime_max = \"8h\", for example"));
    }
    table.finish();
    let carrier = carrier?;
    let scope = carrier.scope();
    let affinity = RouteAffinity { carrier, scope, lifetime_max, idle_max, key_file: None };
    Some(RawRouteAffinity { affinity, key_file })
}

fn carrier(table: &mut Table<'_>) -> Option<SessionCarrier> {
    let cookie = table.text("cookie", http::cookie_name);
    let header = table.text("header", http::own_field_name);
    let is_permanent = table.boolean("permanent");
    match (cookie, header) {
        (Some(cookie), None) => Some(SessionCarrier::Cookie { name: cookie.value, is_permanent }),
        (None, Some(header)) => {
            if is_permanent {
                table.problems.report(Diagnostic::error(
                    "`permanent` has no effect on a header",
                    table.span_of("permanent"),
                    "only cookies can be permanent",
                ));
            }
            Some(SessionCarrier::Field(header.value))
        }
        (Some(cookie), Some(header)) => {
            table.problems.report(
                Diagnostic::error(
                    "a session is in a cookie or in a header, not both",
                    header.span,
                    "leave one out",
                )
                .other(cookie.span, "or this"),
            );
            None
        }
        (None, None) => {
            if !table.has_or_means("cookie") && !table.has_or_means("header") {
                table.problems.report_absence(
                    Diagnostic::error(
                        "an affinity without `cookie` or `header`",
                        table.span.clone(),
                        "where is the session?",
                    )
                    .help("write a name, as in cookie = \"shop-session\""),
                );
            }
            None
        }
    }
}
