//! Tests of admission as a whole, through the public API and with many threads.

mod admission;
mod elsewhere;
mod explain;
#[cfg(loom)]
mod orders;
mod placement;
mod preview;
mod reload;
mod sharing;
mod stress;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use model::{
    Address, Affinity, AffinityKey, AffinityKeyFile, Balance, LimitScope, Moment, QueueLimits,
    Retries, ServerSpec, ServerTarget, Service, ServiceTimeouts, Snapshot, WhenAllDown, ZonePolicy,
};

use crate::{Admission, Ask, LiveService, Published, Refusal, Registry, Slot, Waiter};

const NOW: Moment = Moment::from_millis(1_000);

fn address(port: u16) -> Address {
    SocketAddr::from(([10, 0, 0, 1], port)).into()
}

fn server(port: u16) -> ServerSpec {
    let target = ServerTarget::Address(address(port));
    ServerSpec { target, zone: None, weight: 1, backup: false, in_flight_max: None, version: None }
}

/// Returns a service with servers at these ports, each limited to `max`, and a queue of
/// `queue_max`.
fn service(name: &str, ports: &[u16], max: u32, queue_max: u32) -> Service {
    let second = Duration::from_secs(1);
    Service {
        name: name.into(),
        balance: Balance::RoundRobin,
        in_flight_max: (max > 0).then_some(max),
        in_flight_scope: LimitScope::Balancer,
        queue: QueueLimits { length_max: queue_max, wait_max: 5 * second },
        when_full: 429,
        when_all_down: WhenAllDown::Refuse,
        check: None,
        passive: None,
        zones: ZonePolicy { ready_min: 0.5, ready_recovered: 0.7 },
        affinity: None,
        slow_start: None,
        timeouts: ServiceTimeouts {
            connect: second,
            response: 30 * second,
            idle: 60 * second,
            tunnel: 60 * second,
            keep_alive: 60 * second,
            total: None,
        },
        retries: Retries { attempts_max: 1, ..Retries::default() },
        scaling: None,
        idle_connections_max: 8,
        tls: None,
        http: model::HttpVersion::Http11,
        send_proxy: None,
        version_field: None,
        discover: None,
        maintenance: None,
        error_pages: Vec::new(),
        servers: ports.iter().copied().map(server).collect(),
    }
}

/// As [`service`], with limits that hold for all balancers of the fleet together.
fn fleet(name: &str, ports: &[u16], max: u32, queue_max: u32) -> Service {
    let in_flight_scope = LimitScope::Fleet;
    Service { in_flight_scope, ..service(name, ports, max, queue_max) }
}

fn publish(registry: &Registry, services: Vec<Service>) -> Arc<Published> {
    let services = services.into_iter().map(Arc::new).collect();
    registry.publish(Arc::new(Snapshot { services, ..Snapshot::empty() }), NOW)
}

fn one(spec: Service) -> (Registry, Arc<LiveService>) {
    let registry = Registry::with_seed(0);
    let live = Arc::clone(&publish(&registry, vec![spec]).services[0]);
    (registry, live)
}

fn admit_asking(live: &Arc<LiveService>, ask: &Ask<'_>) -> Admission {
    live.admit(ask, &mut fastrand::Rng::with_seed(7), NOW)
}

fn admit(live: &Arc<LiveService>) -> Admission {
    admit_asking(live, &Ask::default())
}

#[track_caller]
fn go(admission: Admission) -> Slot {
    match admission {
        Admission::Go(slot) => slot,
        other => panic!("not admitted: {other:?}"),
    }
}

#[track_caller]
fn wait(admission: Admission) -> Waiter {
    match admission {
        Admission::Wait(waiter) => waiter,
        other => panic!("does not wait: {other:?}"),
    }
}

#[track_caller]
fn refused(admission: Admission) -> Refusal {
    match admission {
        Admission::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Returns the slot if the waiter has one now.
fn look(waiter: &mut Waiter) -> Option<Slot> {
    match waiter.poll_slot(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(slot) => Some(slot),
        Poll::Pending => None,
    }
}

fn port(slot: &Slot) -> u16 {
    slot.row.address.port().unwrap()
}

/// Blocks this thread until the slot is granted; `None` if that takes longer than a minute, which
/// means forever: the slots in these tests are held for microseconds.
fn block_on(waiter: &mut Waiter) -> Option<Slot> {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(poll_fn(|cx| waiter.poll_slot(cx)));
    for _ in 0..60 {
        if let Poll::Ready(slot) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(slot);
        }
        std::thread::park_timeout(Duration::from_secs(1));
    }
    None
}
