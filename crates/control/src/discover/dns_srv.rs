//! SRV records, looked up again when their TTL ends.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use discovery::srv::{self, Record};
use hickory_resolver::TokioResolver;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{RData, RecordType};
use tokio::sync::Semaphore;
use transport::names::Dns;

use super::backoff::Backoff;
use super::names::{LOOKUPS_RUNNING_MAX, TTL_MAX, TTL_MIN};
use super::report::Sink;

/// DNS servers, which all watches share.
pub(super) struct Client {
    dns: RefCell<Dns>,
    lookups: Semaphore,
}

impl Client {
    /// Without addresses: the system's DNS servers.
    pub(super) fn new(nameservers: &[SocketAddr]) -> Client {
        Client {
            dns: RefCell::new(Dns::new(nameservers)),
            lookups: Semaphore::new(LOOKUPS_RUNNING_MAX),
        }
    }
}

/// Reports the targets of the SRV records of `name`, now and after each TTL. A lookup that fails, or finds no records,
/// is repeated soon, then less and less often.
pub(super) async fn watch(client: Rc<Client>, name: Box<str>, port: Option<u16>, sink: Sink) {
    let mut backoff = Backoff::new();
    loop {
        let found = {
            // The semaphore is never closed.
            let _permit = client.lookups.acquire().await;
            let resolver = client.dns.borrow_mut().resolver();
            match resolver {
                Ok(resolver) => lookup(&resolver, &name).await,
                Err(why) => Err(why),
            }
        };
        let arrived = os::clock::now();
        let found = found.and_then(|(records, ttl)| Ok((srv::servers(&records, port)?, ttl)));
        let again = match &found {
            Ok((_, ttl)) => {
                backoff.reset();
                (*ttl).clamp(TTL_MIN, TTL_MAX)
            }
            Err(_) => backoff.next(),
        };
        sink.send(arrived, found.map(|(answer, _)| (answer, None))).await;
        tokio::time::sleep(again).await;
    }
}

/// Returns the SRV records of `name`, with the time for which they are valid.
async fn lookup(resolver: &TokioResolver, name: &str) -> Result<(Vec<Record>, Duration), String> {
    // With a dot at its end no search list applies: the name is complete.
    let lookup = resolver.lookup(format!("{name}."), RecordType::SRV).await;
    let lookup = lookup.map_err(|error| match &error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => "no such name".to_owned(),
            ResponseCode::NoError => "no SRV records".to_owned(),
            code => code.to_string(),
        },
        _ => error.to_string(),
    })?;
    let mut ttl_s = u32::MAX;
    let mut records = Vec::new();
    for record in lookup.answers() {
        ttl_s = ttl_s.min(record.ttl);
        if let RData::SRV(srv) = &record.data {
            records.push(Record {
                priority: srv.priority,
                weight: srv.weight,
                port: srv.port,
                target: srv.target.to_ascii(),
            });
        }
    }
    Ok((records, Duration::from_secs(ttl_s.into())))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::discover::report::{Origin, Reported};
    use crate::testing::{DEADLINE, DnsServer, Reply, block_on, services};

    const NAME: &str = "_http._tcp.web.test";

    struct Rig {
        dns: DnsServer,
        reports: mpsc::Receiver<Reported>,
    }

    impl Rig {
        async fn new(first: Reply, port: Option<u16>) -> Rig {
            let dns = DnsServer::start().await;
            dns.set_services(NAME, first);
            let (sender, reports) = mpsc::channel(16);
            let origin = Origin { service: "web".into(), watch: 1, part: 0 };
            let sink = Sink { origin, reports: sender };
            let client = Rc::new(Client::new(&[dns.address]));
            tokio::task::spawn_local(watch(client, NAME.into(), port, sink));
            Rig { dns, reports }
        }

        /// Returns the next answer: `target weight`, backups with a star.
        async fn next(&mut self) -> Result<String, String> {
            let report = tokio::time::timeout(DEADLINE, self.reports.recv()).await;
            let (answer, index) = report.expect("a report").expect("the watch runs").result?;
            assert_eq!(index, None);
            let rows = answer.rows.iter().map(|row| {
                let star = if row.server.backup { "*" } else { "" };
                format!("{} {}{star}", row.server.target, row.server.weight)
            });
            Ok(rows.collect::<Vec<_>>().join(", "))
        }
    }

    #[test]
    fn records_are_followed_when_their_ttl_ends() {
        block_on(async {
            let first = services(&[(10, 3, 8080, "a.test."), (20, 1, 8081, "B.test.")], 1);
            let mut rig = Rig::new(first, None).await;
            assert_eq!(rig.next().await.as_deref(), Ok("a.test:8080 3, b.test:8081 1*"));
            rig.dns.set_services(NAME, services(&[(20, 0, 8081, "b.test.")], 60));
            assert_eq!(rig.next().await.as_deref(), Ok("b.test:8081 1"));
            assert_eq!(rig.dns.queries.get(), 2);
        });
    }

    #[test]
    fn a_name_without_records_is_a_failure_and_asked_again() {
        block_on(async {
            let mut rig = Rig::new(Reply::NoSuchName, Some(9000)).await;
            assert_eq!(rig.next().await, Err("no such name".to_owned()));
            rig.dns.set_services(NAME, Reply::Empty);
            assert_eq!(rig.next().await, Err("no SRV records".to_owned()));
            rig.dns.set_services(NAME, services(&[(0, 0, 0, ".")], 1));
            assert_eq!(rig.next().await, Err("the SRV records name no host".to_owned()));
            rig.dns.set_services(NAME, services(&[(0, 0, 80, "a.test.")], 1));
            assert_eq!(rig.next().await.as_deref(), Ok("a.test:9000 1"));
        });
    }
}
