//! Sends traces, metrics and logs to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! Producers put lines and events into bounded queues and never wait. A thread of its own, with low priority,
//! turns them into messages and sends these, one at a time. What does not fit, and what the collector refuses,
//! is dropped and counted. A message that cannot be delivered is sent again for five minutes.

mod collector;
mod counts;
mod queue;
mod sender;

use std::io::{self, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use model::{Moment, Otlp};
use observe::exposition::protobuf::MetricFamily;
use otlp::{LogEvent, Resource, Signal};
use tokio::sync::watch;

use collector::{Collector, Settings};
pub use counts::{Counts, Dropped, SignalCounts};
use queue::{Lines, Queues};
use sender::{Sender, State, unix_us};

/// Added to the thread's nice value, so that other threads run first.
const NICER: i32 = 10;

/// Returns all metrics.
pub type Metrics = Arc<dyn Fn() -> Vec<MetricFamily> + Send + Sync>;

/// Checks that [`Telemetry::apply`] can use the settings.
///
/// # Errors
/// The collector's authorities cannot be used.
pub fn check(otlp: &Otlp) -> io::Result<()> {
    Settings::of(otlp).map(drop)
}

/// What is sent, and to whom, for as long as a process runs.
pub struct Telemetry {
    queues: Arc<Queues>,
    counts: Arc<Counts>,
    resource: Resource,
    /// When this process began to count, in microseconds since 1970. It never changes, since a collector takes another
    /// start for a restart.
    started_unix_us: u64,
    running: Option<Running>,
}

/// The running thread.
struct Running {
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Telemetry {
    /// Returns an instance that accepts lines but does not send yet. The configuration replaces the name of the
    /// service.
    pub fn new(resource: Resource) -> Telemetry {
        // The monotonic clock began with the process.
        let running_for = os::clock::now() - Moment::ZERO;
        Telemetry {
            queues: Arc::default(),
            counts: Arc::default(),
            resource,
            started_unix_us: unix_us(os::clock::wall().saturating_sub(running_for)),
            running: None,
        }
    }

    /// Returns the sink for the lines of exchanges that become traces, in batches.
    pub fn spans(&self) -> Arc<dyn Fn(Vec<u8>) + Send + Sync> {
        let (queues, counts) = (Arc::clone(&self.queues), Arc::clone(&self.counts));
        Arc::new(move |lines| put_lines(&queues, &counts, Lines::Spans, lines))
    }

    /// Returns the sink for the lines of the access log. Writing never blocks and never fails.
    pub fn access_log(&self) -> Box<dyn Write + Send> {
        Box::new(AccessLog { queues: Arc::clone(&self.queues), counts: Arc::clone(&self.counts) })
    }

    /// Returns the sink for the events of the program's log.
    pub fn events(&self) -> Events {
        Events { queues: Arc::clone(&self.queues), counts: Arc::clone(&self.counts) }
    }

    /// Returns what has been sent and dropped so far.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Sends to the collector of a configuration from now on, or to none. Before that, the collector in use gets what
    /// waits, for up to a second.
    ///
    /// # Errors
    /// The collector's authorities cannot be used, or the system grants no thread. Nothing is sent then.
    pub fn apply(&mut self, otlp: Option<&Otlp>, metrics: &Metrics) -> io::Result<()> {
        self.stop_thread();
        let started = otlp.map(|otlp| self.start(otlp, metrics)).transpose();
        let is_running = self.running.is_some();
        self.queues.accept_events(is_running && otlp.is_some_and(|otlp| otlp.logs));
        if !is_running {
            self.discard(Lines::Access);
        }
        if !is_running || otlp.is_some_and(|otlp| otlp.traces.is_none()) {
            self.discard(Lines::Spans);
        }
        started.map(drop)
    }

    fn start(&mut self, otlp: &Otlp, metrics: &Metrics) -> io::Result<()> {
        let settings = Settings::of(otlp)?;
        let resource =
            Resource { service_name: otlp.service_name.clone(), ..self.resource.clone() };
        let metrics = otlp.metrics_interval.map(|every| (every, Arc::clone(metrics)));
        let (queues, counts) = (Arc::clone(&self.queues), Arc::clone(&self.counts));
        let started_unix_us = self.started_unix_us;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new().name("weir-otlp".to_owned()).spawn(move || {
            // Only of this thread. If refused, it runs with normal priority.
            if let Err(error) = rustix::process::nice(NICER) {
                tracing::debug!(%error, "the thread that sends to the collector keeps its priority");
            }
            let first = metrics.as_ref().map_or(Duration::ZERO, |(every, _)| *every);
            let sender = Sender {
                queues,
                counts,
                collector: Collector::new(settings),
                resource,
                metrics,
                metrics_due: os::clock::now() + first,
                started_unix_us,
                state: State::default(),
            };
            runtime.block_on(sender.run(stopped));
            // A name lookup cannot be cancelled and may take half a minute.
            runtime.shutdown_background();
        })?;
        self.running = Some(Running { stop, thread });
        Ok(())
    }

    /// Drops lines that nothing sends.
    fn discard(&self, kind: Lines) {
        let lines = self.queues.take_lines(kind, usize::MAX);
        self.counts.of(signal(kind)).count_dropped(Dropped::Unreachable, count(&lines));
    }

    /// Sends what waits, within a second, and returns when the thread has ended.
    pub fn stop(mut self) {
        self.queues.accept_events(false);
        self.stop_thread();
    }

    fn stop_thread(&mut self) {
        let Some(Running { stop, thread }) = self.running.take() else { return };
        stop.send_replace(true);
        if thread.join().is_err() {
            tracing::error!("the thread that sends to the collector panicked");
        }
    }
}

/// The sink for the lines of the access log.
struct AccessLog {
    queues: Arc<Queues>,
    counts: Arc<Counts>,
}

impl Write for AccessLog {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        put_lines(&self.queues, &self.counts, Lines::Access, lines.to_vec());
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The sink for the events of the program's log.
#[derive(Clone)]
pub struct Events {
    queues: Arc<Queues>,
    counts: Arc<Counts>,
}

impl Events {
    /// Returns whether events are sent.
    pub fn are_sent(&self) -> bool {
        self.queues.accepts_events()
    }

    /// Takes an event.
    pub fn put(&self, event: LogEvent) {
        if self.queues.accepts_events() && !self.queues.put_event(event) {
            self.counts.of(Signal::Logs).count_dropped(Dropped::QueueFull, 1);
        }
    }
}

/// Puts lines, each ended by a line feed, into their queue, or counts them as dropped.
fn put_lines(queues: &Queues, counts: &Counts, kind: Lines, lines: Vec<u8>) {
    if let Err(lines) = queues.put_lines(kind, lines) {
        counts.of(signal(kind)).count_dropped(Dropped::QueueFull, count(&lines));
    }
}

fn signal(kind: Lines) -> Signal {
    match kind {
        Lines::Spans => Signal::Traces,
        Lines::Access => Signal::Logs,
    }
}

fn count(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}
