//! Reads `[[listener]]`.

use std::sync::Arc;
use std::time::Duration;

use model::{
    Address, AddressField, ClientAddress, ClientTimeouts, ForwardFields, Hosts, ProtocolWord,
    SocketAccess,
};

use super::table::{Table, choose, is_empty_list};
use super::{RawListener, RawProtocol, error_page, http, name, net, register, tls};
use crate::defaults;
use crate::diagnostic::{At, Diagnostic, Wrong};

pub(super) fn read(mut table: Table<'_>) -> RawListener {
    let address = table.text("address", |text| net::listen_address(text, "/run/weir/http.sock"));
    let socket = socket(&mut table, address.as_ref());
    let given = table.text("name", name);
    let protocol = protocol(&mut table);
    let connections_max = table.integer_if("connections_max");
    let backlog = table.integer_if("backlog").map(|at| at.value);
    let trusted = table.texts("trusted", net::network).unwrap_or_default();
    warn_if_all_trusted(&trusted, &table);
    let client_address = client_address(&mut table, trusted.is_empty());
    let forward_fields = forward_fields(&mut table);
    let timeouts = timeouts(table.table("timeouts"));
    let head_max_bytes = u32::try_from(table.size("head_max").value).unwrap_or(u32::MAX);
    let body_max_bytes = table.size_if("body_max").map(|at| at.value);
    let proxy_status = table.boolean("proxy_status");
    let error_pages = error_page::read(&mut table);
    let hosts = hosts(&mut table);
    let upgrade_protocols = upgrade_protocols(&mut table);
    let tls = tls::of_listener(&mut table);
    let decrypts = !matches!(protocol, RawProtocol::Tls { .. });
    // TLS by default is for the listeners that decrypt it.
    let tls = tls.filter(|_| decrypts || table.own_key_span("tls").is_some());
    let http2 = tls::http2(&mut table);
    let proxy_protocol = table.texts("proxy_protocol", net::network).unwrap_or_default();
    let register = register::read(&mut table, address.as_ref());
    let span = table.span.clone();
    let is_named = table.key_span("name").is_some();
    table.finish();
    let name = given.unwrap_or_else(|| match &address {
        Some(address) if !is_named => address.clone().map(|address| address.to_string().into()),
        _ => At { value: "".into(), span: span.clone() },
    });
    RawListener {
        name,
        address,
        socket,
        span,
        backlog,
        connections_max,
        trusted: trusted.into_iter().map(|at| at.value).collect(),
        client_address,
        forward_fields,
        timeouts,
        head_max_bytes,
        body_max_bytes,
        proxy_status,
        error_pages,
        http2: if matches!(protocol, RawProtocol::Http) { http2 } else { None },
        tls,
        hosts,
        upgrade_protocols,
        proxy_protocol: proxy_protocol.into_iter().map(|at| at.value).collect(),
        protocol,
        register,
    }
}

fn protocol(table: &mut Table<'_>) -> RawProtocol {
    let protocol = table.word_at("protocol", ProtocolWord::Http);
    // What is no protocol may have been meant to be tcp.
    let is_certain =
        table.peek("protocol").is_none_or(|word| word.as_str() == Some(protocol.value.as_str()));
    let service = table.text("service", name);
    let by_name = server_names(table);
    match (protocol.value, service) {
        (ProtocolWord::Tcp, otherwise) if by_name.is_some() => {
            warn_of_http_keys(table);
            RawProtocol::Tls { names: by_name.unwrap_or_default(), otherwise }
        }
        (ProtocolWord::Tcp, Some(service)) => {
            warn_of_http_keys(table);
            RawProtocol::Tcp(service)
        }
        (ProtocolWord::Tcp, None) => {
            if table.key_span("service").is_none() {
                table.problems.report_absence(
                    Diagnostic::error(
                        "a tcp listener needs a service",
                        protocol.span,
                        "tcp, but to whom?",
                    )
                    .help("write service = \"NAME\" beside it: all of its connections go there; or server_names, for TLS by server name"),
                );
            }
            RawProtocol::Http
        }
        (ProtocolWord::Http, _) if !is_certain => RawProtocol::Http,
        (ProtocolWord::Http, _) if by_name.is_some() => {
            if let Some(span) = table.key_span("server_names") {
                table.problems.report(
                    Diagnostic::error(
                        "`server_names` is for the connections of a tcp listener",
                        span,
                        "this listener is http",
                    )
                    .help("write protocol = \"tcp\" beside it; or tls = { … } and [[route]] with host = \"…\""),
                );
            }
            RawProtocol::Http
        }
        (ProtocolWord::Http, Some(service)) => {
            table.problems.report(
                Diagnostic::error(
                    "an http listener names no service; its routes do",
                    table.key_span("service").unwrap_or(service.span),
                    "not here",
                )
                .help(format!(
                    "write [[route]] with service = \"{}\", or protocol = \"tcp\" if bytes are to be passed on as they are",
                    service.value
                )),
            );
            RawProtocol::Http
        }
        (ProtocolWord::Http, None) => RawProtocol::Http,
    }
}

/// Server names and their services.
type ByName = Vec<(At<String>, At<Arc<str>>)>;

/// Reads `server_names`, if present.
fn server_names(table: &mut Table<'_>) -> Option<ByName> {
    let names = table.map("server_names", net::server_name, name);
    table.key_span("server_names").map(|_| names)
}

fn warn_of_http_keys(table: &Table<'_>) {
    let of_http = [
        "trusted",
        "client_address",
        "forward_fields",
        "head_max",
        "body_max",
        "proxy_status",
        "error_page",
        "http2",
        "hosts",
        "upgrade_protocols",
    ];
    for span_of in of_http.map(|key| (key, table.own_key_span(key))) {
        if let (key, Some(span)) = span_of {
            table.problems.report(Diagnostic::warning(
                format!("`{key}` means nothing to a tcp listener"),
                span,
                "not used",
            ));
        }
    }
}

/// Warns of `trusted` networks that include every address.
fn warn_if_all_trusted(trusted: &[At<ipnet::IpNet>], table: &Table<'_>) {
    if let Some(all) = trusted.iter().find(|at| at.value.prefix_len() == 0) {
        table.problems.report(
            Diagnostic::warning(
                "every client is trusted, and can state any address as its own",
                all.span.clone(),
                "all addresses",
            )
            .help("name the networks of the proxies in front of this listener"),
        );
    }
}

/// Reads who may connect to a Unix socket.
fn socket(table: &mut Table<'_>, address: Option<&At<Address>>) -> SocketAccess {
    let span = table.own_key_span("socket");
    let Some(mut below) = table.table("socket") else { return SocketAccess::default() };
    let mode = below.text("mode", |text| {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let is_octal =
            digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let wrong = || Wrong::new("not three octal digits").help("write it as \"660\"");
        u32::from_str_radix(digits, 8).ok().filter(|_| is_octal).ok_or_else(wrong)
    });
    let group = below.text("group", super::account);
    below.finish();
    if let (Some(span), Some(At { value: Address::Ip(_), .. })) = (span, address) {
        table.problems.report(
            Diagnostic::error("`socket` is for Unix sockets", span, "this listener has none")
                .help("leave it out, or write address = \"unix:/run/weir/http.sock\""),
        );
    }
    let usual = SocketAccess::default();
    SocketAccess { mode: mode.map_or(usual.mode, |at| at.value), group: group.map(|at| at.value) }
}

/// Reads `client_address` of the listener `table`.
fn client_address(table: &mut Table<'_>, trusts_none: bool) -> ClientAddress {
    let span = table.own_key_span("client_address");
    let Some(mut below) = table.table("client_address") else {
        return ClientAddress::default();
    };
    let field = below.text("field", address_field).map(|at| at.value);
    let hops = below.integer_if("hops");
    if let (Some(AddressField::Single(name)), Some(hops)) = (&field, &hops) {
        below.problems.report(
            Diagnostic::error(
                format!("`{name}` holds one address, so there is nothing to count"),
                hops.span.clone(),
                "for X-Forwarded-For and Forwarded only",
            )
            .help("remove hops"),
        );
    }
    below.finish();
    if let Some(span) = span.filter(|_| trusts_none) {
        table.problems.report(
            Diagnostic::warning(
                "`client_address` has no effect without `trusted`",
                span,
                "the field of a peer that is not trusted is never read",
            )
            .help("write trusted = [\"10.0.0.0/8\"] beside it, with the networks of the proxies"),
        );
    }
    let ClientAddress { field: usual, .. } = ClientAddress::default();
    ClientAddress { field: field.unwrap_or(usual), hops: hops.map(|at| at.value) }
}

fn address_field(text: &str) -> Result<AddressField, Wrong> {
    Ok(match http::field_name(text)?.as_str() {
        "x-forwarded-for" => AddressField::XForwardedFor,
        "forwarded" => AddressField::Forwarded,
        _ => AddressField::Single(text.into()),
    })
}

fn forward_fields(table: &mut Table<'_>) -> ForwardFields {
    let choices =
        table.texts("forward_fields", |text| choose(text, defaults::FORWARD_FIELDS_KNOWN));
    let has = |word: &str| match &choices {
        Some(named) => named.iter().any(|at: &At<&str>| at.value == word),
        None => defaults::FORWARD_FIELDS.contains(&word),
    };
    ForwardFields {
        x_forwarded: has("x-forwarded"),
        forwarded: has("forwarded"),
        request_id: has("x-request-id"),
        traceparent: has("traceparent"),
        real_ip: has("x-real-ip"),
        via: has("via"),
    }
}

/// Reads `hosts`.
fn hosts(table: &mut Table<'_>) -> Option<Hosts> {
    let patterns = table.texts("hosts", net::host_pattern)?;
    if is_empty_list(table.peek("hosts")) {
        table.problems.report(
            Diagnostic::error("a listener for no host at all", table.span_of("hosts"), "empty")
                .help("leave `hosts` out to serve any host"),
        );
    }
    (!patterns.is_empty()).then(|| Hosts::new(patterns.into_iter().map(|at| at.value)))
}

fn upgrade_protocols(table: &mut Table<'_>) -> Vec<Box<str>> {
    match table.texts("upgrade_protocols", http::upgrade_protocol) {
        Some(named) => named.into_iter().map(|at| at.value.into()).collect(),
        None => defaults::UPGRADE_PROTOCOLS.iter().map(|&name| name.into()).collect(),
    }
}

fn timeouts(table: Option<Table<'_>>) -> ClientTimeouts {
    let Some(mut table) = table else {
        return ClientTimeouts {
            head: defaults::CLIENT_HEAD,
            idle: defaults::CLIENT_IDLE,
            body: defaults::CLIENT_BODY,
        };
    };
    let mut duration = |key| -> Duration { table.duration(key).value };
    let timeouts =
        ClientTimeouts { head: duration("head"), idle: duration("idle"), body: duration("body") };
    table.finish();
    timeouts
}
