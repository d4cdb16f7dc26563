//! Reads the top level, `[reload]` and `[doctor]`.

use std::num::NonZeroU16;

use model::{Doctor, Reload};
use toml::de::DeTable;

use super::table::Table;
use super::{
    Document, RawService, acme, admin, authentication, listener, log, name, net, paths, route,
    service,
};
use crate::defaults;
use crate::diagnostic::{Diagnostic, Problems, Wrong};
use crate::schema::TOP;

/// Returns everything in the file that can be read.
pub(crate) fn document(toml: &DeTable<'_>, problems: &Problems) -> Document {
    let mut table = Table::new(toml, 0..0, &TOP, None, problems);
    let zone = table.text("zone", name);
    let workers =
        table.integer_if::<u16>("workers").and_then(|workers| NonZeroU16::new(workers.value));
    let (services, services_known) = services(&mut table);
    let (authentications, known) = table.named_tables("authentication");
    let authentications_known = known && !table.means("authentication");
    let document = Document {
        zone,
        workers,
        connections_max: table.integer("connections_max"),
        request_buffers_max_bytes: table.size("request_buffers_max").value,
        compression_memory_max_bytes: table.size("compression_memory_max").value,
        drain_delay: table.duration("drain_delay").value,
        drain_max: table.duration("drain_max").value,
        state_directory: table.text("state_directory", paths::absolute).map(|at| at.value),
        run_as: run_as(&mut table),
        admin: table.table("admin").map_or(Some(admin::default()), admin::read),
        metrics: table.table("metrics").map_or_else(admin::no_metrics, admin::metrics),
        acme: table.table("acme").map(acme::read),
        resolver: table.text("resolver", net::dns_server).map(|at| at.value),
        log: table.table("log").map_or_else(log::default, log::read),
        reload: table.table("reload").map_or(Reload { watch: defaults::WATCH }, reload),
        doctor: table.table("doctor").map_or_else(default_doctor, doctor),
        listeners: table.tables("listener").into_iter().map(listener::read).collect(),
        routes: table.tables("route").into_iter().map(route::read).collect(),
        acme_meant: table.means("acme"),
        listeners_meant: table.means("listener"),
        services_known,
        services,
        authentications_known,
        authentications: authentications
            .into_iter()
            .map(|(at, table)| authentication::read(at, table))
            .collect(),
    };
    table.finish();
    document
}

/// Returns the services in order of name, and whether all of their names could be read.
fn services(table: &mut Table<'_>) -> (Vec<RawService>, bool) {
    let mut services = Vec::new();
    let (tables, known) = table.named_tables("service");
    for (at, service_table) in tables {
        if let Err(wrong) = name(at.value) {
            let title = "a service needs another name".to_owned();
            table.problems.report(wrong.at(title, at.span.clone()));
        }
        services.push(service::read(at, service_table));
    }
    (services, known && !table.means("service"))
}

fn run_as(table: &mut Table<'_>) -> Option<(String, Option<String>)> {
    let account = |text: &str| match text {
        "" => Err(Wrong::new("a name is missing")),
        _ => Ok(text.to_owned()),
    };
    let user = table.text("user", account);
    let group = table.text("group", account);
    match (user, group) {
        (Some(user), group) => Some((user.value, group.map(|group| group.value))),
        (None, Some(group)) => {
            table.problems.report_absence(
                Diagnostic::error("`group` without `user`", group.span, "")
                    .help("write user = \"…\" beside it"),
            );
            None
        }
        (None, None) => None,
    }
}

fn reload(mut table: Table<'_>) -> Reload {
    let watch = table.boolean("watch");
    table.finish();
    Reload { watch }
}

fn default_doctor() -> Doctor {
    Doctor { interval: defaults::DOCTOR.then_some(defaults::DOCTOR_INTERVAL) }
}

fn doctor(mut table: Table<'_>) -> Doctor {
    let enabled = table.boolean("enabled");
    let interval = table.duration("interval").value;
    table.finish();
    Doctor { interval: enabled.then_some(interval) }
}
