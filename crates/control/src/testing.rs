//! Shared by several tests of this crate: short configurations, and a DNS server.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use model::{
    Balance, Check, LimitScope, Log, QueueLimits, Registries, Reload, Retries, ServerSpec,
    ServerTarget, Service, ServiceTimeouts, Snapshot, WhenAllDown, ZonePolicy,
};
use tokio::net::UdpSocket;

/// Far longer than any of these tests takes; reaching it is a failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Runs a test's future in a context where local tasks can be spawned.
pub(crate) fn block_on(body: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tokio::task::LocalSet::new().block_on(&runtime.expect("a runtime"), body);
}

/// Returns a configuration of these services and nothing else.
pub(crate) fn snapshot(resolver: Option<SocketAddr>, services: Vec<Service>) -> Snapshot {
    Snapshot {
        otlp: None,
        acme: None,
        zone: None,
        fleet: None,
        workers: None,
        connections_max: 1000,
        request_buffers_max_bytes: 0,
        compression_memory_max_bytes: 0,
        mirror_memory_max_bytes: 0,
        history_memory_max_bytes: 0,
        drain_delay: Duration::ZERO,
        drain_max: Duration::from_secs(1),
        state_directory: None,
        affinity_key_file: None,
        run_as: None,
        admin: None,
        metrics: model::Metrics::none(),
        resolver: resolver.into_iter().collect(),
        registries: Registries::default(),
        keda: None,
        external_metrics: None,
        kubernetes: None,
        log: Log::none(),
        reload: Reload { watch: false },
        doctor: model::Doctor { interval: None },
        listeners: vec![],
        routes: vec![],
        authentications: vec![],
        services: services.into_iter().map(Arc::new).collect(),
    }
}

/// Returns a service with these servers: `10.0.0.1:80`, or `name:80`.
pub(crate) fn service(name: &str, servers: &[&str], check: Option<Check>) -> Service {
    let second = Duration::from_secs(1);
    Service {
        name: name.into(),
        balance: Balance::RoundRobin,
        in_flight_max: None,
        in_flight_scope: LimitScope::Balancer,
        queue: QueueLimits { length_max: 0, wait_max: second },
        when_full: 429,
        when_all_down: WhenAllDown::Refuse,
        check,
        passive: None,
        zones: ZonePolicy { ready_min: 0.5, ready_recovered: 0.7 },
        affinity: None,
        slow_start: None,
        timeouts: ServiceTimeouts {
            connect: second,
            response: second,
            idle: second,
            tunnel: second,
            keep_alive: second,
            total: None,
        },
        retries: Retries { attempts_max: 1, ..Retries::default() },
        scaling: None,
        idle_connections_max: 1,
        tls: None,
        http: model::HttpVersion::Http11,
        send_proxy: None,
        version_field: None,
        discover: None,
        maintenance: None,
        error_pages: Vec::new(),
        servers: servers.iter().map(|server| spec(server)).collect(),
    }
}

fn spec(server: &str) -> ServerSpec {
    let target = server.parse().map_or_else(
        |_| {
            let (host, port) = server.rsplit_once(':').expect("host:port");
            ServerTarget::Name { host: host.into(), port: port.parse().expect("a port") }
        },
        ServerTarget::Address,
    );
    ServerSpec { target, zone: None, weight: 1, backup: false, in_flight_max: None, version: None }
}

/// Returns a TCP check with short times: rise 2, fall 3.
pub(crate) fn tcp_check(interval_ms: u64) -> Check {
    Check {
        kind: model::CheckKind::Tcp,
        port: None,
        clear_text: false,
        http: None,
        interval: Duration::from_millis(interval_ms),
        timeout: Duration::from_secs(1),
        rise: 2,
        fall: 3,
    }
}

/// What the DNS server answers.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Addresses(Vec<IpAddr>, u32),
    Services(Vec<SRV>, u32),
    Empty,
    NoSuchName,
    ServerFailure,
}

/// Addresses with a TTL in seconds.
pub(crate) fn addresses(addresses: &[&str], ttl_s: u32) -> Reply {
    Reply::Addresses(addresses.iter().map(|a| a.parse().expect("an address")).collect(), ttl_s)
}

/// SRV records with a TTL in seconds: priority, weight, port, target.
pub(crate) fn services(records: &[(u16, u16, u16, &str)], ttl_s: u32) -> Reply {
    let record = |&(priority, weight, port, target): &(u16, u16, u16, &str)| {
        SRV::new(priority, weight, port, Name::from_ascii(target).expect("a name"))
    };
    Reply::Services(records.iter().map(record).collect(), ttl_s)
}

/// A DNS server on UDP. Names that were not set do not exist.
#[derive(Clone)]
pub(crate) struct DnsServer {
    pub(crate) address: SocketAddr,
    replies: Rc<RefCell<HashMap<(String, RecordType), Reply>>>,
    /// Queries answered.
    pub(crate) queries: Rc<Cell<usize>>,
}

impl DnsServer {
    pub(crate) async fn start() -> DnsServer {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port of loopback");
        let server = DnsServer {
            address: socket.local_addr().expect("bound"),
            replies: Rc::default(),
            queries: Rc::default(),
        };
        tokio::task::spawn_local(server.clone().serve(socket));
        server
    }

    /// Sets what it answers for A and for AAAA.
    pub(crate) fn set(&self, host: &str, v4: Reply, v6: Reply) {
        let mut replies = self.replies.borrow_mut();
        replies.insert((host.into(), RecordType::A), v4);
        replies.insert((host.into(), RecordType::AAAA), v6);
    }

    /// Sets what it answers for SRV.
    pub(crate) fn set_services(&self, name: &str, reply: Reply) {
        self.replies.borrow_mut().insert((name.into(), RecordType::SRV), reply);
    }

    async fn serve(self, socket: UdpSocket) {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            let query = Message::from_vec(&buffer[..length]).expect("a DNS message");
            let answer = self.answer(&query).to_vec().expect("encodes");
            self.queries.set(self.queries.get() + 1);
            socket.send_to(&answer, peer).await.expect("sends");
        }
    }

    fn answer(&self, query: &Message) -> Message {
        let question = query.queries.first().expect("a question");
        let host = question.name().to_utf8().trim_end_matches('.').to_lowercase();
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        answer.metadata.recursion_available = true;
        answer.add_query(question.clone());
        let reply = self.replies.borrow().get(&(host, question.query_type())).cloned();
        match reply.unwrap_or(Reply::NoSuchName) {
            Reply::Addresses(addresses, ttl_s) => {
                answer.add_answers(addresses.into_iter().map(|address| {
                    Record::from_rdata(question.name().clone(), ttl_s, RData::from(address))
                }));
            }
            Reply::Services(services, ttl_s) => {
                answer.add_answers(services.into_iter().map(|service| {
                    Record::from_rdata(question.name().clone(), ttl_s, RData::SRV(service))
                }));
            }
            Reply::Empty => {}
            Reply::NoSuchName => answer.metadata.response_code = ResponseCode::NXDomain,
            Reply::ServerFailure => answer.metadata.response_code = ResponseCode::ServFail,
        }
        answer
    }
}

/// Returns a snapshot of these services, in an `Arc`.
pub(crate) fn shared(services: Vec<Service>, resolver: Option<SocketAddr>) -> Arc<Snapshot> {
    Arc::new(snapshot(resolver, services))
}
