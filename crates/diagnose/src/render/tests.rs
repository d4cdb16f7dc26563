//! Exact texts.

use super::*;
use crate::finding::{Certainty, CouldNotCheck, Severity};

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
    .verify("nstat -az TcpExtListenOverflows rises no more")
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
verify    nstat -az TcpExtListenOverflows rises no more
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
