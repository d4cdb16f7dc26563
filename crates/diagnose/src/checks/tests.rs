//! Loads from configurations.

use std::fmt::Write as _;

use super::*;

/// 70 services of the same four endpoints, as a company had them on 32 nodes.
fn storm() -> String {
    let mut text = String::from(
        "global\n  maxconn 1000\n\ndefaults\n  mode http\n  default-server inter 2s\n\n",
    );
    for service in 0..70 {
        let _ = write!(
            text,
            "listen service-{service}\n  bind 127.0.0.1:{}\n  server mesh-a 10.0.1.10:80 check\n",
            9000 + service
        );
        for zone in 2..=4 {
            let _ = writeln!(text, "  server mesh-{zone} 10.0.{zone}.10:80 check backup");
        }
    }
    text
}

#[test]
fn seventy_services_on_32_nodes_make_1120_connections_a_second() {
    let checks = of_haproxy(&storm()).unwrap();
    assert_eq!((checks.checks.len(), checks.notes.len()), (280, 0));
    let load = load(&checks, 32);
    assert_eq!(load.endpoints.len(), 4);
    for endpoint in &load.endpoints {
        assert!((endpoint.unshared_per_s - 1_120.0).abs() < 1e-6, "{endpoint:?}");
        assert!((endpoint.shared_per_s - 16.0).abs() < 1e-6, "{endpoint:?}");
        assert_eq!((endpoint.services, endpoint.distinct, endpoint.interval_ms), (70, 1, 2_000));
    }
    assert_eq!(load.storms().count(), 4);
}

#[test]
fn what_haproxy_says_about_a_check_is_read() {
    let text = r#"
global
    nbproc 2
defaults first
    option httpchk GET /ping
    default-server check inter 5s
defaults second
    default-server check
frontend f
    bind :80
    server not-a-server 10.9.9.9:80 check
backend a from first
    server a1 10.0.0.1:80
    server a2 10.0.0.2:80 no-check
    server a3 10.0.0.3:80 inter 500 port 8081
    server a4 10.0.0.4:80 disabled
    server a5 10.0.0.5:80 track other/x
backend b
    server-template b 1-3 b.example:8080 inter 1m
    server b4 [2001:db8::1]:443 ssl check-sni b.example addr 10.0.0.9
backend c from first
    http-check send meth GET uri /deep hdr Host "c.example"
    server c1 10.0.0.1:80
    server c2 10.0.0.1
    server c3
    server c4 unix@/run/c.sock
    server c5 "${HOST}:80" inter often
"#;
    let checks = of_haproxy(text).unwrap();
    let lines: Vec<String> = checks
        .checks
        .iter()
        .map(|one| {
            format!("{} {} every {}: {}", one.service, one.endpoint, one.interval_ms, one.kind)
        })
        .collect();
    let expected = [
        "a 10.0.0.1:80 every 5000: GET /ping",
        "a 10.0.0.3:8081 every 500: GET /ping",
        "b b.example:8080 #1 every 60000: connect",
        "b b.example:8080 #2 every 60000: connect",
        "b b.example:8080 #3 every 60000: connect",
        "b 10.0.0.9:443 every 2000: connect over TLS for b.example",
        "c 10.0.0.1:80 every 5000: GET /ping, meth GET uri /deep hdr Host c.example",
        "c unix@/run/c.sock every 5000: GET /ping, meth GET uri /deep hdr Host c.example",
        "c ${HOST}:80 every 5000: GET /ping, meth GET uri /deep hdr Host c.example",
    ];
    assert_eq!(lines, expected);
    assert_eq!(checks.processes, 2);
    let notes = [
        "line 19: its 3 servers count as one endpoint each, by number; DNS may know fewer.",
        "line 25: this server has no address; it is left out.",
        "line 27: its `inter` is not understood; 2 s are assumed.",
        "line 27: its address comes from the environment, and counts by the variable's name.",
        "line 24: its check has no port; it is left out.",
    ];
    assert_eq!(checks.notes, notes);
}

/// Two checks that differ are two, and a shared one runs as often as the service that wants it most
/// often.
#[test]
fn what_differs_is_not_shared() {
    let check = |service: &str, kind: &str, interval_ms| Check {
        service: service.to_owned(),
        endpoint: "10.0.0.1:80".to_owned(),
        kind: kind.to_owned(),
        interval_ms,
    };
    let checks = Checks {
        checks: vec![
            check("a", "connect", 1000),
            check("b", "connect", 4000),
            check("c", "GET /", 2000),
        ],
        processes: 1,
        ..Checks::default()
    };
    let load = load(&checks, 10);
    let one = &load.endpoints[0];
    assert_eq!((one.services, one.distinct), (3, 2));
    assert!((one.unshared_per_s - 17.5).abs() < 1e-9 && (one.shared_per_s - 15.0).abs() < 1e-9);
    assert_eq!(load.storms().count(), 0);
}

#[test]
fn nonsense_is_refused_or_survived() {
    assert!(of_haproxy("").unwrap_err().contains("no configuration of HAProxy"));
    assert!(of_haproxy("<html>").is_err());
    let text = "backend\nserver\nserver-template\nserver-template x 99999999 y:1 check\n\
                server-template x 5-1 y:1 check\ndefault-server inter\noption\nno\nhttp-check\n\
                server \\\nbackend b from nowhere\nserver x y:1 check inter 99999999999999999999s\n";
    let checks = of_haproxy(text).unwrap();
    assert_eq!(checks.checks.len(), 1);
    assert!(load(&checks, u64::MAX).endpoints[0].unshared_per_s.is_finite());
}
