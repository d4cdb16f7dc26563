//! Pushes metrics to statsd and graphite.
//!
//! At every interval it computes the difference from the last one: counts, quantiles of durations, and
//! gauges. It runs on its own thread with low priority, outside the path of requests. `samples` defines
//! the metrics.

mod graphite;
mod samples;
mod statsd;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use decide::Registry;
use model::{HostPort, Metrics};
use observe::Totals;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::{gather, process};

use graphite::Graphite;
use samples::{Moment, Sample};
use statsd::Statsd;

/// Maximum duration of a push, if the interval is not shorter.
const PUSH_MAX: Duration = Duration::from_secs(5);

/// Maximum duration of the last push, after a stop was requested.
const STOP_MAX: Duration = Duration::from_secs(1);

/// Added to the thread's nice value, so that other threads run first.
const NICER: i32 = 10;

/// What is pushed, and where.
pub struct Options {
    /// Targets, interval and prefix.
    pub metrics: Metrics,
    /// Services and servers.
    pub registry: Arc<Registry>,
    /// The counters.
    pub counters: Arc<observe::Registry>,
}

/// The running thread.
#[derive(Debug)]
pub struct Handle {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Handle {
    /// Pushes the last partial interval (within a second), and returns when the thread has ended.
    pub fn stop(self) {
        self.stop.send_replace(true);
        if self.thread.join().is_err() {
            tracing::error!("the metrics push thread panicked");
        }
    }
}

/// Starts pushing; `None` without a target. Earlier counts are not pushed.
///
/// # Errors
/// The system refuses a thread or socket.
pub fn start(options: Options) -> io::Result<Option<Handle>> {
    if options.metrics.statsd.is_none() && options.metrics.graphite.is_none() {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = options.counters.totals();
    let (stop, stopped) = watch::channel(false);
    let thread = std::thread::Builder::new().name("weir-metrics".to_owned()).spawn(move || {
        // Only of this thread. If refused, it runs with normal priority.
        if let Err(error) = rustix::process::nice(NICER) {
            tracing::debug!(%error, "the thread that pushes metrics keeps its priority");
        }
        to_its_end(runtime, run(options, before, stopped));
    })?;
    Ok(Some(Handle { stop, thread }))
}

/// Runs `work` without waiting for its blocking threads: a name lookup cannot be cancelled and may take
/// half a minute.
fn to_its_end(runtime: Runtime, work: impl Future<Output = ()>) {
    runtime.block_on(work);
    runtime.shutdown_background();
}

async fn run(options: Options, mut before: Totals, mut stopped: watch::Receiver<bool>) {
    let Metrics { listener: _, server_histograms: _, statsd, graphite, interval, prefix } =
        &options.metrics;
    let mut statsd = statsd.clone().map(Statsd::new);
    let mut graphite = graphite.clone().map(Graphite::new);
    let mut ticks = interval_at(Instant::now() + *interval, *interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = false;
    while !last {
        tokio::select! {
            _ = ticks.tick() => {}
            // An error means that the handle was dropped, which also requests a stop.
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

/// Resolves a target's addresses; called for each push, so that changes are followed.
async fn resolve(target: &HostPort) -> io::Result<Vec<SocketAddr>> {
    transport::names::addresses(&target.host, target.port).await
}

/// Runs `push` within its time limit.
async fn within<T>(allowed: Duration, push: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(allowed, push).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Logs once that a receiver is unreachable, and once that it is reachable again.
#[derive(Debug, Default)]
struct Reached {
    lost: bool,
}

impl Reached {
    fn note(&mut self, receiver: &str, target: &HostPort, result: &io::Result<()>) {
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
