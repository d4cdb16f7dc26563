//! Reads the top level, `[reload]` and `[doctor]`.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::num::NonZeroU16;

use model::{Doctor, Reload};
use toml::de::DeTable;

use super::defaults::Defaults;
use super::table::{Table, is_empty_list};
use super::{
    Document, RawAuthentication, RawListener, RawRoute, RawService, acme, admin, authentication,
    autoscaler, fleet, kubernetes, listener, log, name, net, otlp, paths, registries, route,
    service,
};
use crate::defaults as usual;
use crate::diagnostic::{At, Diagnostic, Problems, Span, quote};
use crate::include::Pattern;
use crate::schema::{INCLUDED, TOP};

/// Returns the entries of `include` that can be read.
pub(crate) fn includes(toml: &DeTable<'_>, problems: &Problems) -> Vec<At<Pattern>> {
    Table::quiet(toml, 0..0, &TOP, None, problems)
        .texts("include", Pattern::parse)
        .unwrap_or_default()
}

/// Returns everything in the files that can be read, from the tree of each and where its positions begin;
/// the configuration file's own comes first.
pub(crate) fn document(files: &[(&DeTable<'_>, usize)], problems: &Problems) -> Document {
    let mut tables = files.iter().enumerate().map(|(index, &(toml, start))| {
        let spec = if index == 0 { &TOP } else { &INCLUDED };
        Table::new(toml, start..start, spec, None, problems)
    });
    // There always is a first file.
    let empty = DeTable::new();
    let mut table = tables.next().unwrap_or_else(|| Table::new(&empty, 0..0, &TOP, None, problems));
    let defaults = table.table("defaults").map(Defaults::read).unwrap_or_default();
    let mut shared = Shared { defaults, ..Shared::default() };
    shared.add(&mut table);
    for mut included in tables {
        shared.add(&mut included);
        included.finish();
    }
    let zone = table.text("zone", name);
    let (kubernetes, external_metrics) = table.table("kubernetes").map(kubernetes::read).unzip();
    let workers =
        table.integer_if::<u16>("workers").and_then(|workers| NonZeroU16::new(workers.value));
    // Read before; see `includes`.
    table.peek("include");
    let document = Document {
        zone,
        workers,
        connections_max: table.integer("connections_max"),
        request_buffers_max_bytes: table.size("request_buffers_max").value,
        compression_memory_max_bytes: table.size("compression_memory_max").value,
        mirror_memory_max_bytes: table.size("mirror_memory_max").value,
        history_memory_max_bytes: table.size("history_memory_max").value,
        drain_delay: table.duration("drain_delay").value,
        drain_max: table.duration("drain_max").value,
        state_directory: table.text("state_directory", paths::absolute).map(|at| at.value),
        affinity_key_file: table.text("affinity_key_file", paths::file_path),
        run_as: run_as(&mut table),
        admin: table.table("admin").map_or(Some(admin::default()), admin::read),
        metrics: table.table("metrics").map_or_else(admin::no_metrics, admin::metrics),
        otlp_meant: table.has_or_means("otlp"),
        otlp: table.table("otlp").and_then(otlp::read),
        acme: table.table("acme").map(acme::read),
        resolver: resolver(&mut table),
        registries: registries::read(&mut table),
        kubernetes_meant: table.has_or_means("kubernetes"),
        kubernetes,
        external_metrics: external_metrics.flatten(),
        keda: table.table("keda").and_then(autoscaler::keda),
        fleet_meant: table.has_or_means("fleet"),
        fleet: table.table("fleet").map(fleet::read),
        log: table.table("log").map_or_else(log::default, log::read),
        reload: table.table("reload").map_or(Reload { watch: usual::WATCH }, reload),
        doctor: table.table("doctor").map_or_else(default_doctor, doctor),
        listeners: shared.listeners,
        routes: shared.routes,
        acme_meant: table.means("acme"),
        listeners_meant: shared.listeners_meant,
        services_known: !shared.services_unknown,
        services: shared.services.into_values().collect(),
        authentications_known: !shared.authentications_unknown,
        authentications: shared.authentications.into_values().collect(),
    };
    table.finish();
    document
}

fn resolver(table: &mut Table<'_>) -> Vec<SocketAddr> {
    /// As many as resolv.conf may have.
    const SERVERS_MAX: usize = 3;
    let servers = table.texts("resolver", net::dns_server).unwrap_or_default();
    let wrong = match servers.len() {
        0 if is_empty_list(table.peek("resolver")) => Some("which server?"),
        SERVERS_MAX.. if servers.len() > SERVERS_MAX => Some("at most 3"),
        _ => None,
    };
    if let Some(label) = wrong {
        let title = "not a list of one to three DNS servers";
        let error = Diagnostic::error(title, table.span_of("resolver"), label);
        table.problems.report(error.help("leave `resolver` out to use those in /etc/resolv.conf"));
    }
    servers.into_iter().map(|at| at.value).collect()
}

/// The tables that may be in several files.
#[derive(Default)]
struct Shared<'t> {
    defaults: Defaults<'t>,
    listeners: Vec<RawListener>,
    listeners_meant: bool,
    routes: Vec<RawRoute>,
    services: BTreeMap<&'t str, RawService>,
    services_unknown: bool,
    authentications: BTreeMap<&'t str, RawAuthentication>,
    authentications_unknown: bool,
    /// Where the names stand in their headings.
    service_names: HashMap<&'t str, Span>,
    authentication_names: HashMap<&'t str, Span>,
}

impl<'t> Shared<'t> {
    /// Adds the tables of a file.
    fn add(&mut self, table: &mut Table<'t>) {
        self.services(table);
        self.authentications(table);
        let Defaults { listener, route, .. } = self.defaults;
        let listeners = table.tables("listener").into_iter();
        self.listeners.extend(listeners.map(|table| listener::read(table.with_defaults(listener))));
        self.listeners_meant |= table.means("listener");
        let routes = table.tables("route").into_iter();
        self.routes.extend(routes.map(|table| route::read(table.with_defaults(route))));
    }

    fn services(&mut self, table: &mut Table<'t>) {
        let (tables, known) = table.named_tables("service");
        self.services_unknown |= !known || table.means("service");
        for (at, service_table) in tables {
            if let Err(wrong) = name(at.value) {
                let title = "a service needs another name".to_owned();
                table.problems.report(wrong.at(title, at.span.clone()));
            }
            let is_new = is_new("service", &at, &mut self.service_names, table.problems);
            let service_table = service_table.with_defaults(self.defaults.service);
            let (key, service) = (at.value, service::read(at, service_table));
            if is_new {
                self.services.insert(key, service);
            }
        }
    }

    fn authentications(&mut self, table: &mut Table<'t>) {
        let (tables, known) = table.named_tables("authentication");
        self.authentications_unknown |= !known || table.means("authentication");
        for (at, of_name) in tables {
            let is_new =
                is_new("authentication", &at, &mut self.authentication_names, table.problems);
            let (key, authentication) = (at.value, authentication::read(at, of_name));
            if is_new {
                self.authentications.insert(key, authentication);
            }
        }
    }
}

/// Returns whether a table of this name was not in a file before; otherwise reports both places.
fn is_new<'t>(
    what: &str,
    at: &At<&'t str>,
    names: &mut HashMap<&'t str, Span>,
    problems: &Problems,
) -> bool {
    let Some(first) = names.get(at.value) else {
        names.insert(at.value, at.span.clone());
        return true;
    };
    problems.report(
        Diagnostic::error(
            format!("two {what}s are called {}", quote(at.value)),
            at.span.clone(),
            "again here",
        )
        .other(first.clone(), "first here")
        .help(format!("write all of [{what}.NAME] in one file, or choose another name")),
    );
    false
}

fn run_as(table: &mut Table<'_>) -> Option<(String, Option<String>)> {
    let user = table.text("user", super::account);
    let group = table.text("group", super::account);
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
    Doctor { interval: usual::DOCTOR.then_some(usual::DOCTOR_INTERVAL) }
}

fn doctor(mut table: Table<'_>) -> Doctor {
    let enabled = table.boolean("enabled");
    let interval = table.duration("interval").value;
    table.finish();
    Doctor { interval: enabled.then_some(interval) }
}
