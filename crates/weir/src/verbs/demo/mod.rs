//! `weir demo`: a working balancer within a minute. The demo provides servers, traffic and the
//! configuration; the balancer is the one that `weir serve` starts.

mod background;
mod configuration;
mod directory;
mod servers;
mod ticker;

use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use balancer::log;
use balancer::signals::Signals;
use balancer::{Balancer, StartOptions};
use sample::trickle::{self, Trickle};

use crate::flags::{Common, DemoArgs, Exit};

use background::Background;
use configuration::Service;
use directory::Directory;
use ticker::Look;

/// Where clients are accepted, and the admin API; the next free port where one is taken.
const PUBLIC_PORT: u16 = 8080;
const ADMIN_PORT: u16 = 9900;

/// Ports passed over before the demo gives up.
const PORTS_TRIED_MAX: u16 = 100;

/// The demo's own requests per second, to each service.
const TRICKLE_PER_S: f64 = 10.0;

/// Time between status lines on a terminal, and through a pipe.
const TICK_TERMINAL: Duration = Duration::from_secs(1);
const TICK_PIPE: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &DemoArgs, common: Common) -> Exit {
    log::start(common.log_options());
    match demo(args) {
        Ok(()) => Exit::Done,
        // The reader has closed the pipe: `weir demo | head`.
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Error::Output(error)) => failed(&[format!("cannot print: {error}")]),
        Err(Error::Start(errors)) => failed(&errors),
    }
}

fn failed(errors: &[String]) -> Exit {
    for error in errors {
        eprintln!("weir: {error}");
    }
    Exit::Failed
}

/// What ends a demo early.
enum Error {
    /// Standard output takes nothing more.
    Output(io::Error),
    /// It could not be started.
    Start(Vec<String>),
}

/// Says what could not be done.
fn cannot<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Error {
    move |error| Error::Start(vec![format!("cannot {what}: {error}")])
}

fn demo(args: &DemoArgs) -> Result<(), Error> {
    let mut signals = Signals::catch().map_err(cannot("catch signals"))?;

    let (services, _servers) = servers::start().map_err(cannot("start the sample servers"))?;
    let Opened { public, admin, text, options } = open(&services)?;
    let directory = Directory::create().map_err(cannot("make a temporary directory"))?;
    let file = directory.write("weir.toml", &text).map_err(cannot("write the configuration"))?;
    let balancer = Balancer::start(options).map_err(Error::Start)?;
    let traffic = Background::start("demo-traffic", move || send(public))
        .map_err(cannot("start the traffic"))?;

    let shown = say_where_to_look(&services, public, admin, &file)
        .and_then(|()| tick(args.time, &balancer, &mut signals));
    drop(traffic);
    balancer.stop("the demo ends", &mut signals.into());
    shown.map_err(Error::Output)
}

/// A configuration whose addresses are ours.
struct Opened {
    public: SocketAddr,
    admin: SocketAddr,
    text: String,
    options: StartOptions,
}

/// Writes the configuration for the usual ports and opens what it names; where a port is taken, the
/// same for the next one.
fn open(services: &[Service]) -> Result<Opened, Error> {
    let mut public = SocketAddr::from((Ipv4Addr::LOCALHOST, PUBLIC_PORT));
    let mut admin = SocketAddr::from((Ipv4Addr::LOCALHOST, ADMIN_PORT));
    loop {
        let text = configuration::text(servers::ZONES[0], public, admin, services);
        let snapshot = control::load::check(&text, "the demo's configuration", &(), false)
            .map_err(|error| Error::Start(vec![error.to_string()]))?
            .snapshot;
        let error = match StartOptions::open(snapshot) {
            Ok(options) => return Ok(Opened { public, admin, text, options }),
            Err(error) => error,
        };
        let tried = public.port() - PUBLIC_PORT + (admin.port() - ADMIN_PORT);
        if error.in_use.is_empty() || tried >= PORTS_TRIED_MAX {
            return Err(Error::Start(error.lines));
        }
        for address in [&mut public, &mut admin] {
            if error.in_use.contains(address) {
                address.set_port(address.port() + 1);
            }
        }
    }
}

/// The demo's own traffic, until the future is dropped.
async fn send(to: SocketAddr) {
    let trickle = |path: &str| {
        let paths = vec![path.to_owned()];
        let trickle = Trickle { paths, per_second: TRICKLE_PER_S, ..Trickle::new(to) };
        // What came of it is read off the balancer, which sees the traffic of others too.
        trickle::run(trickle, |_| {})
    };
    tokio::join!(trickle("/catalog"), trickle("/listings"));
}

fn say_where_to_look(
    services: &[Service],
    public: SocketAddr,
    admin: SocketAddr,
    file: &Path,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let zones = servers::ZONES.join(", ");
    writeln!(out, "A balancer in zone {} and its servers in {zones}:\n", servers::ZONES[0])?;
    for Service { name, what, servers } in services {
        writeln!(out, "  /{name:<9} {} servers, {what}", servers.len())?;
    }
    writeln!(out, "\nSend a request    curl -i http://{public}/listings")?;
    writeln!(out, "See every server  curl http://{admin}/api/v1/services")?;
    writeln!(out, "See the metrics   curl http://{admin}/metrics")?;
    writeln!(out, "See what else     http://{admin}/")?;
    if let Some((name, server)) = services
        .iter()
        .find_map(|service| service.servers.first().map(|&(address, _)| (service.name, address)))
    {
        writeln!(
            out,
            "Drain a server    curl http://{admin}/api/v1/services/{name}/servers/{server}/state \\\n\
             \x20                   --json '{{\"state\": \"drain\"}}'"
        )?;
    }
    writeln!(out, "Configuration     {} (removed at the end)", file.display())?;
    writeln!(out, "\nCtrl-C ends it.\n")
}

/// Prints what happens, until a signal comes or the time is over.
fn tick(time: Option<Duration>, balancer: &Balancer, signals: &mut Signals) -> io::Result<()> {
    let every = if io::stdout().is_terminal() { TICK_TERMINAL } else { TICK_PIPE };
    let end = time.map(|time| os::clock::now() + time);
    let mut before = Look::now(&balancer.counters, &balancer.registry);
    loop {
        let left = end.map_or(every, |end| end.since(os::clock::now()));
        if signals.wait_at_most(every.min(left)).is_some() {
            return Ok(());
        }
        let after = Look::now(&balancer.counters, &balancer.registry);
        writeln!(io::stdout(), "{}", ticker::line(&before, &after))?;
        before = after;
        if end.is_some_and(|end| end <= os::clock::now()) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_taken_are_passed_over() {
        let service = |name| {
            let servers = vec![(SocketAddr::from((Ipv4Addr::LOCALHOST, 5999)), "eu-west-1a")];
            Service { name, what: "nothing", servers }
        };
        let services = [service("catalog"), service("listings")];
        let Ok(first) = open(&services) else { panic!("no ports") };
        let Ok(second) = open(&services) else { panic!("no further ports") };
        assert!(second.public.port() > first.public.port());
        assert!(second.admin.port() > first.admin.port());
        assert!(second.text.contains(&format!("\"{}\"", second.public)));
    }
}
