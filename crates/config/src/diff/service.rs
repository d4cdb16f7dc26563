//! Changes of services and their servers.

use std::sync::Arc;

use foldhash::HashMap;
use model::{
    Balance, Check, CheckKind, HashKey, HttpVersion, PassiveHealth, Pattern, QueueLimits, Retries,
    Scaling, ScalingAction, ScalingCall, ServerSpec, ServerTarget, Service, ServiceTimeouts,
    Snapshot, ZonePolicy,
};

use super::{Changes, Words, affinity as affinities, or, time, yes_no};
use model::units::{show_duration, show_size};

/// Services are matched by name, servers by their name in the file.
pub(super) fn changes(
    before: &Snapshot,
    after: &Snapshot,
    services: &mut Changes,
    servers: &mut Changes,
) {
    let mut new: HashMap<&str, &Arc<Service>> =
        after.services.iter().map(|service| (&*service.name, service)).collect();
    for old in &before.services {
        match new.remove(&*old.name) {
            Some(new) if Arc::ptr_eq(old, new) => {
                services.unchanged += 1;
                servers.unchanged += old.servers.len();
            }
            Some(new) => {
                services.stays(&old.name, words(old, new));
                server_changes(old, new, servers);
            }
            None => services.removed.push(old.name.to_string()),
        }
    }
    let added = after.services.iter().filter(|service| new.contains_key(&*service.name));
    services.added.extend(added.map(|service| service.name.to_string()));
}

fn server_changes(old: &Service, new: &Service, servers: &mut Changes) {
    let name = |server: &ServerSpec| format!("{}: {}", old.name, server.target);
    let mut left: HashMap<&ServerTarget, &ServerSpec> =
        new.servers.iter().map(|server| (&server.target, server)).collect();
    for server in &old.servers {
        match left.remove(&server.target) {
            Some(new) => servers.stays(&name(server), server_words(server, new)),
            None => servers.removed.push(name(server)),
        }
    }
    let added = new.servers.iter().filter(|server| left.contains_key(&server.target));
    servers.added.extend(added.map(name));
}

fn server_words(old: &ServerSpec, new: &ServerSpec) -> Words {
    let ServerSpec { target: _, zone, weight, backup, in_flight_max, version } = old;
    let mut words = Words::default();
    words.value("zone", zone, &new.zone, |zone| or(zone.as_ref(), "none"));
    words.value("weight", weight, &new.weight, u16::to_string);
    words.value("backup", backup, &new.backup, yes_no);
    words.value("in_flight_max", in_flight_max, &new.in_flight_max, |max| {
        or(max.as_ref(), "the service's")
    });
    words.value("version", version, &new.version, |version| or(version.as_ref(), "unknown"));
    words
}

fn words(old: &Service, new: &Service) -> Words {
    let Service {
        name: _,
        balance,
        in_flight_max,
        in_flight_scope,
        queue: QueueLimits { length_max, wait_max },
        when_full,
        when_all_down,
        check,
        passive,
        zones: ZonePolicy { ready_min, ready_recovered },
        affinity,
        slow_start,
        timeouts,
        retries: Retries { attempts_max, body_kept_max_bytes, statuses, backoff },
        scaling,
        idle_connections_max,
        tls,
        http,
        send_proxy,
        version_field,
        maintenance,
        error_pages,
        servers: _,
        discover,
    } = old;
    let mut words = Words::default();
    words.value("balance", balance, &new.balance, show_balance);
    words.value("in_flight_max", in_flight_max, &new.in_flight_max, |n| or(n.as_ref(), "no limit"));
    let scope = &new.in_flight_scope;
    words.value("in_flight_scope", in_flight_scope, scope, |scope| scope.as_str().to_owned());
    words.value("queue.length_max", length_max, &new.queue.length_max, u32::to_string);
    words.value("queue.wait_max", wait_max, &new.queue.wait_max, time);
    words.value("when_full", when_full, &new.when_full, u16::to_string);
    words
        .value("when_all_down", when_all_down, &new.when_all_down, |when| when.as_str().to_owned());
    check_words(check.as_ref(), new.check.as_ref(), &mut words);
    passive_words(passive.as_ref(), new.passive.as_ref(), &mut words);
    words.value("zones.ready_min", ready_min, &new.zones.ready_min, f64::to_string);
    let recovered = &new.zones.ready_recovered;
    words.value("zones.ready_recovered", ready_recovered, recovered, f64::to_string);
    affinities::of_service(affinity.as_ref(), new.affinity.as_ref(), &mut words);
    words.value("slow_start", slow_start, &new.slow_start, |time| {
        or(time.map(show_duration), "at once")
    });
    timeout_words(timeouts, &new.timeouts, &mut words);
    words.value("retries.max", attempts_max, &new.retries.attempts_max, u32::to_string);
    let kept = &new.retries.body_kept_max_bytes;
    words.value("retries.body_kept_max", body_kept_max_bytes, kept, |n| show_size(u64::from(*n)));
    words.value("retries.status", statuses, &new.retries.statuses, super::statuses);
    words.value("retries.backoff", backoff, &new.retries.backoff, time);
    scaling_words(scaling.as_ref(), new.scaling.as_ref(), &mut words);
    let idle_max = &new.idle_connections_max;
    words.value("idle_connections_max", idle_connections_max, idle_max, u32::to_string);
    super::tls::service(tls.as_deref(), new.tls.as_deref(), &mut words);
    words.value("http", http, &new.http, |http| http.as_str().to_owned());
    words.value("send_proxy", send_proxy, &new.send_proxy, |version| {
        version.map_or("none", |version| version.as_str()).to_owned()
    });
    words.value("version_field", version_field, &new.version_field, |field| {
        or(field.as_ref(), "none")
    });
    words.value("maintenance", maintenance, &new.maintenance, |it| super::maintenance(it.as_ref()));
    words.hidden("error_page", error_pages, &new.error_pages);
    super::discover::words("discover", discover.as_deref(), new.discover.as_deref(), &mut words);
    words
}

fn scaling_words(before: Option<&Scaling>, after: Option<&Scaling>, words: &mut Words) {
    let numbers = |scaling: Option<&Scaling>| or(scaling.map(scaling_text), "off");
    let (old, new) = (numbers(before), numbers(after));
    words.value("scaling", &old, &new, String::clone);
    let action = |scaling: Option<&Scaling>| scaling.and_then(|it| it.action.clone());
    let (old, new) = (action(before), action(after));
    words.value("scaling calls", &old, &new, |action| {
        let text = action.as_deref().map(
            |ScalingAction { call, out_cooldown, in_cooldown, drain_max, timeout }| {
                // Queries and arguments may have tokens.
                let called = match call {
                    ScalingCall::Webhook(webhook) => webhook.peer.url.authority().to_owned(),
                    ScalingCall::Command(command) => command.first().cloned().unwrap_or_default(),
                };
                let [out, less, drain, max] = [out_cooldown, in_cooldown, drain_max, timeout]
                    .map(|time| show_duration(*time));
                format!(
                    "{called}, more after {out}, fewer after {less}, drained for {drain}, in {max}"
                )
            },
        );
        or(text, "nothing")
    });
    if let (Some(old), Some(new)) = (old.as_deref(), new.as_deref()) {
        words.hidden("scaling webhook or command", &old.call, &new.call);
    }
}

fn scaling_text(scaling: &Scaling) -> String {
    let Scaling {
        servers_min,
        servers_max,
        utilization,
        in_flight_target,
        scale_in_after,
        idle_after,
        action: _,
    } = scaling;
    let target = match in_flight_target {
        Some(target) => format!("{target} requests in flight each, utilization {utilization}"),
        None => format!("utilization {utilization}"),
    };
    let (scale_in, idle) = (show_duration(*scale_in_after), show_duration(*idle_after));
    format!(
        "{servers_min} to {servers_max} servers, {target}, fewer after {scale_in}, idle after {idle}"
    )
}

fn timeout_words(old: &ServiceTimeouts, new: &ServiceTimeouts, words: &mut Words) {
    let ServiceTimeouts { connect, response, idle, tunnel, keep_alive, total } = old;
    words.value("timeouts.connect", connect, &new.connect, time);
    words.value("timeouts.response", response, &new.response, time);
    words.value("timeouts.idle", idle, &new.idle, time);
    words.value("timeouts.tunnel", tunnel, &new.tunnel, time);
    words.value("timeouts.keep_alive", keep_alive, &new.keep_alive, time);
    words
        .value("timeouts.total", total, &new.total, |time| or(time.map(show_duration), "no limit"));
}

fn show_balance(balance: &Balance) -> String {
    match balance {
        Balance::RoundRobin | Balance::LeastConnections | Balance::PeakEwma | Balance::Random => {
            balance.as_str().to_owned()
        }
        Balance::Hash(HashKey { on, load_factor }) => {
            format!("{} on {on}, load_factor {load_factor}", balance.as_str())
        }
    }
}

fn check_words(old: Option<&Check>, new: Option<&Check>, words: &mut Words) {
    let (Some(old), Some(new)) = (old, new) else {
        return words.value("check", &old, &new, |check| {
            or(check.map(|check| show_kind(&check.kind)), "none")
        });
    };
    let Check { kind, port, clear_text, http, interval, timeout, rise, fall } = old;
    words.value("check", kind, &new.kind, show_kind);
    if let (CheckKind::Grpc { host, .. }, CheckKind::Grpc { host: new_host, .. }) =
        (kind, &new.kind)
    {
        words.value("check.host", host, new_host, |host| or(host.as_ref(), "the server's address"));
    }
    if let (
        CheckKind::Http { method: _, path: _, host, fields, expect, body, reuse },
        CheckKind::Http {
            host: new_host,
            fields: new_fields,
            expect: new_expect,
            body: new_body,
            reuse: new_reuse,
            ..
        },
    ) = (kind, &new.kind)
    {
        words.value("check.host", host, new_host, |host| or(host.as_ref(), "the server's address"));
        words.hidden("check.header", fields, new_fields);
        words.value("check.expect", expect, new_expect, ToString::to_string);
        words.value("check.expect_body", &body.pattern, &new_body.pattern, |pattern| {
            or(pattern.as_ref().map(Pattern::as_str), "any")
        });
        words.hidden("check.expect_json", &body.json, &new_body.json);
        words.value("check.reuse", reuse, new_reuse, yes_no);
    }
    words.value("check.port", port, &new.port, |port| or(port.as_ref(), "the server's own"));
    words.value("check.tls", clear_text, &new.clear_text, |off| yes_no(&!off));
    words.value("check.http", http, &new.http, |http| {
        or(http.as_ref().map(HttpVersion::as_str), "the service's")
    });
    words.value("check.interval", interval, &new.interval, time);
    words.value("check.timeout", timeout, &new.timeout, time);
    words.value("check.rise", rise, &new.rise, u32::to_string);
    words.value("check.fall", fall, &new.fall, u32::to_string);
}

fn show_kind(kind: &CheckKind) -> String {
    match kind {
        CheckKind::Tcp => kind.as_str().to_owned(),
        CheckKind::Http { method, path, .. } => format!("{method} {path}"),
        CheckKind::Grpc { service, .. } if service.is_empty() => kind.as_str().to_owned(),
        CheckKind::Grpc { service, .. } => format!("{} {service}", kind.as_str()),
    }
}

fn passive_words(old: Option<&PassiveHealth>, new: Option<&PassiveHealth>, words: &mut Words) {
    let (Some(old), Some(new)) = (old, new) else {
        let on = |is_on: &bool| if *is_on { "on" } else { "off" }.to_owned();
        return words.value("passive", &old.is_some(), &new.is_some(), on);
    };
    let PassiveHealth { failures, count_5xx, eject, eject_max, share_max } = old;
    words.value("passive.failures", failures, &new.failures, u32::to_string);
    words.value("passive.count_5xx", count_5xx, &new.count_5xx, yes_no);
    words.value("passive.eject", eject, &new.eject, time);
    words.value("passive.eject_max", eject_max, &new.eject_max, time);
    words.value("passive.share_max", share_max, &new.share_max, f64::to_string);
}
