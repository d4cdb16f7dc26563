//! Exact texts.

use super::*;
use crate::checks::{Check, Checks, load};
use crate::finding::{Certainty, CouldNotCheck, Severity};
use crate::sysctl::of_file;

fn overflow() -> Finding {
    Finding::new(
        "listener_overflow",
        "0.0.0.0:80",
        Severity::Critical,
        Certainty::Certain,
        "nginx at 0.0.0.0:80 drops 12.4 new connections a second: its accept queue is full.",
    )
    .evidence(Evidence::number("TcpExtListenOverflows", 12.4, "per second").in_all(3_210))
    .evidence(Evidence::count("backlog", 511, "connections"))
    .why("Clients wait whole seconds.")
    .remedy("Raise the backlog", &["listen 80 backlog=4096;"], "a restart")
    .remedy("Accept faster", &[], "none")
    .verify("nstat -az TcpExtListenOverflows no longer rises")
    .source(&["sock_diag", "/proc/net/netstat"])
}

#[test]
fn a_finding_reads_from_what_to_where_it_comes_from() {
    let expected = "\
CRITICAL  nginx at 0.0.0.0:80 drops 12.4 new connections a
          second: its accept queue is full.
          listener_overflow, certain
evidence  TcpExtListenOverflows  12.4 per second; 3,210 in
                                 all
          backlog                511 connections
why       Clients wait whole seconds.
do        1. Raise the backlog.
               listen 80 backlog=4096;
             Risk: a restart.
          2. Accept faster.
             Risk: none.
verify    nstat -az TcpExtListenOverflows no longer rises
source    sock_diag, /proc/net/netstat
";
    assert_eq!(finding(&overflow(), 60), expected);
}

#[test]
fn a_report_ends_with_a_count() {
    let mut of = Report { findings: vec![overflow()], could_not_check: Vec::new() };
    assert!(report(&of, 80).ends_with("\n1 finding: 1 critical.\n"));
    of.could_not_check = vec![CouldNotCheck {
        what: "softnet".to_owned(),
        reason: "/proc/net/softnet_stat: visible in the first network namespace only".to_owned(),
    }];
    of.findings.clear();
    let expected = "\
Could not check softnet:
  /proc/net/softnet_stat: visible in the
  first network namespace only.

No findings; 1 thing could not be checked.
";
    assert_eq!(report(&of, 10), expected);
}

#[test]
fn findings_of_one_kind_share_an_entry() {
    let at = |subject: &str| Finding { subject: subject.to_owned(), ..overflow() };
    let elsewhere = Finding { namespace: Some("web".to_owned()), ..at("0.0.0.0:82") };
    let other = Finding { rule: "loss".into(), ..overflow() };
    let advice = Finding { severity: Severity::Advice, ..at("0.0.0.0:84") };
    let findings = vec![overflow(), other, at("0.0.0.0:81"), elsewhere, advice];
    let text = report(&Report { findings, could_not_check: Vec::new() }, 100);
    let others = "listener_overflow, certain
          and 2 more of this kind: 0.0.0.0:81 and 0.0.0.0:82 in namespace web
";
    assert!(text.contains(others), "{text}");
    // The entry of the rule, that of the other rule, and that of the other severity.
    assert_eq!(text.matches("drops 12.4 new connections").count(), 3, "{text}");
    assert!(text.ends_with("5 findings: 4 critical, 1 advice.\n"), "{text}");
}

#[test]
fn commands_are_never_wrapped() {
    let mut long = overflow();
    long.remedy[0].commands = vec!["x".repeat(200)];
    assert!(finding(&long, 40).contains(&"x".repeat(200)));
}

#[test]
fn lines_keep_to_the_width() {
    let text = finding(&overflow(), 60);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(text.lines().all(|line| !line.ends_with(' ')), "{text}");
}

#[test]
fn a_storm_of_checks_is_told_in_figures_and_words() {
    let checks = (0..70).map(|n| Check {
        service: format!("service-{n}"),
        endpoint: "10.0.1.10:80".to_owned(),
        kind: "connect".to_owned(),
        interval_ms: 2_000,
    });
    let of = Checks {
        checks: checks.collect(),
        processes: 1,
        is_shared: false,
        notes: vec!["line 3: something.".to_owned()],
    };
    let expected = "\
endpoint      services  unshared (/s)  shared (/s)
10.0.1.10:80        70          1,120           16

10.0.1.10:80 receives 1,120 health checks a second from 32 nodes, for 70
services. If each node checked it once and shared the verdict, it would be 16.
Providers throttle small instances at some 500 connections a second, and drop
the SYNs of others with them. In HAProxy let one backend check and the others
follow it (`track`).
Note: line 3: something.
";
    assert_eq!(super::checks(&load(&of, 32), 80), expected);
    let weir = Checks { is_shared: true, notes: Vec::new(), ..of };
    let expected = "\
10.0.1.10:80 receives 16 health checks a second from 32 nodes, for 70 services.
Equal checks are shared; if each service checked for itself it would be 1,120.
";
    assert!(super::checks(&load(&weir, 32), 80).ends_with(expected));
    assert!(super::checks(&load(&Checks::default(), 1), 80).ends_with("Nothing is checked.\n"));
}

#[test]
fn settings_are_spelt_out_and_counted() {
    let machine = Machine { memory_bytes: Some(8 << 30), ..Machine::usual() };
    let text = "net.ipv4.tcp_mem = 8388608 8388608 8388608\nnet.ipv4.tcp_tw_recycle = 1\n";
    let expected = "\
harms     net.ipv4.tcp_mem
          = 8,388,608 pages = 32 GiB; 8,388,608 pages = 32 GiB; 8,388,608 pages
          = 32 GiB
          default: 98304 131072 196608
          set by x.conf line 1
          It is in pages: 32 GiB of the machine's 8 GiB for TCP alone, so memory
          runs out before sockets slow down.

dead      net.ipv4.tcp_tw_recycle
          = 1
          default: 0
          set by x.conf line 2
          Removed in Linux 4.12: it broke clients behind NAT. The line does
          nothing and should go.

2 settings: 1 harms, 1 dead.
";
    assert_eq!(settings(&of_file("x.conf", text, &machine), 80), expected);
    assert_eq!(settings(&[], 80), "0 settings.\n");
}

#[test]
fn a_setting_has_a_page() {
    let setting = Setting::by_name("net.core.somaxconn").unwrap();
    let text = setting_page(setting, &Machine::usual(), 80);
    let start = "net.core.somaxconn\n\nThe largest listen backlog that the kernel allows.\n\n\
                 unit      connections\ndefault   4,096 connections (Linux 6.18)\n\nThe kernel silently";
    assert!(text.starts_with(start), "{text}");
}
