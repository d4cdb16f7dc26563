//! Tests of displayed plans.

use super::*;
use model::{
    Check, CheckKind, HttpVersion, Material, ProbeTls, ProxyVersion, ServerSpec, Service,
    ServiceTls, StatusSet, Text,
};

fn asked(service: &str, path: &str, host: &str, interval_s: u64) -> Asked {
    Asked {
        endpoint: Endpoint::Address(std::net::SocketAddr::from(([10, 0, 1, 5], 8080)).into()),
        spec: ProbeSpec {
            kind: CheckKind::Http {
                method: "GET".into(),
                path: path.into(),
                host: Some(host.into()),
                fields: vec![],
                expect: StatusSet(vec![(200, 200)]),
                body: model::BodyExpectation::default(),
                reuse: true,
            },
            tls: None,
            http: HttpVersion::Http11,
            send_proxy: None,
        },
        interval: Duration::from_secs(interval_s),
        service: service.into(),
    }
}

#[test]
fn probes_that_differ_in_a_detail_are_explained() {
    let report = build(vec![
        asked("listings", "/status", "a", 2),
        asked("search", "/status", "b", 2),
        asked("photos", "/status", "a", 1),
    ]);
    let row = &report.rows[0];
    assert_eq!(row.probes.len(), 2);
    assert_eq!(row.probes[0].what, "GET /status, Host a, expects 200");
    assert_eq!(row.near_duplicates.len(), 1);
    assert_eq!(
        row.near_duplicates[0].to_string(),
        "same endpoint, differ in Host: a vs b (listings, photos vs search)"
    );
    assert!((row.probes_per_s - 1.5).abs() < 1e-9);
    assert!((row.unshared_per_s - 2.0).abs() < 1e-9);
}

#[test]
fn probes_that_differ_in_much_are_not_called_alike_and_tcp_is_near_http() {
    let mut other = asked("other", "/deep", "z", 2);
    if let CheckKind::Http { method, .. } = &mut other.spec.kind {
        *method = "HEAD".into();
    }
    let mut tcp = asked("tcp", "", "", 2);
    tcp.spec.kind = CheckKind::Tcp;
    let row = build(vec![asked("one", "/status", "a", 2), other, tcp]).rows.remove(0);
    assert_eq!(row.probes.len(), 3);
    let texts: Vec<_> = row.near_duplicates.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["same endpoint, differ in kind: http vs tcp (one vs tcp)"]);
}

#[test]
fn a_thousand_virtual_hosts_do_not_make_a_thousand_sentences() {
    let all = (0..1000).map(|n| asked("s", "/status", &format!("h{n}"), 2)).collect();
    let row = build(all).rows.remove(0);
    assert_eq!(row.near_duplicates.len(), NEAR_DUPLICATES_LISTED_MAX);
    assert_eq!(row.near_duplicates.len() + row.near_duplicates_more, 999);
}

#[test]
fn a_reused_and_a_fresh_probe_stay_two() {
    let mut fresh = asked("prefork", "/status", "a", 2);
    if let CheckKind::Http { reuse, .. } = &mut fresh.spec.kind {
        *reuse = false;
    }
    let row = build(vec![asked("one", "/status", "a", 2), fresh]).rows.remove(0);
    assert_eq!(row.probes.len(), 2);
    assert!(row.near_duplicates[0].to_string().contains("reuse: "));
}

#[test]
fn a_configuration_alone_has_a_plan_with_names_under_their_name() {
    let second = Duration::from_secs(1);
    let server = |target| ServerSpec {
        target,
        zone: None,
        weight: 1,
        backup: false,
        in_flight_max: None,
        version: None,
    };
    let address = ServerTarget::Address(std::net::SocketAddr::from(([10, 0, 1, 5], 8080)).into());
    let named = ServerTarget::Name { host: "listings.internal".into(), port: 8080 };
    let mut kind = asked("", "/status", "", 2).spec.kind;
    if let CheckKind::Http { host, .. } = &mut kind {
        *host = None;
    }
    let service = |name: &str, port| Service {
        servers: vec![server(address.clone()), server(named.clone())],
        ..crate::testing::service(
            name,
            &Check {
                kind: kind.clone(),
                port,
                clear_text: false,
                http: None,
                interval: 2 * second,
                timeout: second,
                rise: 2,
                fall: 3,
            },
        )
    };
    let snapshot = Snapshot {
        services: [service("a", None), service("b", None), service("c", Some(9000))]
            .map(Into::into)
            .to_vec(),
        ..Snapshot::empty()
    };
    let report = of_snapshot(&snapshot);
    let rows: Vec<_> = report.rows.iter().map(|row| row.endpoint.to_string()).collect();
    let names = ["listings.internal:8080", "listings.internal:9000"];
    assert_eq!(rows, ["10.0.1.5:8080", "10.0.1.5:9000", names[0], names[1]]);
    assert!((report.probes_per_s() - 2.0).abs() < 1e-9);
    assert!((report.unshared_per_s() - 3.0).abs() < 1e-9);
    assert_eq!(report.rows[1].probes[0].what, "GET /status, Host 10.0.1.5:8080, expects 200");
    assert!(report.rows[2].probes[0].what.contains("Host listings.internal:8080"));
}

/// TLS as `name`, trusting the authorities of `ca`.
fn tls(name: &str, ca: &str) -> ProbeTls {
    let ca = Material { path: ca.into(), bytes: ca.as_bytes().into() };
    let settings =
        ServiceTls { name: None, names: Vec::new(), verify: true, ca, certificate: None };
    ProbeTls { name: name.into(), settings: Arc::new(settings) }
}

#[test]
fn tls_http2_proxy_and_grpc_are_described() {
    let mut all = asked("all", "/status", "a", 2);
    all.spec.tls = Some(tls("x.internal", "ca.pem"));
    all.spec.http = HttpVersion::Http2;
    all.spec.send_proxy = Some(ProxyVersion::V2);
    let mut grpc = asked("grpc", "", "", 2);
    grpc.spec.kind = CheckKind::Grpc { service: "a.B".into(), host: Some("h".into()) };
    grpc.spec.http = HttpVersion::Http2;
    let mut whole = asked("whole", "", "", 2);
    whole.spec.kind = CheckKind::Grpc { service: String::new(), host: Some("h".into()) };
    whole.spec.http = HttpVersion::Http2;
    let mut handshake = asked("handshake", "", "", 2);
    handshake.spec = ProbeSpec {
        kind: CheckKind::Tcp,
        tls: Some(tls("x.internal", "ca.pem")),
        http: HttpVersion::Http11,
        send_proxy: Some(ProxyVersion::V1),
    };
    let row = build(vec![all, grpc, whole, handshake]).rows.remove(0);
    let texts: Vec<_> = row.probes.iter().map(|probe| probe.what.as_str()).collect();
    assert_eq!(
        texts,
        [
            "GET /status, Host a, expects 200, TLS as x.internal, HTTP/2, PROXY v2",
            "gRPC health of a.B, Host h, expects SERVING, HTTP/2",
            "gRPC health of the whole server, Host h, expects SERVING, HTTP/2",
            "tcp connect and TLS handshake, TLS as x.internal, PROXY v1",
        ]
    );
    let texts: Vec<_> = row.near_duplicates.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["same endpoint, differ in service: a.B vs the whole server (grpc vs whole)"]
    );
}

#[test]
fn probes_that_differ_in_what_their_text_leaves_out_stay_two() {
    let with = |service: &str, ca: &str| {
        let mut asked = asked(service, "/status", "a", 2);
        asked.spec.tls = Some(tls("x.internal", ca));
        asked
    };
    let row = build(vec![with("one", "a.pem"), with("two", "b.pem"), with("three", "a.pem")]);
    let row = &row.rows[0];
    assert_eq!(row.probes.len(), 2);
    assert_eq!(row.probes[0].what, row.probes[1].what);
    assert_eq!(
        row.near_duplicates[0].to_string(),
        "same endpoint, differ in TLS files: CA a.pem, no certificate vs CA b.pem, no certificate \
         (one, three vs two)"
    );
    assert!((row.probes_per_s - 1.0).abs() < 1e-9);
}

#[test]
fn probes_that_differ_in_a_secret_are_explained_without_it() {
    let with = |service: &str, secret: &str| {
        let mut asked = asked(service, "/status", "a", 2);
        if let CheckKind::Http { fields, .. } = &mut asked.spec.kind {
            fields.push(("x-token".into(), Text::secret(secret.to_owned())));
        }
        asked
    };
    let row = &build(vec![with("one", "hunter2"), with("two", "hunter3")]).rows[0];
    assert_eq!(
        row.near_duplicates[0].to_string(),
        "same endpoint, differ in fields: a secret vs another secret (one vs two)"
    );
}
