//! Reports requests in flight. A connection's roster entry points to the exchange in progress: a
//! few stores per request, two of them pointers. Strings are copied only for a report, on the
//! worker's own thread, and at most so many that its requests are hardly delayed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use model::Moment;
use observe::exposition::KeySetGauges;
use observe::{InFlight, InFlightFilter, InFlightReport, Stage};
use wire::http1::Known;

use crate::budget::Budget;
use crate::flight::Flight;
use crate::report_queue::{ReportQueue, ReportRequest};
use crate::roster::{Phase, Roster};
use crate::shared::Shared;

/// Maximum number of exchanges reported per worker: of those asked for, the longest-running.
/// Copying so many takes about a millisecond.
const REPORTED_MAX: usize = 2048;
/// Maximum bytes reported of a host, a path or a request ID.
pub(crate) const TEXT_MAX_BYTES: usize = 256;
/// How long a worker may take to report.
const REPORT_WAIT_MAX: Duration = Duration::from_secs(1);

/// Copies the reported fields of `flight`.
fn describe(flight: &Flight, phase: Phase) -> InFlight {
    let snapshot = &flight.plane.published.snapshot;
    let request = flight.request.as_deref();
    let believed = request.filter(|_| flight.trusted).and_then(|r| r.known(Known::XRequestId));
    InFlight {
        since: flight.since,
        stage: stage(phase),
        request_id: text(believed.unwrap_or(flight.id.as_bytes())),
        client: flight.client,
        listener: Arc::clone(&snapshot.listeners[flight.listener.0 as usize].name),
        method: request.map_or_else(String::new, |r| r.method().to_owned()),
        host: request.map_or_else(String::new, |r| text(r.authority().as_bytes())),
        path: request.map_or_else(String::new, |r| text(r.path().as_bytes())),
        service: flight.service().cloned(),
        server: flight.server,
        attempts: flight.attempts,
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_MAX_BYTES)]).into_owned()
}

fn stage(phase: Phase) -> Stage {
    match phase {
        Phase::Queued => Stage::Queue,
        Phase::Connecting => Stage::Connect,
        Phase::AwaitingHead => Stage::Response,
        Phase::Tunnel => Stage::Tunnel,
        // All other exchanges have been answered, by a server or by Weir itself.
        Phase::Idle | Phase::Busy => Stage::Body,
    }
}

/// Reports a worker's exchanges that match `wanted`; all of them are counted.
fn report(roster: &Roster, wanted: &InFlightFilter, now: Moment) -> InFlightReport {
    let mut seats = roster.flying();
    let in_flight = seats.len();
    // Filtered before the longest-running are selected: those asked for may not be among the
    // longest of all.
    seats.retain(|(since, seat)| {
        let is_wanted =
            |flight: &Flight, _| wanted.takes(flight.service().map(|name| &**name), *since, now);
        seat.flight(is_wanted).unwrap_or(false)
    });
    let matching = seats.len();
    if matching > REPORTED_MAX {
        seats.select_nth_unstable_by_key(REPORTED_MAX, |(since, _)| *since);
        seats.truncate(REPORTED_MAX);
    }
    let requests = seats.iter().filter_map(|(_, seat)| seat.flight(describe)).collect();
    InFlightReport { in_flight, matching, requests, workers_silent: 0 }
}

/// Answers all pending requests for a report of `roster`.
pub(crate) fn answer(reports: &ReportQueue, roster: &Roster) {
    for ReportRequest { wanted, reply } in reports.take() {
        // The receiver may have stopped waiting.
        let _ = reply.send(report(roster, &wanted, os::clock::now()));
    }
}

/// Read access to the state of all workers.
pub struct InFlightReader(pub(crate) Arc<Shared>);

impl InFlightReader {
    /// Returns the requests and TCP connections in flight that match `wanted`: up to 2048 of each
    /// worker, the longest-running. Waits up to a second for the workers; those that do not answer
    /// in time are counted.
    pub fn in_flight(&self, wanted: InFlightFilter) -> InFlightReport {
        let deadline = os::clock::now() + REPORT_WAIT_MAX;
        let wanted = Arc::new(wanted);
        let asked: Vec<_> = self.0.peers.iter().map(|peer| peer.reports.ask(&wanted)).collect();
        self.0.signal();
        gather(&asked, deadline)
    }

    /// Returns the budget for request bodies that wait for a server.
    pub fn request_buffers(&self) -> &Budget {
        &self.0.request_buffers
    }

    /// Returns the budget for compressing responses.
    pub fn compression(&self) -> &Budget {
        &self.0.compression
    }

    /// Returns the budget for the bodies of copies of requests.
    pub fn mirrors(&self) -> &Budget {
        &self.0.mirrors
    }

    /// Returns how the key sets of the configuration's authentications are fetched.
    pub fn key_sets(&self) -> Vec<KeySetGauges> {
        self.0.authentications.key_sets(&self.0.registry.current().snapshot)
    }

    /// Returns the number of client connections of each worker.
    pub fn connections_by_worker(&self) -> Vec<u64> {
        self.0.peers.iter().map(|peer| peer.connections.load(Relaxed) as u64).collect()
    }
}

/// Collects the reports that arrive until the deadline.
fn gather(asked: &[Receiver<InFlightReport>], deadline: Moment) -> InFlightReport {
    let mut all = InFlightReport::default();
    for worker in asked {
        let reply = worker.recv_timeout(deadline - os::clock::now());
        all.add(reply.unwrap_or(InFlightReport { workers_silent: 1, ..InFlightReport::default() }));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::net::SocketAddr;
    use std::pin::pin;
    use std::rc::Rc;
    use std::sync::mpsc::channel;
    use std::task::{Context, Poll, Waker};

    use decide::Registry;
    use model::{
        ClientAddress, ClientTimeouts, ForwardFields, Listener, ListenerId, Networks, Protocol,
        ServiceId, Snapshot,
    };
    use wire::http1::{HeadLimits, RequestHead, parse_request};

    use super::*;
    use crate::head::RequestId;
    use crate::identity::Identity;
    use crate::plane::Plane;
    use crate::roster::Entry;

    fn plane() -> Rc<Plane> {
        let second = Duration::from_secs(1);
        let listener = Listener {
            register: None,
            name: "public".into(),
            address: client().into(),
            socket: model::SocketAccess::default(),
            protocol: Protocol::Http,
            backlog: None,
            connections_max: 1,
            trusted: Networks::default(),
            client_address: ClientAddress::default(),
            forward_fields: ForwardFields {
                x_forwarded: false,
                forwarded: false,
                request_id: false,
                traceparent: false,
                real_ip: false,
                via: false,
            },
            timeouts: ClientTimeouts { head: second, idle: second, body: second },
            head_max_bytes: 0,
            body_max_bytes: None,
            proxy_status: false,
            error_pages: Vec::new(),
            tls: None,
            http2: None,
            hosts: None,
            upgrade_protocols: Vec::new(),
            proxy_protocol: Networks::default(),
        };
        let registry = Arc::new(Registry::new());
        let services = crate::explain::tests::live().0.load_full().snapshot.services.clone();
        let snapshot = Snapshot { listeners: vec![listener], services, ..Snapshot::empty() };
        let published = registry.publish(Arc::new(snapshot), Moment::ZERO);
        let (challenges, tickets) = (Arc::default(), Arc::default());
        let shared = Shared::new(registry, Vec::new(), None, Identity::new(1), challenges, tickets);
        Rc::new(Plane::new(published, &observe::Shard::default(), &shared))
    }

    fn client() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 40_000))
    }

    fn enter(roster: &Rc<Roster>) -> Entry {
        match pin!(roster.enter()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entry) => entry,
            Poll::Pending => unreachable!("nothing to wait for"),
        }
    }

    fn flight(plane: &Rc<Plane>, since: u64, path: &str, trusted: bool) -> Flight {
        let head = format!("GET /{path} HTTP/1.1\r\nHost: a\r\nX-Request-Id: theirs\r\n\r\n");
        let limits = HeadLimits { head_max_bytes: 9_999, target_max_bytes: 9_999, fields_max: 9 };
        let mut request = RequestHead::default();
        parse_request(head.as_bytes(), &limits, &mut request).unwrap();
        Flight {
            since: Moment::from_millis(since),
            id: RequestId::new(7),
            client: client(),
            trusted,
            plane: Rc::clone(plane),
            listener: ListenerId(0),
            request: Some(Rc::new(request)),
            service: None,
            server: None,
            attempts: 0,
        }
    }

    /// With no filter, long after.
    fn all(roster: &Roster) -> InFlightReport {
        report(roster, &InFlightFilter::default(), Moment::from_millis(1_000_000))
    }

    #[test]
    fn what_is_wanted_is_chosen_before_the_longest_are() {
        let (plane, roster) = (plane(), Rc::new(Roster::default()));
        let total = REPORTED_MAX as u64 + 10;
        let entries: Vec<Entry> = (0..total).map(|_| enter(&roster)).collect();
        for (entry, since) in entries.iter().zip(0..total) {
            // Only the youngest have found their service.
            let service = (since >= total - 3).then_some(ServiceId(0));
            entry.begin(Flight { service, ..flight(&plane, since, "", false) });
        }
        let now = Moment::from_millis(total);
        let app = InFlightFilter { service: Some("app".into()), longer_than: Duration::ZERO };
        let reply = report(&roster, &app, now);
        assert_eq!((reply.in_flight, reply.matching, reply.requests.len()), (total as usize, 3, 3));
        let other = InFlightFilter { service: Some("other".into()), ..app.clone() };
        assert_eq!(report(&roster, &other, now).matching, 0);
        let longer_than = Duration::from_millis(2);
        let reply = report(&roster, &InFlightFilter { longer_than, ..app }, now);
        assert_eq!(reply.matching, 2, "the last one has been in flight for 1 ms");
    }

    #[test]
    fn a_worker_that_does_not_answer_is_counted() {
        let silent = ReportQueue::default();
        let (reply, one) =
            (channel(), InFlightReport { in_flight: 2, ..InFlightReport::default() });
        reply.0.send(one).unwrap();
        let asked = [silent.ask(&Arc::default()), reply.1];
        let all = gather(&asked, os::clock::now());
        assert_eq!((all.in_flight, all.workers_silent), (2, 1));
    }

    #[test]
    fn reports_the_longest_running_and_truncates_long_texts() {
        let (plane, roster) = (plane(), Rc::new(Roster::default()));
        let path = "x".repeat(3_000);
        let total = REPORTED_MAX as u64 + 500;
        let entries: Vec<Entry> = (0..total).map(|_| enter(&roster)).collect();
        for (entry, since) in entries.iter().zip((0..total).rev()) {
            entry.begin(flight(&plane, since, &path, false));
        }
        let reply = all(&roster);
        assert_eq!((reply.in_flight, reply.matching), (total as usize, total as usize));
        let reply = reply.requests;
        assert_eq!(reply.len(), REPORTED_MAX);
        assert!(reply.iter().all(|one| one.since < Moment::from_millis(REPORTED_MAX as u64)));
        assert!(reply.iter().all(|one| one.path.len() == TEXT_MAX_BYTES));
    }

    #[test]
    fn reports_only_exchanges_in_flight_with_their_stage() {
        let (plane, roster) = (plane(), Rc::new(Roster::default()));
        let (entry, idle) = (enter(&roster), enter(&roster));
        assert!(all(&roster).requests.is_empty());
        entry.begin(flight(&plane, 5, "a", false));
        for (phase, stage) in [
            (Phase::Queued, Stage::Queue),
            (Phase::Connecting, Stage::Connect),
            (Phase::AwaitingHead, Stage::Response),
            (Phase::Busy, Stage::Body),
        ] {
            entry.set(phase);
            assert_eq!(all(&roster).requests[0].stage, stage);
        }
        entry.attempt(client().into());
        let reply = all(&roster).requests;
        assert_eq!(
            (reply[0].server, reply[0].attempts, reply.len()),
            (Some(client().into()), 1, 1)
        );
        assert_eq!(reply[0].request_id.len(), 32, "an untrusted client's ID is not used");
        entry.end();
        assert!(all(&roster).requests.is_empty());
        idle.begin(flight(&plane, 5, "b", true));
        assert_eq!(all(&roster).requests[0].request_id, "theirs");
        drop(idle);
        assert!(all(&roster).requests.is_empty());
    }
}
