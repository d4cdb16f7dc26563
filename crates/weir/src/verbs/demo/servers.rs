//! The demo's servers: two services with a fixed service time and size, each in three zones.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use sample::{Payload, Sample, SampleSpec, serve};
use tokio::task::LocalSet;

use super::background::Background;
use super::configuration::{IN_FLIGHT_MAX, Service};

/// The zones, the balancer's own first.
pub(super) const ZONES: [&str; 3] = ["eu-west-1a", "eu-west-1b", "eu-west-1c"];

/// Servers of each service in each zone.
const SERVERS_PER_ZONE: usize = 2;

/// A kind of work.
struct Kind {
    name: &'static str,
    what: &'static str,
    work: Duration,
    payload: Payload,
}

const KINDS: [Kind; 2] = [
    Kind {
        name: "catalog",
        what: "300 ms and 50 kB a request",
        work: Duration::from_millis(300),
        payload: Payload::Text { size_bytes: 50_000 },
    },
    Kind {
        name: "listings",
        what: "100 ms and a short JSON a request",
        work: Duration::from_millis(100),
        payload: Payload::Json,
    },
];

/// Starts them all on ports that are free. They run until the thread is dropped.
pub(super) fn start() -> io::Result<(Vec<Service>, Background)> {
    let mut services = Vec::new();
    let mut running = Vec::new();
    for kind in &KINDS {
        let mut servers = Vec::new();
        for number in 0..ZONES.len() * SERVERS_PER_ZONE {
            let zone = ZONES[number / SERVERS_PER_ZONE];
            let (listener, address) = bind()?;
            running.push((listener, Sample::new(spec(kind, number, zone))));
            servers.push((address, zone));
        }
        services.push(Service { name: kind.name, what: kind.what, servers });
    }
    let thread = Background::start("demo-servers", || serve_all(running))?;
    Ok((services, thread))
}

fn bind() -> io::Result<(TcpListener, SocketAddr)> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = os::listen::bind(any_port, None, false).map_err(io::Error::other)?.listener;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn spec(kind: &Kind, number: usize, zone: &str) -> SampleSpec {
    SampleSpec {
        name: format!("{}-{}", kind.name, number + 1),
        zone: Some(zone.to_owned()),
        work: kind.work,
        slots: Some(IN_FLIGHT_MAX as usize),
        payload: kind.payload,
        ..SampleSpec::default()
    }
}

async fn serve_all(servers: Vec<(TcpListener, Arc<Sample>)>) {
    let tasks = LocalSet::new();
    for (listener, sample) in servers {
        tasks.spawn_local(async move {
            if let Err(error) = serve(listener, sample).await {
                tracing::error!(%error, "a sample server ended");
            }
        });
    }
    tasks.await;
}
