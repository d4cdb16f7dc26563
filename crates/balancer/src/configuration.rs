//! A configuration as JSON, defaults included. For the admin API and for `weir check --json`.

use std::sync::Arc;

use model::{
    Action, Address, AutoscalerListener, Balance, Certificate, CheckKind, ClientCertificateMode,
    Consul, Content, ContentCoding, Discover, ErrorPage, ErrorSet, Etcd, FieldChanges, FieldMatch,
    Fleet, GatewayExposure, HttpUrl, Kubernetes, Listener, Log, LogSample, Maintenance, Nomad,
    Otlp, PathChange, PathMatch, Protocol, RedactQuery, Respond, ResponseFilter, Route,
    RouteAffinity, RouteTagFormat, Scaling, ScalingAction, ScalingCall, ServerSource, Service,
    ServiceTls, SessionCarrier, Snapshot, SplitTarget, TcpSplit, Text, TlsMode, UnknownNames,
};
use serde_json::{Value, json};

use crate::probe_report;

/// Returns a valid configuration as JSON; keys are in order of the text form.
pub fn to_json(snapshot: &Snapshot) -> Value {
    let id = |id: model::ListenerId| {
        snapshot.listeners.get(id.0 as usize).map(|listener| listener.name.to_string())
    };
    json!({
        "zone": snapshot.zone.as_deref(),
        "workers": snapshot.workers,
        "connections_max": snapshot.connections_max,
        "request_buffers_max_bytes": snapshot.request_buffers_max_bytes,
        "compression_memory_max_bytes": snapshot.compression_memory_max_bytes,
        "mirror_memory_max_bytes": snapshot.mirror_memory_max_bytes,
        "history_memory_max_bytes": snapshot.history_memory_max_bytes,
        "drain_delay_ms": millis(snapshot.drain_delay),
        "drain_max_ms": millis(snapshot.drain_max),
        "state_directory": snapshot.state_directory,
        "affinity_key_file": snapshot.affinity_key_file.as_ref().map(|file| &file.path),
        "run_as": snapshot.run_as.as_ref().map(|(user, group)| json!({
            "user": user, "group": group,
        })),
        "log": log(&snapshot.log),
        "admin": snapshot.admin.as_ref().map(|admin| json!({
            "address": admin.address.to_string(),
            "token_file": admin.token_file,
        })),
        "metrics": {
            "address": snapshot.metrics.listener.as_ref().map(|one| one.address.to_string()),
            "token": snapshot.metrics.listener.as_ref().is_some_and(|one| one.token_file.is_some()),
            "tls": snapshot.metrics.listener.as_ref().is_some_and(|one| one.tls.is_some()),
            "server_histograms": snapshot.metrics.server_histograms,
            "statsd": snapshot.metrics.statsd.as_ref().map(ToString::to_string),
            "graphite": snapshot.metrics.graphite.as_ref().map(ToString::to_string),
            "interval_ms": millis(snapshot.metrics.interval),
            "prefix": snapshot.metrics.prefix,
        },
        "otlp": snapshot.otlp.as_ref().map(otlp),
        "acme": snapshot.acme.as_ref().map(|acme| json!({
            "directory": &*acme.directory,
            "ca": acme.ca.path,
            "contacts": acme.contacts,
            "external_account": acme.external_account.as_ref().map(|external| json!({
                "key_id": external.key_id,
                "hmac_key_file": external.hmac_key.path,
            })),
            "challenge": acme.challenge.as_str(),
            "profile": acme.profile,
            "renewal": {
                "ari": acme.renewal.ari,
                "after": f64::from(acme.renewal.after_permille) / 1000.0,
            },
            "state_directory": acme.state,
            "certificates": acme.certificates.iter().map(|one| &one.names).collect::<Vec<_>>(),
        })),
        "doctor": { "interval_ms": snapshot.doctor.interval.map(millis) },
        "resolver": snapshot.resolver,
        "consul": snapshot.registries.consul.as_deref().map(consul),
        "nomad": snapshot.registries.nomad.as_deref().map(nomad),
        "etcd": snapshot.registries.etcd.as_deref().map(etcd),
        "kubernetes": snapshot.kubernetes.as_deref().map(|one| kubernetes(one, snapshot)),
        "keda": snapshot.keda.as_ref().map(autoscaler_listener),
        "fleet": snapshot.fleet.as_deref().map(fleet),
        "listeners": snapshot.listeners.iter().map(|l| listener(l, snapshot)).collect::<Value>(),
        "routes": snapshot.routes.iter().map(|r| route(r, snapshot, id)).collect::<Value>(),
        "services": snapshot.services.iter().map(|one| service(one)).collect::<Value>(),
        "probe_plan": probe_report::plan(&health::report::of_snapshot(snapshot)),
    })
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn log(log: &Log) -> Value {
    json!({
        "access": log.access.to_string(),
        "format": log.format.as_str(),
        "fields": log.fields.as_ref().map(|fields| {
            texts(fields.iter())
        }),
        "redact_query": match &log.redact_query {
            RedactQuery::Nothing => json!([]),
            RedactQuery::Names(names) => json!(names),
            RedactQuery::Everything => json!(["*"]),
        },
        "sample": shares(&log.sample),
        "tcp_info": log.tcp_info,
        "decisions": log.decisions,
        "explain_token_file": log.explain_token_file,
    })
}

fn texts(all: impl Iterator<Item: ToString>) -> Vec<String> {
    all.map(|one| one.to_string()).collect()
}

/// Returns shares by result.
fn shares(sample: &LogSample) -> Value {
    let shares = sample.0.iter().map(|(of, share)| (of.to_string(), json!(share)));
    Value::Object(shares.collect())
}

/// Returns the service that the connections of a listener go to, and those by server name. Of several services, which
/// only Kubernetes makes, it is the first.
fn connections_to(protocol: &Protocol, snapshot: &Snapshot) -> (Option<Arc<str>>, Value) {
    let first =
        |split: &TcpSplit| split.services().next().map(|id| Arc::clone(&snapshot.service(id).name));
    match protocol {
        Protocol::Http => (None, Value::Null),
        Protocol::Tcp(split) => (first(split), Value::Null),
        Protocol::Tls(names) => {
            let others = names.mode(None).and_then(TlsMode::split).and_then(first);
            let named = names.iter().filter(|(name, _)| name != "*").map(
                |(name, mode)| json!({ "name": name, "service": mode.split().and_then(first) }),
            );
            (others, named.collect())
        }
    }
}

fn listener(listener: &Listener, snapshot: &Snapshot) -> Value {
    let (to, names) = connections_to(&listener.protocol, snapshot);
    json!({
        "name": listener.name.as_ref(),
        "address": listener.address,
        "socket": matches!(listener.address, Address::Unix(_)).then(|| json!({
            "mode": format!("{:o}", listener.socket.mode),
            "group": listener.socket.group,
        })),
        "protocol": listener.protocol.word().as_str(),
        "service": to,
        "server_names": names,
        "tls": listener.tls.as_ref().map(|tls| json!({
            "certificates": tls.certificates.iter().map(certificate).collect::<Value>(),
            "unknown_names": match &tls.unknown_names {
                UnknownNames::First => Value::Null,
                UnknownNames::As(name) => json!(name),
                UnknownNames::Refuse => json!("refuse"),
            },
            "version_min": tls.version_min.as_str(),
            "client_certificates": tls.client_certificates.as_ref().map(|clients| json!({
                "ca": clients.ca.path,
                "required": clients.mode == ClientCertificateMode::Required,
                "verified": clients.mode != ClientCertificateMode::Unverified,
            })),
            "ciphers": tls.ciphers,
            "hsts_s": tls.hsts.map(|hsts| hsts.as_secs()),
        })),
        "http2": listener.http2.map(|http2| json!({ "streams_max": http2.streams_max })),
        "hosts": listener.hosts.as_ref().map(|hosts| texts(hosts.iter())),
        "proxy_protocol": texts(listener.proxy_protocol.iter()),
        "register": listener.register.as_ref().map(|entry| json!({
            "consul": entry.service,
            "id": entry.id,
            "tags": entry.tags,
            "address": entry.address,
            "port": entry.port,
        })),
        "backlog": listener.backlog,
        "connections_max": listener.connections_max,
        "trusted": texts(listener.trusted.iter()),
        "client_address": {
            "field": listener.client_address.field.name(),
            "hops": listener.client_address.hops,
        },
        "forward_fields": {
            "x-forwarded": listener.forward_fields.x_forwarded,
            "forwarded": listener.forward_fields.forwarded,
            "x-request-id": listener.forward_fields.request_id,
            "traceparent": listener.forward_fields.traceparent,
            "x-real-ip": listener.forward_fields.real_ip,
            "via": listener.forward_fields.via,
        },
        "timeouts": {
            "head_ms": millis(listener.timeouts.head),
            "idle_ms": millis(listener.timeouts.idle),
            "body_ms": millis(listener.timeouts.body),
        },
        "head_max_bytes": listener.head_max_bytes,
        "body_max_bytes": listener.body_max_bytes,
        "error_pages": error_pages(&listener.error_pages),
    })
}

fn route(
    route: &Route,
    snapshot: &Snapshot,
    listener: impl Fn(model::ListenerId) -> Option<String>,
) -> Value {
    let matches = &route.matches;
    let names: Vec<_> = matches.listeners.iter().filter_map(|id| listener(*id)).collect();
    let pairs = |pairs: &[FieldMatch]| -> Value {
        pairs.iter().map(|pair| json!({ "name": pair.name, "value": pair.value.shown() })).collect()
    };
    let path = match &matches.path {
        PathMatch::Exact(path) => json!({ "exact": path }),
        PathMatch::Prefix(prefix) => json!({ "prefix": or_slash(prefix) }),
    };
    json!({
        "name": route.name.as_ref(),
        "listeners": names,
        "host": matches.host.as_ref().map(ToString::to_string),
        "path": path,
        "method": matches.method,
        "header": pairs(&matches.fields),
        "query": pairs(&matches.query),
        "conditions": texts(matches.conditions.iter()),
        "action": action(&route.action, snapshot),
        "authenticate": route.authentication().map(|id| &*snapshot.authentication(id).name),
        "rate_limits": route.rate_limits().map(|limit| json!({
            "name": limit.name.as_ref(),
            "requests": limit.requests,
            "per_ms": millis(limit.per),
            "burst": limit.burst,
            "wait_max_ms": millis(limit.wait_max),
            "by": limit.by.to_string(),
            "scope": limit.scope.as_str(),
            "headers": limit.is_announced,
        })).collect::<Vec<_>>(),
        "cors": route.cors().map(|rules| json!({
            "origins": texts(rules.origins.iter()),
            "methods": rules.methods,
            "headers": rules.headers,
            "expose": rules.expose,
            "credentials": rules.credentials,
            "max_age_ms": rules.max_age.map(millis),
        })),
        "maintenance": maintenance(route.maintenance),
        "error_pages": error_pages(&route.error_pages),
    })
}

fn maintenance(maintenance: Option<Maintenance>) -> Value {
    maintenance.map_or(
        Value::Null,
        |maintenance| json!({ "retry_after_ms": maintenance.retry_after.map(millis) }),
    )
}

fn error_pages(pages: &[ErrorPage]) -> Value {
    let pages = pages.iter().map(|page| {
        let ErrorSet { statuses, causes } = &page.errors;
        let mut value = content(&page.content);
        value["status"] = json!(statuses.as_ref().map(ToString::to_string));
        value["cause"] = causes.iter().map(|cause| cause.name()).collect();
        value
    });
    pages.collect()
}

/// The content of a configured response, without the body.
fn content(content: &Content) -> Value {
    json!({
        "content_type": content.media_type,
        "headers": pairs(&content.fields),
        "body_bytes": content.body.len(),
    })
}

fn or_slash(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

fn path_change(change: &PathChange) -> Value {
    match change {
        PathChange::Prefix(to) => json!({ "prefix": or_slash(to) }),
        PathChange::Whole(to) => json!({ "whole": to }),
    }
}

fn route_affinity(affinity: &RouteAffinity) -> Value {
    let RouteAffinity { carrier, scope, lifetime_max, idle_max, key_file } = affinity;
    let (cookie, header, is_permanent) = match carrier {
        SessionCarrier::Cookie { name, is_permanent } => (Some(name), None, *is_permanent),
        SessionCarrier::Field(name) => (None, Some(name), false),
    };
    json!({
        "cookie": cookie,
        "header": header,
        "permanent": is_permanent,
        "scope": scope.as_ref(),
        "lifetime_max_ms": lifetime_max.map(millis),
        "idle_max_ms": idle_max.map(millis),
        "key_file": key_file.as_ref().map(|file| &file.path),
    })
}

fn action(action: &Action, snapshot: &Snapshot) -> Value {
    match action {
        Action::Deny(denial) => json!({ "deny": denial.status }),
        Action::Respond(Respond::Ready(services)) => {
            let names = services.iter().map(|id| &*snapshot.service(*id).name);
            json!({ "respond": { "ready": names.collect::<Value>() } })
        }
        Action::Respond(Respond::Fixed { status, content: fixed }) => {
            let mut respond = content(fixed);
            respond["status"] = json!(status);
            json!({ "respond": respond })
        }
        Action::Redirect(redirect) => json!({ "redirect": {
            "status": redirect.status,
            "scheme": redirect.scheme,
            "host": redirect.host,
            "port": redirect.port,
            "path": redirect.path.as_ref().map(path_change),
        }}),
        Action::Forward(forward) => {
            let split = forward.to.iter().map(|branch| {
                let mut value = match branch.to {
                    SplitTarget::Service(id) => {
                        json!({ "service": snapshot.service(id).name.as_ref() })
                    }
                    SplitTarget::Deny(denial) => json!({ "deny": denial.status }),
                };
                value["weight"] = json!(branch.weight);
                if let Some(fields) = &branch.fields {
                    value["request_header"] = changes(&fields.own.request);
                    value["response_header"] = changes(&fields.own.response);
                }
                value
            });
            json!({ "forward": {
                "split": split.collect::<Value>(),
                "rewrite": {
                    "path": forward.rewrite.path.as_ref().map(path_change),
                    "host": forward.rewrite.host,
                },
                "mirror": forward.mirrors.iter().map(|mirror| json!({
                    "service": snapshot.service(mirror.service).name.as_ref(),
                    "share": mirror.share,
                    "body_max_bytes": mirror.body_max_bytes,
                })).collect::<Vec<_>>(),
                "compress": forward.filters.iter().map(|ResponseFilter::Compress(rules)| json!({
                    "codings": rules.codings.iter().map(ContentCoding::as_str).collect::<Vec<_>>(),
                    "types": texts(rules.types.iter()),
                    "length_min_bytes": rules.length_min_bytes,
                })).next(),
                "request_header": changes(&forward.fields.request),
                "response_header": changes(&forward.fields.response),
                "timeouts": {
                    "total_ms": forward.timeouts.total.map(millis),
                    "attempt_ms": forward.timeouts.attempt.map(millis),
                },
                "retries": {
                    "attempts_max": forward.retries.attempts_max,
                    "statuses": forward.retries.statuses.as_ref().map(ToString::to_string),
                    "backoff_ms": forward.retries.backoff.map(millis),
                },
                "affinity": forward.affinity.as_deref().map(route_affinity),
            }})
        }
    }
}

fn pairs(pairs: &[(String, Text)]) -> Value {
    pairs.iter().map(|(name, value)| json!({ "name": name, "value": value.shown() })).collect()
}

fn changes(changes: &FieldChanges) -> Value {
    json!({ "remove": changes.remove, "set": pairs(&changes.set), "add": pairs(&changes.add) })
}

fn server(server: &model::ServerSpec) -> Value {
    json!({
        "address": server.target.to_string(),
        "resolved": matches!(server.target, model::ServerTarget::Address(_)),
        "zone": server.zone.as_deref(),
        "weight": server.weight,
        "backup": server.backup,
        "in_flight_max": server.in_flight_max,
        "version": server.version.as_ref().map(model::ServerVersion::as_str),
    })
}

fn scaling(scaling: &Scaling) -> Value {
    json!({
        "servers_min": scaling.servers_min,
        "servers_max": scaling.servers_max,
        "utilization": scaling.utilization,
        "in_flight_target": scaling.in_flight_target,
        "scale_in_after_ms": millis(scaling.scale_in_after),
        "idle_after_ms": millis(scaling.idle_after),
        "calls": scaling.action.as_deref().map(scaling_action),
    })
}

fn scaling_action(action: &ScalingAction) -> Value {
    let mut value = json!({
        "scale_out_cooldown_ms": millis(action.out_cooldown),
        "scale_in_cooldown_ms": millis(action.in_cooldown),
        "drain_max_ms": millis(action.drain_max),
        "timeout_ms": millis(action.timeout),
    });
    match &action.call {
        ScalingCall::Webhook(webhook) => {
            value["webhook"] = json!({
                "url": without_query(&webhook.peer.url),
                "ca": webhook.peer.ca.as_ref().map(|ca| &ca.path),
                "header": webhook.fields.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                "has_body": webhook.body.is_some(),
            });
        }
        ScalingCall::Command(command) => {
            value["command"] = json!({
                "program": command.first(),
                "arguments": command.len().saturating_sub(1),
            });
        }
    }
    value
}

/// Returns a URL without its query, which may have a token.
fn without_query(url: &HttpUrl) -> String {
    let text = url.to_string();
    text.split_once('?').map_or(text.clone(), |(before, _)| format!("{before}?…"))
}

fn service(service: &Service) -> Value {
    let balance = service.balance.as_str();
    let hash = match &service.balance {
        Balance::Hash(hash) => Some(hash),
        Balance::RoundRobin | Balance::LeastConnections | Balance::PeakEwma | Balance::Random => {
            None
        }
    };
    let servers = service.servers.iter().map(server);
    json!({
        "name": service.name.as_ref(),
        "balance": balance,
        "hash": hash.map(|hash| json!({
            "on": hash.on.to_string(),
            "load_factor": hash.load_factor,
        })),
        "in_flight_max": service.in_flight_max,
        "in_flight_scope": service.in_flight_scope.as_str(),
        "queue": {
            "length_max": service.queue.length_max,
            "wait_max_ms": millis(service.queue.wait_max),
        },
        "when_full": service.when_full,
        "when_all_down": service.when_all_down.as_str(),
        "tls": service.tls.as_deref().map(service_tls),
        "http": service.http.as_str(),
        "send_proxy": service.send_proxy.map(|version| version.as_str()),
        "version_field": service.version_field.as_deref(),
        "discover": service.discover.as_deref().map(discover),
        "check": check(service),
        "passive": service.passive.map(|passive| json!({
            "failures": passive.failures,
            "count_5xx": passive.count_5xx,
            "eject_ms": millis(passive.eject),
            "eject_max_ms": millis(passive.eject_max),
            "share_max": passive.share_max,
        })),
        "zones": {
            "ready_min": service.zones.ready_min,
            "ready_recovered": service.zones.ready_recovered,
        },
        "affinity": service.affinity.as_ref().map(|affinity| json!({
            "cookie": affinity.cookie,
            "max_age_ms": affinity.max_age.map(millis),
            "key_file": affinity.key_file.as_ref().map(|file| &file.path),
        })),
        "slow_start_ms": service.slow_start.map(millis),
        "timeouts": {
            "connect_ms": millis(service.timeouts.connect),
            "response_ms": millis(service.timeouts.response),
            "idle_ms": millis(service.timeouts.idle),
            "tunnel_ms": millis(service.timeouts.tunnel),
            "keep_alive_ms": millis(service.timeouts.keep_alive),
            "total_ms": service.timeouts.total.map(millis),
        },
        "retries": {
            "attempts_max": service.retries.attempts_max,
            "body_kept_max_bytes": service.retries.body_kept_max_bytes,
            "statuses": service.retries.statuses.to_string(),
            "backoff_ms": millis(service.retries.backoff),
        },
        "scaling": service.scaling.as_ref().map(scaling),
        "idle_connections_max": service.idle_connections_max,
        "maintenance": maintenance(service.maintenance),
        "error_pages": error_pages(&service.error_pages),
        "servers": servers.collect::<Value>(),
    })
}

fn check(service: &Service) -> Value {
    let Some(check) = &service.check else { return Value::Null };
    let mut value = json!({
        "kind": check.kind.as_str(),
        "port": check.port,
        "tls": service.tls.is_some() && !check.clear_text,
        "http": check.http.unwrap_or(service.http).as_str(),
        "interval_ms": millis(check.interval),
        "timeout_ms": millis(check.timeout),
        "rise": check.rise,
        "fall": check.fall,
    });
    match &check.kind {
        CheckKind::Tcp => {}
        CheckKind::Http { method, path, host, fields, expect, body, reuse } => {
            value["method"] = json!(method);
            value["path"] = json!(path);
            value["host"] = json!(host);
            let fields =
                fields.iter().map(|(name, value)| json!({ "name": name, "value": value.shown() }));
            value["header"] = fields.collect();
            value["expect"] = json!(expect.0);
            value["expect_body"] = json!(body.pattern.as_ref().map(model::Pattern::as_str));
            value["expect_json"] = body.json.iter().cloned().collect();
            value["reuse"] = json!(reuse);
        }
        CheckKind::Grpc { service, host } => {
            value["grpc_service"] = json!(service);
            value["host"] = json!(host);
        }
    }
    value
}

/// Returns a certificate as JSON.
fn certificate(certificate: &Certificate) -> Value {
    let facts = tls::facts(&certificate.chain).ok();
    json!({
        "chain": certificate.chain.path,
        "key": certificate.key.path,
        "ocsp": certificate.ocsp.as_ref().map(|ocsp| &ocsp.path),
        "acme": certificate.acme.as_ref().map(|acme| &acme.names),
        "names": facts.as_ref().map(|facts| &facts.names),
        "subject": facts.as_ref().map(|facts| &facts.subject),
        "issuer": facts.as_ref().map(|facts| &facts.issuer),
        "not_before": facts.as_ref().map(|facts| tls::date(facts.not_before)),
        "not_after": facts.as_ref().map(|facts| tls::date(facts.not_after)),
        "not_after_unix_s": facts.as_ref().map(|facts| facts.not_after),
    })
}

/// Returns what is sent by OTLP as JSON.
fn otlp(otlp: &Otlp) -> Value {
    json!({
        "endpoint": otlp.collector.url.to_string(),
        "ca": otlp.collector.ca.as_ref().map(|ca| &ca.path),
        "header": otlp.fields.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "service_name": otlp.service_name,
        "traces": otlp.traces.as_ref().map(|traces| json!({
            "sample": shares(&traces.shares),
            "traces_per_cause_max": traces.per_cause_max,
        })),
        "metrics_interval_ms": otlp.metrics_interval.map(millis),
        "logs": otlp.logs,
    })
}

/// Returns how Consul is reached as JSON.
fn consul(consul: &Consul) -> Value {
    json!({
        "address": consul.peer.url.to_string(),
        "ca": consul.peer.ca.as_ref().map(|ca| &ca.path),
        "certificate": consul.peer.certificate.as_deref().map(certificate),
        "has_token": consul.token.is_some(),
        "datacenters": consul.datacenters,
        "stale": consul.queries.stale,
        "wait_ms": millis(consul.queries.wait),
        "connections_max": consul.queries.connections_max,
        "routes": consul.routes.as_ref().map(|routes| json!({
            "hosts": texts(routes.hosts.iter()),
            "formats": routes.formats.iter().map(RouteTagFormat::as_str).collect::<Vec<_>>(),
            "listeners": routes.listeners,
            "hold_max_ms": millis(routes.hold_max),
        })),
    })
}

/// Returns how Nomad is reached as JSON.
fn nomad(nomad: &Nomad) -> Value {
    json!({
        "address": nomad.peer.url.to_string(),
        "ca": nomad.peer.ca.as_ref().map(|ca| &ca.path),
        "certificate": nomad.peer.certificate.as_deref().map(certificate),
        "has_token": nomad.token.is_some(),
        "namespace": nomad.namespace,
        "region": nomad.region,
        "stale": nomad.queries.stale,
        "wait_ms": millis(nomad.queries.wait),
        "connections_max": nomad.queries.connections_max,
    })
}

/// Returns a listener for autoscalers as JSON.
fn autoscaler_listener(listener: &AutoscalerListener) -> Value {
    json!({ "address": listener.address.to_string(), "tls": listener.tls.is_some() })
}

/// Returns how Weir is connected to Kubernetes as JSON.
fn kubernetes(kubernetes: &Kubernetes, snapshot: &Snapshot) -> Value {
    let (services, addresses) = match &kubernetes.exposure {
        GatewayExposure::Services { pods, port_first, port_last } => {
            let pods = pods.iter().map(|(key, value)| (key.clone(), json!(value)));
            let pods = Value::Object(pods.collect());
            let of = json!({ "pods": pods, "port_first": port_first, "port_last": port_last });
            (of, Value::Null)
        }
        GatewayExposure::Addresses(addresses) => (Value::Null, json!(addresses)),
    };
    json!({
        "kubeconfig": kubernetes.kubeconfig,
        "controller": kubernetes.controller,
        "namespaces": kubernetes.namespaces,
        "namespace": kubernetes.namespace,
        "external_names": kubernetes.external_names,
        "external_metrics": snapshot.external_metrics.as_ref().map(autoscaler_listener),
        "services": services,
        "addresses": addresses,
    })
}

/// Returns how etcd is reached as JSON.
fn etcd(etcd: &Etcd) -> Value {
    let first = etcd.endpoints.first();
    json!({
        "endpoints": etcd.endpoints.iter().map(|peer| peer.url.to_string()).collect::<Vec<_>>(),
        "ca": first.and_then(|peer| peer.ca.as_ref()).map(|ca| &ca.path),
        "certificate": first.and_then(|peer| peer.certificate.as_deref()).map(certificate),
        "user": etcd.user.as_ref().map(|(name, _)| name.shown()),
    })
}

/// Returns the fleet as JSON; of the keys only their number.
fn fleet(fleet: &Fleet) -> Value {
    json!({
        "address": fleet.address,
        "advertise": fleet.advertise,
        "name": fleet.name,
        "host": fleet.host,
        "members": texts(fleet.members.iter()),
        "discover": fleet.discover.as_deref().map(discover),
        "keys": fleet.keys.len(),
        "probers": fleet.probers,
        "tls": fleet.tls.as_ref().map(|tls| {
            json!({
                "certificate": certificate(&tls.certificate),
                "ca": tls.ca.path,
                "name": tls.name.as_deref(),
            })
        }),
    })
}

/// Returns where servers, or members of the fleet, come from as JSON.
fn discover(discover: &Discover) -> Value {
    json!({
        "source": discover.source.to_string(),
        "interval_ms": match &discover.source {
            ServerSource::HttpSd { interval, .. } => Some(millis(*interval)),
            _ => None,
        },
        "port": discover.port,
        "in_flight": discover.limits.as_str(),
        "hold_share": discover.hold.share,
        "hold_max_ms": millis(discover.hold.max),
        "saved": discover.saved,
        "kept_max_ms": discover.kept_max.map(millis),
    })
}

/// Returns TLS settings towards a service's servers as JSON.
fn service_tls(tls: &ServiceTls) -> Value {
    json!({
        "name": tls.name.as_deref(),
        "names": texts(tls.names.iter()),
        "verify": tls.verify,
        "ca": tls.verify.then_some(&tls.ca.path),
        "certificate": tls.certificate.as_ref().map(certificate),
    })
}
