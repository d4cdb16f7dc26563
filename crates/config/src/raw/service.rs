//! Reads `[service.NAME]` and the tables below it, except its check.

use std::sync::Arc;

use model::{
    Balance, BalanceWord, HashKey, HashOn, HashOnWord, HttpVersion, LimitScope, PassiveHealth,
    QueueLimits, ServerSpec, ServerVersion, Service, ServiceTimeouts, WhenAllDown, ZonePolicy,
};
use toml::de::DeValue;

use super::affinity;
use super::retries;
use super::scaling;
use super::table::Table;
use super::{
    RawServerSpans, RawService, discover, error_page, http, maintenance, name, net, probe,
    route::{key_part, unknown_key_part},
    tls,
};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Span, Wrong};

pub(super) fn read(at: At<&str>, mut table: Table<'_>) -> RawService {
    let (balance, hash_on) = balance(&mut table);
    let in_flight_max: Option<At<u32>> = table.integer_if("in_flight_max");
    let discover = table.table("discover").map(discover::read);
    let in_flight_scope = in_flight_scope(&mut table);
    let scope = in_flight_scope.as_ref().map_or(LimitScope::Balancer, |at| at.value);
    let Servers { specs, spans, limit_meant } = servers(&mut table, discover.is_some());
    let limit_meant =
        limit_meant || ["in_flight_max", "discover"].iter().any(|key| table.has_or_means(key));
    let version = table.word("http", HttpVersion::Http11);
    // An unreadable value may have been meant as "2".
    let certain = table.peek("http").is_none_or(|word| word.as_str() == Some(version.as_str()));
    let speaks_http1 = certain && version == HttpVersion::Http11;
    let has_tls = table.peek("tls").is_some();
    let affinity_span = table.own_key_span("affinity");
    let (affinity, affinity_key) =
        table.table("affinity").map_or((None, None), affinity::of_service);
    let scaling = table.table("scaling").map(|table| scaling::read(table, limit_meant));
    let (scaling, scaling_webhook) = scaling.unzip();
    let raw = RawService {
        name: at.span,
        in_flight_max: in_flight_max.as_ref().map(|at| at.span.clone()),
        in_flight_scope,
        own_in_flight_scope: table.own_key_span("in_flight_scope"),
        limit_meant,
        queue: table.own_key_span("queue"),
        hash_on,
        tls: tls::of_service(&mut table),
        http: table.own_key_span("http"),
        affinity: affinity_span,
        affinity_key,
        error_pages: error_page::read(&mut table),
        servers: spans,
        discover,
        scaling_webhook: scaling_webhook.flatten(),
        service: Service {
            name: at.value.into(),
            balance,
            in_flight_max: in_flight_max.map(|at| at.value),
            in_flight_scope: scope,
            queue: queue(table.table("queue")),
            when_full: table.integer("when_full").value,
            when_all_down: table.word("when_all_down", WhenAllDown::Refuse),
            check: table.table("check").map(|table| probe::read(table, speaks_http1, has_tls)),
            passive: passive(&mut table),
            zones: zones(table.table("zones")),
            affinity,
            slow_start: table.duration_if("slow_start").map(|at| at.value),
            timeouts: timeouts(table.table("timeouts")),
            retries: retries::of_service(table.table("retries")),
            scaling,
            idle_connections_max: table.integer("idle_connections_max").value,
            // Built from `tls` by `files`.
            tls: None,
            http: version,
            send_proxy: table.choice_if("send_proxy").and_then(|at| at.value.parse().ok()),
            version_field: table.text("version_field", http::field_name).map(|at| at.value.into()),
            maintenance: maintenance::read(&mut table),
            // Built from `error_pages`, which may name files.
            error_pages: Vec::new(),
            servers: specs,
            // Built from `discover`, which may name files.
            discover: None,
        },
    };
    table.finish();
    raw
}

/// Returns `None` after a mistake, which is reported.
fn in_flight_scope(table: &mut Table<'_>) -> Option<At<LimitScope>> {
    const KEY: &str = "in_flight_scope";
    let scope = table.word_at(KEY, LimitScope::Balancer);
    let written = table.peek(KEY);
    let is_read = written.is_none_or(|word| word.as_str() == Some(scope.value.as_str()));
    (is_read && !table.means(KEY)).then_some(scope)
}

fn balance(table: &mut Table<'_>) -> (Balance, Option<Span>) {
    let balance = table.word_at("balance", BalanceWord::RoundRobin);
    let hash = table.table("hash");
    let is_own = table.own_key_span("hash").is_some();
    let span = hash.as_ref().filter(|_| is_own).map(|hash| hash.span_of("on"));
    let hash = hash.map(hash_key);
    // An unknown word may have been meant as "hash".
    let certain =
        table.peek("balance").is_none_or(|word| word.as_str() == Some(balance.value.as_str()));
    if let Some(key) = table.own_key_span("hash")
        && certain
        && balance.value != BalanceWord::Hash
    {
        table.problems.report(
            Diagnostic::error("`hash` has no effect with this `balance`", key, "never used")
                .other(balance.span, format!("balance is \"{}\"", balance.value.as_str()))
                .help("write balance = \"hash\", or leave `hash` out"),
        );
    }
    let balance = match balance.value {
        BalanceWord::RoundRobin => Balance::RoundRobin,
        BalanceWord::LeastConnections => Balance::LeastConnections,
        BalanceWord::PeakEwma => Balance::PeakEwma,
        BalanceWord::Random => Balance::Random,
        BalanceWord::Hash => Balance::Hash(
            hash.unwrap_or(HashKey { on: HashOn::Client, load_factor: defaults::HASH_LOAD_FACTOR }),
        ),
    };
    (balance, span)
}

fn hash_key(mut table: Table<'_>) -> HashKey {
    let on = table.text("on", |text| {
        let (word, name) = key_part(text);
        match (word.parse(), name) {
            (Ok(HashOnWord::Client), None) => Ok(HashOn::Client),
            (Ok(HashOnWord::Field), Some(field)) => http::field_name(field).map(HashOn::Field),
            (Ok(HashOnWord::Cookie), Some(name)) => http::cookie_name(name).map(HashOn::Cookie),
            (Ok(HashOnWord::Path), None) => Ok(HashOn::Path),
            (Ok(HashOnWord::Parameter), Some("")) => {
                Err(Wrong::new("a parameter's name is missing").help("write \"query:NAME\""))
            }
            (Ok(HashOnWord::Parameter), Some(name)) => Ok(HashOn::Parameter(name.to_owned())),
            (Ok(HashOnWord::Client | HashOnWord::Path), Some(_))
            | (Ok(HashOnWord::Field | HashOnWord::Cookie | HashOnWord::Parameter), None)
            | (Err(_), _) => {
                let known = ["client", "header:NAME", "cookie:NAME", "path", "query:NAME"];
                Err(unknown_key_part(text, &known))
            }
        }
    });
    let load_factor = table.number("load_factor").value;
    table.finish();
    HashKey { on: on.map_or(HashOn::Client, |at| at.value), load_factor }
}

fn queue(table: Option<Table<'_>>) -> QueueLimits {
    let Some(mut table) = table else {
        return QueueLimits {
            length_max: defaults::QUEUE_LENGTH_MAX as u32,
            wait_max: defaults::QUEUE_WAIT_MAX,
        };
    };
    let queue = QueueLimits {
        length_max: table.integer("length_max").value,
        wait_max: table.duration("wait_max").value,
    };
    table.finish();
    queue
}

fn passive(table: &mut Table<'_>) -> Option<PassiveHealth> {
    let on = PassiveHealth {
        failures: defaults::PASSIVE_FAILURES as u32,
        count_5xx: true,
        eject: defaults::PASSIVE_EJECT,
        eject_max: defaults::PASSIVE_EJECT_MAX,
        share_max: defaults::PASSIVE_SHARE_MAX,
    };
    match table.peek("passive") {
        None | Some(DeValue::Boolean(true)) => return Some(on),
        Some(DeValue::Boolean(false)) => return None,
        Some(_) => {}
    }
    let mut table = table.table("passive")?;
    let eject = table.duration("eject");
    let eject_max = table.duration("eject_max");
    if eject_max.value < eject.value {
        table.problems.report(
            Diagnostic::error(
                "`eject_max` is shorter than the first ejection",
                eject_max.span,
                "the longest",
            )
            .other(eject.span, "the first"),
        );
    }
    let passive = PassiveHealth {
        failures: table.integer("failures").value,
        count_5xx: table.boolean("count_5xx"),
        eject: eject.value,
        eject_max: eject_max.value,
        share_max: table.number("share_max").value,
    };
    table.finish();
    Some(passive)
}

fn zones(table: Option<Table<'_>>) -> ZonePolicy {
    let Some(mut table) = table else {
        return ZonePolicy {
            ready_min: defaults::ZONES_READY_MIN,
            ready_recovered: defaults::ZONES_READY_RECOVERED,
        };
    };
    let ready_min = table.number("ready_min");
    let recovered = table.number_if("ready_recovered");
    if let Some(recovered) = &recovered
        && recovered.value < ready_min.value
    {
        table.problems.report(
            Diagnostic::error(
                "`ready_recovered` is below `ready_min`",
                recovered.span.clone(),
                "other zones leave here",
            )
            .other(ready_min.span.clone(), format!("but join below {}", ready_min.value))
            .help("traffic would go back and forth for ever; write ready_recovered at least as large as ready_min"),
        );
    }
    table.finish();
    ZonePolicy {
        ready_min: ready_min.value,
        ready_recovered: recovered
            .map_or(defaults::ZONES_READY_RECOVERED.max(ready_min.value), |at| at.value),
    }
}

fn timeouts(table: Option<Table<'_>>) -> ServiceTimeouts {
    let Some(mut table) = table else {
        return ServiceTimeouts {
            connect: defaults::CONNECT,
            response: defaults::RESPONSE,
            idle: defaults::IDLE,
            tunnel: defaults::IDLE,
            keep_alive: defaults::KEEP_ALIVE,
            total: None,
        };
    };
    let idle = table.duration("idle").value;
    let timeouts = ServiceTimeouts {
        connect: table.duration("connect").value,
        response: table.duration("response").value,
        idle,
        tunnel: table.duration_if("tunnel").map_or(idle, |at| at.value),
        keep_alive: table.duration("keep_alive").value,
        total: table.duration_if("total").map(|at| at.value),
    };
    table.finish();
    timeouts
}

/// `server`.
struct Servers {
    specs: Vec<ServerSpec>,
    spans: Vec<RawServerSpans>,
    /// One of them has a limit, or probably was meant to.
    limit_meant: bool,
}

fn servers(table: &mut Table<'_>, has_source: bool) -> Servers {
    let is_empty = match table.peek("server") {
        Some(DeValue::Array(items)) => items.is_empty(),
        Some(_) => false,
        None => true,
    };
    if is_empty && !has_source {
        table.problems.report(
            Diagnostic::error("a service without servers", table.span_of("server"), "empty")
                .help("write at least one, as in server = [{ address = \"10.0.1.5:8080\" }]"),
        );
    }
    let tables = table.tables("server");
    // As many as there are, since a configuration may have many services of one server.
    let (mut specs, mut spans) =
        (Vec::with_capacity(tables.len()), Vec::with_capacity(tables.len()));
    let mut limit_meant = false;
    for mut table in tables {
        let target = table.text("address", net::server_target);
        let zone = table.text("zone", name);
        let weight = table.integer("weight").value;
        let backup = table.boolean("backup");
        let in_flight_max: Option<At<u32>> = table.integer_if("in_flight_max");
        limit_meant |= table.has_or_means("in_flight_max");
        let version = table.text("version", version).map(|at| at.value);
        table.finish();
        let Some(target) = target else { continue };
        spans.push(RawServerSpans {
            address: target.span,
            zone: zone.as_ref().map(|zone| zone.span.clone()),
            in_flight_max: in_flight_max.as_ref().map(|at| at.span.clone()),
        });
        let zone: Option<Arc<str>> = zone.map(|zone| zone.value);
        specs.push(ServerSpec {
            target: target.value,
            zone,
            weight,
            backup,
            in_flight_max: in_flight_max.map(|at| at.value),
            version,
        });
    }
    Servers { specs, spans, limit_meant }
}

/// Parses the version that a server runs.
pub(crate) fn version(text: &str) -> Result<ServerVersion, Wrong> {
    ServerVersion::parse(text.as_bytes()).ok_or_else(|| {
        Wrong::new("not a version").help("write 1 to 64 visible ASCII characters, as in \"2.8.1\"")
    })
}
