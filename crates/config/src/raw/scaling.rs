//! Reads `scaling` of a service.

use model::Scaling;

use super::table::Table;
use crate::diagnostic::Diagnostic;

/// `has_limit`: the servers have a concurrency limit, or it was meant to have one.
pub(super) fn read(mut table: Table<'_>, has_limit: bool) -> Scaling {
    let (servers_min, servers_max) =
        (table.integer::<u32>("servers_min"), table.integer::<u32>("servers_max"));
    let target = table.number_if("in_flight_target");
    if servers_min.value > servers_max.value && table.has_or_means("servers_max") {
        table.problems.report(
            Diagnostic::error(
                "`servers_min` is above `servers_max`",
                servers_min.span.clone(),
                "the least number",
            )
            .other(servers_max.span.clone(), "the highest number"),
        );
    }
    if !has_limit && target.is_none() && !table.means("in_flight_target") {
        table.problems.report_absence(
            Diagnostic::error(
                "`scaling` of servers without a concurrency limit",
                table.span.clone(),
                "how many requests may a server have?",
            )
            .help("write in_flight_max in the service, or in_flight_target here"),
        );
    }
    let scaling = Scaling {
        servers_min: servers_min.value,
        servers_max: servers_max.value,
        utilization: table.number("utilization").value,
        in_flight_target: target.map(|at| at.value),
        scale_in_after: table.duration("scale_in_after").value,
        idle_after: table.duration("idle_after").value,
    };
    table.finish();
    scaling
}
