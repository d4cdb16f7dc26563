//! Tests of how servers in the file and listed ones become a service's servers, and of what a change waits for.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Discovery, endpoints};
use crate::testing::{DEADLINE, DnsServer, Reply, addresses, block_on, service, shared};

#[test]
fn an_endpoint_set_keeps_the_files_order_and_no_address_twice() {
    let spec = service("s", &["10.0.0.9:80", "b.test:80", "a.test:80", "a.test:81"], None);
    let set = endpoints(&spec, std::iter::empty(), |host| match host {
        "a.test" => vec!["10.0.0.1".parse().expect("ip"), "::1".parse().expect("ip")],
        _ => vec!["10.0.0.1".parse().expect("ip"), "10.0.0.9".parse().expect("ip")],
    });
    let rows: Vec<_> = set.rows.iter().map(|row| format!("{} {}", row.name, row.address)).collect();
    assert_eq!(
        rows,
        [
            "10.0.0.9:80 10.0.0.9:80",
            "b.test:80 10.0.0.1:80",
            "a.test:80 [::1]:80",
            "a.test:81 10.0.0.1:81",
            "a.test:81 [::1]:81",
        ]
    );
}

#[test]
fn a_start_waits_for_all_names_and_a_change_for_those_that_it_adds() {
    block_on(async {
        let dns = DnsServer::start().await;
        dns.set("app.test", addresses(&["127.0.0.1"], 60), Reply::Empty);
        let (answers, mut answered) = mpsc::channel(16);
        let (reports, _reported) = mpsc::channel(16);
        let (tags, _routes) = mpsc::channel(16);
        let mut discovery = Discovery::new(answers, reports, (tags, Arc::default()), (None, None));
        let of = |names: &[&str]| {
            let services =
                names.iter().map(|name| service(name, &[&format!("{name}.test:80")], None));
            shared(services.collect(), Some(dns.address))
        };
        let now = os::clock::now;
        // Nothing has been asked yet, and this one is never answered in time.
        discovery.follow(&of(&["silent"]), now());
        assert!(!discovery.is_next_tried());
        discovery.expect(&of(&["silent"]), now());
        assert!(discovery.is_next_tried(), "it was waited for");
        discovery.expect(&of(&["silent", "app"]), now());
        assert!(!discovery.is_next_tried());
        let all = tokio::time::timeout(DEADLINE, async {
            while !discovery.is_next_tried() {
                discovery.start_due(now());
                let (host, answer) = answered.recv().await.unwrap();
                if host == "app.test" {
                    discovery.on_answer(&host, answer, now());
                }
            }
        });
        all.await.expect("only what is new is waited for");
    });
}
