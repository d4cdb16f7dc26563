//! The changes from one configuration to the next, in the file's terms: `in_flight_max: 4 → 8`.
//!
//! IDs are compared by what they refer to, since adding a listener before the others changes the
//! IDs of all. Every field is named here, so that the compiler reports a new field of the model
//! that is not handled. Values that may be secrets are not shown.

mod affinity;
mod discover;
mod fleet;
mod listener;
mod registries;
mod route;
mod service;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use model::{
    AccessLog, Acme, Admin, AffinityKeyFile, Authentication, AuthenticationScheme,
    AutoscalerListener, Doctor, GatewayExposure, Kubernetes, Log, LogSample, Maintenance, Metrics,
    MetricsListener, Otlp, RedactQuery, Reload, ServiceId, Snapshot, StatusSet, TraceSample,
};

use model::units::show_duration;
use model::units::show_size;

/// The changes from one configuration to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// At the top level, in `[admin]`, `[log]` and the like.
    pub settings: Vec<String>,
    /// Listeners, by name.
    pub listeners: Changes,
    /// Routes, by name; a rule with several hosts becomes several routes of one name.
    pub routes: Changes,
    /// Services, by name. Their servers are in `servers`.
    pub services: Changes,
    /// Servers of services in both configurations, as `app: 10.0.1.5:8080`.
    pub servers: Changes,
}

/// Changes among things of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Names of new ones.
    pub added: Vec<String>,
    /// Names of removed ones.
    pub removed: Vec<String>,
    /// Those in both configurations that differ.
    pub changed: Vec<Changed>,
    /// Number of identical ones.
    pub unchanged: usize,
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// Its changes, one key each.
    pub what: Vec<String>,
}

/// Returns the changes from `before` to `after`.
pub fn diff(before: &Snapshot, after: &Snapshot) -> Diff {
    let mut diff = Diff {
        settings: settings(before, after),
        listeners: listener::changes(before, after),
        routes: route::changes(before, after),
        ..Diff::default()
    };
    service::changes(before, after, &mut diff.services, &mut diff.servers);
    diff
}

impl Diff {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let kinds = [&self.listeners, &self.routes, &self.services, &self.servers];
        self.settings.is_empty() && kinds.iter().all(|changes| changes.is_empty())
    }
}

impl Changes {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    /// Adds one that is in both configurations to `changed`, or counts it as unchanged.
    fn stays(&mut self, name: &str, words: Words) {
        if words.0.is_empty() {
            self.unchanged += 1;
        } else {
            self.changed.push(Changed { name: name.to_owned(), what: words.0 });
        }
    }
}

/// What Weir keeps over restarts, and the key that may be in place of one of these.
fn kept_words(
    (directory, key_file): (&Option<PathBuf>, &Option<AffinityKeyFile>),
    after: &Snapshot,
    words: &mut Words,
) {
    words.value("state_directory", directory, &after.state_directory, |directory| {
        or(directory.as_ref().map(|path| path.display()), "as the environment says")
    });
    words.hidden("affinity_key_file", key_file, &after.affinity_key_file);
}

fn settings(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let Snapshot {
        zone,
        workers,
        connections_max,
        request_buffers_max_bytes,
        compression_memory_max_bytes,
        mirror_memory_max_bytes,
        history_memory_max_bytes,
        drain_delay,
        drain_max,
        state_directory,
        affinity_key_file,
        run_as,
        admin,
        metrics,
        otlp,
        acme,
        resolver,
        registries,
        keda,
        external_metrics,
        kubernetes,
        fleet,
        log,
        reload,
        doctor,
        // Compared separately, one by one.
        listeners: _,
        routes: _,
        services: _,
        authentications: _,
    } = before;
    let mut words = Words::default();
    words.value("zone", zone, &after.zone, |zone| or(zone.as_ref(), "none"));
    words.value("workers", workers, &after.workers, |n| or(n.as_ref(), "one per core"));
    words.value("connections_max", connections_max, &after.connections_max, u32::to_string);
    for (key, before, after) in [
        ("request_buffers_max", request_buffers_max_bytes, after.request_buffers_max_bytes),
        (
            "compression_memory_max",
            compression_memory_max_bytes,
            after.compression_memory_max_bytes,
        ),
        ("mirror_memory_max", mirror_memory_max_bytes, after.mirror_memory_max_bytes),
        ("history_memory_max", history_memory_max_bytes, after.history_memory_max_bytes),
    ] {
        words.value(key, before, &after, |size| show_size(*size));
    }
    words.value("drain_delay", drain_delay, &after.drain_delay, time);
    words.value("drain_max", drain_max, &after.drain_max, time);
    kept_words((state_directory, affinity_key_file), after, &mut words);
    words.value("user", run_as, &after.run_as, |run_as| shown_user(run_as.as_ref()));
    admin_words(admin.as_ref(), after.admin.as_ref(), &mut words);
    metrics_words(metrics, &after.metrics, &mut words);
    otlp_words(otlp.as_ref(), after.otlp.as_ref(), &mut words);
    acme_words(acme.as_deref(), after.acme.as_deref(), &mut words);
    words.value("resolver", resolver, &after.resolver, |servers| {
        if servers.is_empty() { "the system's".to_owned() } else { joined(servers) }
    });
    registries::words(registries, &after.registries, &mut words);
    kubernetes_words(kubernetes.as_deref(), after.kubernetes.as_deref(), &mut words);
    autoscaler_words("keda", [keda, &after.keda], &mut words);
    let external = [external_metrics, &after.external_metrics];
    autoscaler_words("kubernetes.external_metrics", external, &mut words);
    fleet::words(fleet.as_deref(), after.fleet.as_deref(), &mut words);
    log_settings(log, &after.log, &mut words);
    reload_words(*reload, after.reload, &mut words);
    doctor_words(doctor, &after.doctor, &mut words);
    authentication_words(before, after, &mut words);
    words.0
}

fn reload_words(before: Reload, after: Reload, words: &mut Words) {
    let Reload { watch } = before;
    words.value("reload.watch", &watch, &after.watch, yes_no);
}

fn shown_user(run_as: Option<&(String, Option<String>)>) -> String {
    match run_as {
        None => "none".to_owned(),
        Some((user, None)) => user.clone(),
        Some((user, Some(group))) => format!("{user}, group {group}"),
    }
}

fn admin_words(before: Option<&Admin>, after: Option<&Admin>, words: &mut Words) {
    words.value("admin.address", &before, &after, |admin| {
        or(admin.map(|Admin { address, token_file: _ }| address), "off")
    });
    words.value("admin.token_file", &before, &after, |admin| {
        let path = admin.and_then(|admin| admin.token_file.as_ref());
        or(path.map(|path| path.display()), "none")
    });
}

fn kubernetes_words(before: Option<&Kubernetes>, after: Option<&Kubernetes>, words: &mut Words) {
    let (Some(before), Some(after)) = (before, after) else {
        return words.value("kubernetes", &before.is_some(), &after.is_some(), yes_no);
    };
    let Kubernetes { kubeconfig, controller, namespaces, namespace, external_names, exposure } =
        before;
    words.value("kubernetes.kubeconfig", kubeconfig, &after.kubeconfig, |path| {
        or(path.as_ref().map(|path| path.display()), "the usual one")
    });
    words.value("kubernetes.controller", controller, &after.controller, ToString::to_string);
    words.value("kubernetes.namespaces", namespaces, &after.namespaces, |all| {
        if all.is_empty() { "all".to_owned() } else { all.join(" ") }
    });
    words.value("kubernetes.namespace", namespace, &after.namespace, |it| {
        or(it.as_ref(), "that of the Pod")
    });
    let external = &after.external_names;
    words.value("kubernetes.external_names", external_names, external, yes_no);
    words.value("kubernetes.exposure", exposure, &after.exposure, |exposure| match exposure {
        GatewayExposure::Services { pods, port_first, port_last } => {
            let labels: Vec<_> = pods.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("Services, Pods {}, ports {port_first} to {port_last}", labels.join(" "))
        }
        GatewayExposure::Addresses(addresses) => format!("addresses {}", joined(addresses)),
    });
}

fn doctor_words(before: &Doctor, after: &Doctor, words: &mut Words) {
    let Doctor { interval } = before;
    words.value("doctor.enabled", &interval.is_some(), &after.interval.is_some(), yes_no);
    if let (Some(before), Some(after)) = (interval, &after.interval) {
        words.value("doctor.interval", before, after, time);
    }
}

/// Says which authentications differ. Their files hold secrets.
fn authentication_words(before: &Snapshot, after: &Snapshot, words: &mut Words) {
    let all = before.authentications.iter().chain(&after.authentications);
    let names: BTreeSet<&str> = all.map(|one| &*one.name).collect();
    for name in names {
        let of = |snapshot: &Snapshot| {
            let one = snapshot.authentications.iter().find(|one| *one.name == *name);
            one.map(|one| by_name(one, snapshot))
        };
        let key = format!("authentication.{name}");
        match (of(before), of(after)) {
            (Some(before), Some(after)) => words.hidden(&key, &before, &after),
            (before, after) => words.value(&key, &before.is_some(), &after.is_some(), |there| {
                if *there { "there" } else { "none" }.to_owned()
            }),
        }
    }
}

/// Returns an authentication with the service that it asks by name: the position of that changes with
/// other services.
fn by_name(one: &Authentication, snapshot: &Snapshot) -> (Authentication, Option<Arc<str>>) {
    let mut one = one.clone();
    let AuthenticationScheme::Forward(rules) = &mut one.scheme else { return (one, None) };
    let id = std::mem::replace(&mut rules.service, ServiceId(0));
    let name = Arc::clone(&snapshot.service(id).name);
    (one, Some(name))
}

fn metrics_words(before: &Metrics, after: &Metrics, words: &mut Words) {
    let Metrics { listener, server_histograms, statsd, graphite, interval, prefix } = before;
    words.value("metrics.address", listener, &after.listener, |listener| {
        or(listener.as_ref().map(|listener| listener.address), "none")
    });
    let token = |listener: &Option<MetricsListener>| listener.as_ref()?.token_file.clone();
    words.value("metrics.token_file", &token(listener), &token(&after.listener), |path| {
        or(path.as_ref().map(|path| path.display()), "none")
    });
    let tls = |listener: &Option<MetricsListener>| listener.as_ref()?.tls.clone();
    words.hidden("metrics.tls", &tls(listener), &tls(&after.listener));
    words.value("metrics.server_histograms", server_histograms, &after.server_histograms, yes_no);
    words.value("metrics.statsd", statsd, &after.statsd, |to| or(to.as_ref(), "none"));
    words.value("metrics.graphite", graphite, &after.graphite, |to| or(to.as_ref(), "none"));
    words.value("metrics.interval", interval, &after.interval, time);
    words.value("metrics.prefix", prefix, &after.prefix, String::clone);
}

/// Says how a listener for autoscalers differs, before and after.
fn autoscaler_words(table: &str, listeners: [&Option<AutoscalerListener>; 2], words: &mut Words) {
    let [before, after] = listeners.map(|one| one.as_ref().map(|one| one.address));
    words.value(&format!("{table}.address"), &before, &after, |address| or(*address, "none"));
    let [before, after] = listeners.map(|one| one.as_ref().and_then(|one| one.tls.as_ref()));
    words.hidden(&format!("{table}.tls"), &before, &after);
}

fn otlp_words(before: Option<&Otlp>, after: Option<&Otlp>, words: &mut Words) {
    words.value("otlp.endpoint", &before, &after, |otlp| {
        or(otlp.map(|otlp| &otlp.collector.url), "none")
    });
    let (Some(before), Some(after)) = (before, after) else { return };
    let Otlp { collector, fields, service_name, traces, metrics_interval, logs } = before;
    words.hidden("otlp.ca", &collector.ca, &after.collector.ca);
    words.hidden("otlp.header", fields, &after.fields);
    words.value("otlp.service_name", service_name, &after.service_name, String::clone);
    let is_on = |traces: &Option<TraceSample>| yes_no(&traces.is_some());
    words.value("otlp.traces", traces, &after.traces, is_on);
    if let (Some(before), Some(after)) = (traces, &after.traces) {
        words.value("otlp.sample", &before.shares, &after.shares, shares);
        let (before, after) = (before.per_cause_max, after.per_cause_max);
        words.value("otlp.traces_per_cause_max", &before, &after, u32::to_string);
    }
    words.value("otlp.metrics", metrics_interval, &after.metrics_interval, |interval| {
        interval.map_or_else(|| "off".to_owned(), |every| format!("every {}", time(&every)))
    });
    words.value("otlp.logs", logs, &after.logs, yes_no);
}

/// Shows shares by result.
fn shares(LogSample(shares): &LogSample) -> String {
    if shares.is_empty() {
        return "all".to_owned();
    }
    let shown: Vec<_> = shares.iter().map(|(of, share)| format!("{of} {share}")).collect();
    shown.join(", ")
}

fn acme_words(before: Option<&Acme>, after: Option<&Acme>, words: &mut Words) {
    words.value("acme.directory", &before, &after, |acme| {
        or(acme.map(|acme| &acme.directory), "none")
    });
    // Each certificate is one of a listener, which shows it.
    let rest =
        |acme: &Acme| Acme { certificates: Vec::new(), directory: "".into(), ..acme.clone() };
    if let (Some(before), Some(after)) = (before, after) {
        words.hidden("acme", &rest(before), &rest(after));
    }
}

fn log_settings(before: &Log, after: &Log, words: &mut Words) {
    let Log {
        access,
        format,
        fields,
        redact_query,
        sample,
        tcp_info,
        tcp_info_raised,
        decisions,
        explain_token_file,
    } = before;
    words.value("log.access", access, &after.access, AccessLog::to_string);
    words.value("log.format", format, &after.format, |format| format.as_str().to_owned());
    words.value("log.fields", fields, &after.fields, |fields| {
        or(fields.as_ref().map(|fields| joined(fields)), "the default")
    });
    words.value("log.redact_query", redact_query, &after.redact_query, |redact| match redact {
        RedactQuery::Nothing => "nothing".to_owned(),
        RedactQuery::Names(names) => names.join(" "),
        RedactQuery::Everything => "*".to_owned(),
    });
    words.value("log.sample", sample, &after.sample, shares);
    let share = |(share, raised): &(f64, bool)| match raised {
        true => format!("{share}, more where there is little traffic"),
        false => share.to_string(),
    };
    let tcp_info = (*tcp_info, *tcp_info_raised);
    words.value("log.tcp_info", &tcp_info, &(after.tcp_info, after.tcp_info_raised), share);
    words.value("log.decisions", decisions, &after.decisions, f64::to_string);
    words.value("log.explain_token_file", explain_token_file, &after.explain_token_file, |path| {
        or(path.as_ref().map(|path| path.display()), "the admin API's")
    });
}

/// The changes of one thing, one key each.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    /// Adds `key: before → after`, if they differ.
    fn value<T: PartialEq>(
        &mut self,
        key: &str,
        before: &T,
        after: &T,
        show: impl Fn(&T) -> String,
    ) {
        if before == after {
            return;
        }
        let (before, after) = (show(before), show(after));
        // They may differ and still look the same.
        if before != after {
            self.0.push(format!("{key}: {before} → {after}"));
        }
    }

    /// Adds `key changed`, if they differ: for long values, and possible secrets.
    fn hidden<T: PartialEq>(&mut self, key: &str, before: &T, after: &T) {
        if before != after {
            self.0.push(format!("{key} changed"));
        }
    }
}

fn joined(values: &[impl Display]) -> String {
    let shown: Vec<_> = values.iter().map(ToString::to_string).collect();
    shown.join(" ")
}

fn or(value: Option<impl Display>, none: &str) -> String {
    value.map_or_else(|| none.to_owned(), |value| value.to_string())
}

fn time(time: &Duration) -> String {
    show_duration(*time)
}

fn statuses(statuses: &StatusSet) -> String {
    or((!statuses.0.is_empty()).then_some(statuses), "none")
}

fn maintenance(maintenance: Option<&Maintenance>) -> String {
    match maintenance {
        None => "off".to_owned(),
        Some(Maintenance { retry_after: None }) => "on".to_owned(),
        Some(Maintenance { retry_after: Some(time) }) => {
            format!("on, Retry-After {}", show_duration(*time))
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "shown as every other value is")]
fn yes_no(value: &bool) -> String {
    value.to_string()
}
