//! A Consul inside the test: it answers `GET /v1/health/service/NAME` and `/v1/catalog/services` with what the test sets, takes the registrations
//! of Weir (`registrations`), and fails on demand. It supports blocking queries, `?passing`, and the header fields of
//! an agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Instance, registrations};
use crate::polling::{Api, LongPolling, Query, Services};

/// A running one. It ends when it is dropped.
pub type FakeConsul = LongPolling<ConsulApi>;

/// Consul's `/v1/health/service/NAME`, and what registers instances.
pub enum ConsulApi {}

impl Api for ConsulApi {
    type Row = Instance;
    const NAME: &'static str = "Consul";
    const PREFIX: &'static str = "/v1/health/service/";
    const LIST: Option<&'static str> = Some("/v1/catalog/services");

    fn entry(row: &Instance, query: &Query, index: u64) -> Option<Value> {
        (!query.passing || row.is_passing()).then(|| row.entry(&query.service, index))
    }

    fn list(services: &Services<Instance>) -> Value {
        let mut all: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::from([("consul", BTreeSet::new())]);
        for (name, rows) in services.listed() {
            let tags = rows.iter().flat_map(|row| row.tags.iter().map(String::as_str));
            all.entry(name).or_default().extend(tags);
        }
        json!(all)
    }

    fn further_fields(stale: bool) -> String {
        let consistency = if stale { "stale" } else { "leader" };
        format!("X-Consul-Effective-Consistency: {consistency}\r\n")
    }

    fn put(path: &str, body: &[u8], services: &mut Services<Instance>) -> (u16, String) {
        registrations::put(path, body, services)
    }

    fn get(path: &str, services: &Services<Instance>) -> Option<(u16, String)> {
        registrations::get(path, services)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use std::time::{Duration, Instant};

    use super::*;
    use crate::consul::Health;
    use crate::http::{Connection, Response, get, get_with};
    use crate::polling::Fault;
    use crate::wait;

    const SOON: Duration = Duration::from_secs(20);
    const WEB: &str = "/v1/health/service/web";

    fn fake() -> FakeConsul {
        FakeConsul::start((Ipv4Addr::LOCALHOST, 0).into())
    }

    fn instance(id: &str) -> Instance {
        Instance::new(id, "10.0.0.1:80".parse().unwrap())
    }

    fn index(answer: &Response) -> &str {
        answer.field("x-consul-index").unwrap_or_default()
    }

    fn ids(answer: &Response) -> Vec<String> {
        let entries = answer.json();
        let entries = entries.as_array().expect("a list").iter();
        entries.map(|one| one["Service"]["ID"].as_str().expect("an ID").to_owned()).collect()
    }

    #[test]
    fn blocking_queries_end_at_a_change_of_their_service() {
        let fake = fake();
        fake.set("web", &[instance("a")]);
        let first = get(fake.address(), WEB).unwrap();
        assert_eq!((index(&first), ids(&first)), ("2", vec!["a".to_owned()]));
        let mut connection = Connection::open(fake.address()).unwrap();
        let query = format!("GET {WEB}?index=2&wait=60s HTTP/1.1\r\nHost: x\r\n\r\n");
        connection.send(query.as_bytes()).unwrap();
        wait::until("the query", SOON, || (fake.held() == 1).then_some(()));
        fake.set("other", &[]);
        assert_eq!(fake.held(), 1);
        fake.set("web", &[instance("a"), instance("b").health(Health::Critical)]);
        let second = connection.response(false).unwrap();
        assert_eq!((index(&second), ids(&second).len()), ("4", 2));
        let passing = connection.get(&format!("{WEB}?passing"), &[]).unwrap();
        assert_eq!(ids(&passing), ["a"]);
        let begun = Instant::now();
        let same = connection.get(&format!("{WEB}?index=4&wait=50ms"), &[]).unwrap();
        assert_eq!(index(&same), "4");
        assert!(begun.elapsed() >= Duration::from_millis(50));
        connection.send(query.replace("index=2", "index=4").as_bytes()).unwrap();
        wait::until("the query", SOON, || (fake.held() == 1).then_some(()));
        fake.set_index(1);
        assert_eq!(index(&connection.response(false).unwrap()), "1");
    }

    #[test]
    fn faults_are_as_asked_and_requests_are_recorded() {
        let mut fake = fake();
        fake.set("web", &[instance("a")]);
        let at = fake.address();
        for (fault, status) in [
            (Fault::no_leader(), 500),
            (Fault::acl_not_found(), 403),
            (Fault::rate_limited(), 429),
            (Fault::malformed(), 200),
        ] {
            fake.set_fault(Some(fault));
            let answer = get(at, WEB).unwrap();
            assert_eq!((answer.status, answer.json().is_null()), (status, true));
        }
        fake.set_fault(Some(Fault::Huge(1 << 20)));
        assert_eq!(get(at, WEB).unwrap().body.len(), 1 << 20);
        fake.set_fault(Some(Fault::Close));
        assert!(get(at, WEB).is_err());
        fake.set_fault(Some(Fault::Slow(Duration::from_millis(50))));
        let begun = Instant::now();
        assert_eq!(get(at, WEB).unwrap().status, 200);
        assert!(begun.elapsed() >= Duration::from_millis(50));
        fake.set_fault(Some(Fault::Hang));
        let mut hung = Connection::open(at).unwrap();
        hung.send(b"GET /v1/health/service/web HTTP/1.1\r\n\r\n").unwrap();
        wait::until("the request", SOON, || (fake.requests().len() == 8).then_some(()));
        fake.set_fault(None);
        fake.take_requests();
        get_with(at, &format!("{WEB}?stale&index=0"), &["X-Consul-Token: secret"]).unwrap();
        let recorded = fake.take_requests().remove(0);
        assert_eq!((recorded.path.as_str(), recorded.token.as_deref()), (WEB, Some("secret")));
        assert_eq!(
            (recorded.parameter("stale"), recorded.parameter("index")),
            (Some(""), Some("0"))
        );
        assert_eq!(get(at, &format!("{WEB}?index=x")).unwrap().status, 400);
        fake.set_index_field(Some(""));
        fake.set_leader(false, Duration::from_secs(2));
        let answer = get(at, WEB).unwrap();
        assert_eq!((index(&answer), answer.field("x-consul-knownleader")), ("", Some("false")));
        assert_eq!(answer.field("x-consul-lastcontact"), Some("2000"));
        fake.stop();
        assert!(hung.is_closed_within(SOON));
        assert!(Connection::open(at).is_err(), "it refuses connections");
        fake.start_again();
        assert_eq!(ids(&get(at, WEB).unwrap()), ["a"]);
    }

    #[test]
    fn two_thousand_blocking_queries_are_held_by_one_thread() {
        let fake = fake();
        let open = |n: usize| {
            let mut connection = Connection::open(fake.address()).unwrap();
            let query = format!("GET {WEB}?index=1 HTTP/1.1\r\nHost: {n}\r\n\r\n");
            connection.send(query.as_bytes()).unwrap();
            connection
        };
        let mut all: Vec<_> = (0..2_000).map(open).collect();
        wait::until("all queries", SOON, || (fake.held() == all.len()).then_some(()));
        assert_eq!(fake.open_connections(), all.len());
        fake.set("web", &[instance("a")]);
        for connection in &mut all {
            assert_eq!(index(&connection.response(false).unwrap()), "2");
        }
        fake.disconnect();
        assert!(all.iter_mut().all(|one| one.is_closed_within(SOON)));
        wait::until("no connection", SOON, || (fake.open_connections() == 0).then_some(()));
    }
}
