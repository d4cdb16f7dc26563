//! Describes a probe in words, and the details in which two of them differ.

use model::{BodyExpectation, CheckKind, HttpVersion, ProbeSpec, ProbeTls};

use super::Difference;

/// `GET /status, Host api.example.com, expects 200, TLS as api.example.com, HTTP/2`.
pub(super) fn describe(spec: &ProbeSpec) -> String {
    let mut parts = Vec::new();
    match &spec.kind {
        CheckKind::Tcp if spec.tls.is_some() => parts.push("tcp connect and TLS handshake".into()),
        CheckKind::Tcp => parts.push("tcp connect".into()),
        CheckKind::Http { method, path, host, fields, expect, body, reuse } => {
            parts.push(format!("{method} {path}"));
            parts.extend(host.as_ref().map(|host| format!("Host {host}")));
            parts.extend(fields.iter().map(|(name, value)| format!("{name}: {}", value.shown())));
            parts.push(format!("expects {}", expect_text(&expect.0)));
            parts.extend(body_text(body));
            parts.extend((!reuse).then(|| "a connection each".to_owned()));
        }
        CheckKind::Grpc { service, host } => {
            parts.push(format!("gRPC health of {}", grpc_service(service)));
            parts.extend(host.as_ref().map(|host| format!("Host {host}")));
            parts.push("expects SERVING".into());
        }
    }
    if let Some(tls) = &spec.tls {
        parts.push(format!("TLS as {}{}", tls.name, unverified(tls)));
    }
    if spec.http == HttpVersion::Http2 {
        parts.push("HTTP/2".into());
    }
    if let Some(version) = spec.send_proxy {
        parts.push(format!("PROXY {}", version.as_str()));
    }
    parts.join(", ")
}

/// Returns the details in which they differ; none if they are the same probe.
pub(super) fn differences(one: &ProbeSpec, other: &ProbeSpec) -> Vec<Difference> {
    let pairs = aspects(one).into_iter().zip(aspects(other));
    let mut found: Vec<_> = pairs
        .filter(|((_, one), (_, other))| one != other)
        // If the kinds differ, only the kind is worth mentioning.
        .filter(|((aspect, one), (_, other))| {
            *aspect == "kind" || (one.is_some() && other.is_some())
        })
        .map(|((aspect, one), (_, other))| Difference {
            aspect,
            one: one.unwrap_or_default(),
            other: other.unwrap_or_default(),
        })
        .collect();
    if let (CheckKind::Http { fields: one, .. }, CheckKind::Http { fields: other, .. }) =
        (&one.kind, &other.kind)
        && one != other
        && !found.iter().any(|difference| difference.aspect == "fields")
    {
        let (one, other) = ("a secret".to_owned(), "another secret".to_owned());
        found.push(Difference { aspect: "fields", one, other });
    }
    if let (Some(one), Some(other)) = (&one.tls, &other.tls)
        && one.settings != other.settings
        && one.settings.verify == other.settings.verify
    {
        let text = |tls: &ProbeTls| {
            let shown = tls.settings.certificate.as_ref();
            let shown = shown.map_or("no certificate".to_owned(), |certificate| {
                format!("certificate {}", certificate.chain.path.display())
            });
            format!("CA {}, {shown}", tls.settings.ca.path.display())
        };
        found.push(Difference { aspect: "TLS files", one: text(one), other: text(other) });
    }
    found
}

/// Returns each detail with its value, if the probe has it.
fn aspects(spec: &ProbeSpec) -> [(&'static str, Option<String>); 12] {
    let (mut method, mut path, mut fields, mut expect, mut reuse) = (None, None, None, None, None);
    let (mut authority, mut service, mut body) = (None, None, None);
    match &spec.kind {
        CheckKind::Tcp => {}
        CheckKind::Http {
            method: of,
            path: at,
            host,
            fields: all,
            expect: statuses,
            body: of_body,
            reuse: kept,
        } => {
            let all: Vec<_> = all.iter().map(|(n, v)| format!("{n}: {}", v.shown())).collect();
            fields = Some(if all.is_empty() { "none".into() } else { all.join(", ") });
            (method, path, authority) = (Some(of.clone()), Some(at.clone()), host.clone());
            body = Some(body_text(of_body).unwrap_or_else(|| "any".to_owned()));
            (expect, reuse) = (Some(expect_text(&statuses.0)), Some(kept.to_string()));
        }
        CheckKind::Grpc { service: of, host } => {
            (service, authority) = (Some(grpc_service(of).to_owned()), host.clone());
        }
    }
    let tls = spec.tls.as_ref();
    let tls = tls.map_or("none".to_owned(), |tls| format!("{}{}", tls.name, unverified(tls)));
    let http = spec.http.as_str();
    [
        ("kind", Some(spec.kind.as_str().into())),
        ("method", method),
        ("path", path),
        ("Host", authority),
        ("fields", fields),
        ("expect", expect),
        ("body", body),
        ("reuse", reuse),
        ("service", service),
        ("TLS", Some(tls)),
        ("HTTP", Some(http.into())),
        ("PROXY", Some(spec.send_proxy.map_or("none", |version| version.as_str()).into())),
    ]
}

fn body_text(body: &BodyExpectation) -> Option<String> {
    let pattern = body.pattern.as_ref().map(|pattern| format!("a body ~ {}", pattern.as_str()));
    let json = body.json.iter().map(|(path, value)| format!("JSON {path} = {value}"));
    let parts: Vec<_> = pattern.into_iter().chain(json).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn grpc_service(name: &str) -> &str {
    if name.is_empty() { "the whole server" } else { name }
}

fn unverified(tls: &ProbeTls) -> &'static str {
    if tls.settings.verify { "" } else { " (unverified)" }
}

fn expect_text(ranges: &[(u16, u16)]) -> String {
    let texts: Vec<_> = ranges
        .iter()
        .map(|&(low, high)| if low == high { low.to_string() } else { format!("{low}-{high}") })
        .collect();
    texts.join(",")
}
