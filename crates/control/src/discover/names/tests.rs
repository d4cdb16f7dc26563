//! Tests of discovery against a DNS server on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Answered, Names};
use crate::testing::{DEADLINE, DnsServer, Reply, addresses, block_on};

/// Names, driven as the control loop drives it.
struct Rig {
    discovery: Names,
    answers: mpsc::Receiver<Answered>,
    changes: usize,
    answered: usize,
}

impl Rig {
    fn new(resolver: SocketAddr, servers: &[&str]) -> Rig {
        let (sender, answers) = mpsc::channel(16);
        let mut discovery = Names::new(&[], sender);
        let hosts = servers.iter().filter_map(|server| Some(server.rsplit_once(':')?.0)).collect();
        discovery.follow(&[resolver], &hosts, os::clock::now());
        Rig { discovery, answers, changes: 0, answered: 0 }
    }

    async fn until(&mut self, condition: impl Fn(&Rig) -> bool) {
        let driven = tokio::time::timeout(DEADLINE, async {
            while !condition(self) {
                self.discovery.start_due(os::clock::now());
                let wait = self.discovery.next_due().map(|due| due.since(os::clock::now()));
                tokio::select! {
                    Some((host, answer)) = self.answers.recv() => {
                        let now = os::clock::now();
                        self.changes += usize::from(self.discovery.on_answer(&host, answer, now));
                        self.answered += 1;
                    }
                    () = tokio::time::sleep(wait.unwrap_or(DEADLINE)) => {}
                }
            }
        });
        driven.await.expect("the condition within the deadline");
    }

    fn addresses(&self) -> Vec<String> {
        let status = self.discovery.status();
        status.iter().flat_map(|one| one.addresses.iter().map(ToString::to_string)).collect()
    }

    fn error(&self) -> Option<String> {
        self.discovery.status()[0].error.clone()
    }
}

#[test]
fn a_name_is_resolved_again_when_its_ttl_ends_and_not_before() {
    block_on(async {
        let dns = DnsServer::start().await;
        dns.set("app.test", addresses(&["127.0.0.2", "127.0.0.1"], 1), Reply::Empty);
        let mut rig = Rig::new(dns.address, &["app.test:80", "app.test:81"]);
        let begin = os::clock::now();
        rig.until(|rig| rig.answered == 1).await;
        assert_eq!(rig.addresses(), ["127.0.0.1", "127.0.0.2"]);
        // A and AAAA, once for both ports.
        assert_eq!(dns.queries.get(), 2);

        dns.set("app.test", addresses(&["127.0.0.3"], 3600), Reply::Empty);
        rig.until(|rig| rig.changes == 2).await;
        let waited = os::clock::now().since(begin);
        assert!(waited >= Duration::from_millis(990), "{waited:?}");
        assert_eq!(rig.addresses(), ["127.0.0.3"]);
        assert_eq!(dns.queries.get(), 4);
        let next = rig.discovery.next_due().expect("due again");
        let again = next.since(os::clock::now());
        assert!(again > Duration::from_secs(3590) && again <= Duration::from_secs(3600));
    });
}

#[test]
fn the_last_good_set_outlives_empty_answers_and_failures() {
    block_on(async {
        let dns = DnsServer::start().await;
        dns.set("app.test", addresses(&["127.0.0.1"], 1), Reply::Empty);
        let mut rig = Rig::new(dns.address, &["app.test:80"]);
        rig.until(|rig| rig.answered == 1).await;
        for (reply, told) in
            [(Reply::Empty, "A: no A records; AAAA: no AAAA records"), (Reply::ServerFailure, "")]
        {
            dns.set("app.test", reply.clone(), reply);
            let answered = rig.answered;
            rig.until(|rig| rig.answered == answered + 1).await;
            assert_eq!(rig.addresses(), ["127.0.0.1"], "{told}");
            let error = rig.error().expect("a reason");
            assert!(told.is_empty() || error == told, "{error}");
        }
        // It recovers by itself, after the growing delays of consecutive failures.
        dns.set("app.test", addresses(&["127.0.0.9"], 60), Reply::Empty);
        rig.until(|rig| rig.changes == 2).await;
        assert_eq!((rig.addresses(), rig.error()), (vec!["127.0.0.9".to_owned()], None));
    });
}

#[test]
fn ipv6_addresses_are_servers_too_and_one_family_failing_keeps_the_other() {
    block_on(async {
        let dns = DnsServer::start().await;
        dns.set("app.test", addresses(&["127.0.0.1"], 1), addresses(&["::1"], 1));
        let mut rig = Rig::new(dns.address, &["app.test:80"]);
        rig.until(|rig| rig.answered == 1).await;
        assert_eq!(rig.addresses(), ["127.0.0.1", "::1"]);
        dns.set("app.test", addresses(&["127.0.0.2"], 1), Reply::ServerFailure);
        rig.until(|rig| rig.answered == 2).await;
        assert_eq!(rig.addresses(), ["127.0.0.2", "::1"]);
        assert!(rig.error().is_some_and(|error| error.starts_with("AAAA: ")));
        dns.set("app.test", addresses(&["127.0.0.2"], 1), Reply::Empty);
        rig.until(|rig| rig.answered == 3).await;
        assert_eq!(rig.addresses(), ["127.0.0.2"]);
    });
}

#[test]
fn a_name_that_never_resolved_is_retried_and_reported() {
    block_on(async {
        let dns = DnsServer::start().await;
        let mut rig = Rig::new(dns.address, &["nowhere.test:80"]);
        assert!(!rig.discovery.is_tried("nowhere.test"));
        rig.until(|rig| rig.discovery.is_tried("nowhere.test")).await;
        assert_eq!(rig.error().as_deref(), Some("no such name"));
        assert!(rig.addresses().is_empty());
    });
}
