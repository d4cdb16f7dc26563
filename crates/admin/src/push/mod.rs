//! Metrics pushed to statsd and graphite, for whoever does not fetch them.
//!
//! Every interval the difference to the last one is taken: counts, quantiles of what took its time
//! in it, and a few numbers that simply are so. It runs on a thread of its own with low priority;
//! nothing on a request's path knows of it. Which numbers there are is `samples`' affair.

mod graphite;
mod samples;
mod statsd;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use decide::Registry;
use model::{Metrics, ServerTarget};
use observe::Totals;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::{gather, process};

use graphite::Graphite;
use samples::{Moment, Sample};
use statsd::Statsd;

/// How long one push may take, if the interval is not shorter.
const PUSH_MAX: Duration = Duration::from_secs(5);

/// How long the last push may take once this is told to stop.
const STOP_MAX: Duration = Duration::from_secs(1);

/// Added to the thread's nice value: whoever else wants the processor comes first.
const NICER: i32 = 10;

/// What is pushed, and where to.
pub struct Options {
    /// Where to, how often, under which prefix.
    pub metrics: Metrics,
    /// Services and servers as they live.
    pub registry: Arc<Registry>,
    /// What is counted.
    pub counters: Arc<observe::Registry>,
}

/// The running thread.
#[derive(Debug)]
pub struct Handle {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Pushes what has been counted since the last time (within a second), and returns when the
    /// thread has ended.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the metrics push thread panicked");
        }
    }
}

/// Starts pushing; `None` if there is nowhere to push to. What was counted before is not pushed.
///
/// # Errors
/// The system grants no thread or socket.
pub fn start(options: Options) -> io::Result<Option<Handle>> {
    if options.metrics.statsd.is_none() && options.metrics.graphite.is_none() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = options.counters.totals();
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::Builder::new().name("weir-metrics".to_owned()).spawn(move || {
        // Of this thread alone. Refused: then it runs as everybody else does.
        if let Err(error) = rustix::process::nice(NICER) {
            tracing::debug!(%error, "the thread that pushes metrics keeps its priority");
        }
        to_its_end(runtime, run(options, before, stopped));
    })?;
    Ok(Some(Handle { stop, thread }))
}

/// Runs `work`, and waits for nothing beside it: a name that is still being looked up, on a thread
/// of its own that cannot be told to stop, may take the system half a minute.
fn to_its_end(runtime: Runtime, work: impl Future<Output = ()>) {
    runtime.block_on(work);
    runtime.shutdown_background();
}

async fn run(options: Options, mut before: Totals, mut stopped: watch::Receiver<bool>) {
    let Metrics { statsd, graphite, interval, prefix } = &options.metrics;
    let mut statsd = statsd.clone().map(Statsd::new);
    let mut graphite = graphite.clone().map(Graphite::new);
    let mut ticks = interval_at(Instant::now() + *interval, *interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = false;
    while !last {
        tokio::select! {
            _ = ticks.tick() => {}
            // An error means that the handle is gone, which is the same wish.
            _ = stopped.wait_for(|stop| *stop) => last = true,
        }
        let totals = options.counters.totals();
        let moment = Moment {
            totals: &totals,
            before: &before,
            services: &gather::views(&options.registry.load_full(), os::clock::now()),
            process: process::gauges(),
        };
        let allowed = if last { STOP_MAX } else { PUSH_MAX.min(*interval) };
        let to_statsd = async {
            if let Some(statsd) = &mut statsd {
                let datagrams = statsd::encode(&moment, prefix);
                statsd.push(&datagrams, allowed).await;
            }
        };
        let to_graphite = async {
            if let Some(graphite) = &mut graphite {
                let batch = graphite::encode(&moment, prefix, os::clock::wall());
                graphite.push(batch, allowed).await;
            }
        };
        tokio::join!(to_statsd, to_graphite);
        before = totals;
    }
}

/// The addresses of a target, looked up anew each time, so that a change of them is followed.
async fn resolve(target: &ServerTarget) -> io::Result<Vec<SocketAddr>> {
    match target {
        ServerTarget::Address(address) => Ok(vec![*address]),
        ServerTarget::Name { host, port } => {
            Ok(tokio::net::lookup_host((host.as_str(), *port)).await?.collect())
        }
    }
}

/// Runs `push` for as long as it is allowed.
async fn within<T>(allowed: Duration, push: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(allowed, push).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Says once that a receiver cannot be reached, and once that it can again.
#[derive(Debug, Default)]
struct Reached {
    lost: bool,
}

impl Reached {
    fn note(&mut self, receiver: &str, target: &ServerTarget, result: &io::Result<()>) {
        match result {
            Err(error) if !self.lost => {
                tracing::warn!(%target, %error, "cannot push metrics to {receiver}; Weir keeps trying");
            }
            Ok(()) if self.lost => {
                tracing::info!(%target, "metrics are pushed to {receiver} again");
            }
            _ => {}
        }
        self.lost = result.is_err();
    }
}

#[cfg(test)]
mod tests;
