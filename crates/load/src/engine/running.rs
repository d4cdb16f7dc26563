//! A run in progress: its threads, and the seconds that they pass on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use os::process::CpuTime;

use super::gathered::Gathered;
use super::metronome::TimerLateness;
use super::plan::{Plan, Shape};
use super::recorder::{Interval, Recorder};
use super::worker::{ABORT, AHEAD, HandedOver, RUN, Shared, WIND_UP, Worker, nanos};
use super::{metronome, recorder};

/// From now to the run's beginning, so that every thread is there by then.
const LEAD_NS: u64 = 20_000_000;
/// And for each connection that a thread opens before: several times what it takes here.
const LEAD_PER_CONNECTION_NS: u64 = 100_000;
/// Seconds of all threads that wait to be taken.
const INTERVALS_MAX: usize = 4_096;

/// A run under way.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<(Option<Recorder>, io::Result<()>)>>,
    metronome: Option<JoinHandle<io::Result<TimerLateness>>>,
    handed_over: Receiver<HandedOver>,
    gathered: Gathered,
    cpu_before: CpuTime,
}

/// What a run has come to.
#[derive(Debug)]
pub struct Outcome {
    /// Of all threads.
    pub recorder: Recorder,
    /// How late an empty timer loop was woken meanwhile; open model only.
    pub timer: Option<TimerLateness>,
    /// When it began, in nanoseconds of the process's clock.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// CPU time that this process used meanwhile.
    pub cpu: CpuTime,
    /// Why a thread ended before its time; it ended the run with it.
    pub broken: Option<String>,
}

/// Starts a run.
///
/// # Errors
/// When the threads cannot be made.
pub fn start(plan: Plan) -> io::Result<Running> {
    let begins = os::clock::nanos() + LEAD_NS + connections_ahead(&plan) * LEAD_PER_CONNECTION_NS;
    let cpu_before = os::process::cpu_time();
    let threads = plan.threads;
    let is_open = plan.shape.is_open();
    let ends = begins + plan.shape.time().map_or(0, nanos);
    let shared = Arc::new(Shared { plan, begins, orders: AtomicU8::new(RUN) });
    let (sender, handed_over) = sync_channel(INTERVALS_MAX);
    let mut running = Running {
        shared: Arc::clone(&shared),
        threads: Vec::new(),
        metronome: None,
        handed_over,
        gathered: Gathered::new(threads),
        cpu_before,
    };
    for thread in 0..threads {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let body = move || run_to_the_end(&shared, thread, sender);
        match Builder::new().name(format!("weir-load-{thread}")).spawn(body) {
            Ok(handle) => running.threads.push(handle),
            Err(error) => {
                running.abort();
                return Err(error);
            }
        }
    }
    if is_open {
        let body = move || metronome::run(&shared, ends);
        running.metronome = Builder::new().name("weir-timer".to_owned()).spawn(body).ok();
    }
    Ok(running)
}

/// How many connections each thread opens before the run begins, at most and about.
fn connections_ahead(plan: &Plan) -> u64 {
    let Shape::Open { profile, .. } = &plan.shape else { return 0 };
    if !plan.keeps_connections() {
        return 0;
    }
    let requests = profile.count_until(AHEAD).min(plan.connections_max as f64);
    (requests / plan.threads.max(1) as f64) as u64
}

/// One thread's run. However it ends, no other goes on without it: what is left would not be the
/// load that was asked for.
fn run_to_the_end(
    shared: &Arc<Shared>,
    thread: usize,
    sender: SyncSender<HandedOver>,
) -> (Option<Recorder>, io::Result<()>) {
    /// Ends the others when it is dropped, by a panic too.
    struct Fall<'a>(&'a Shared);
    impl Drop for Fall<'_> {
        fn drop(&mut self) {
            self.0.orders.fetch_max(WIND_UP, Ordering::Relaxed);
        }
    }
    let fall = Fall(shared);
    let (recorder, ended) = match Worker::new(Arc::clone(shared), thread, sender) {
        Ok(worker) => {
            let (recorder, ended) = worker.run();
            (Some(recorder), ended)
        }
        Err(error) => (None, Err(error)),
    };
    if ended.is_ok() {
        std::mem::forget(fall);
    }
    (recorder, ended)
}

impl Running {
    /// What is being run.
    pub fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// When it begins, in nanoseconds of the process's clock.
    pub fn begins_ns(&self) -> u64 {
        self.shared.begins
    }

    /// Begins no more requests, and waits for those under way.
    pub fn stop(&self) {
        self.shared.orders.fetch_max(WIND_UP, Ordering::Relaxed);
    }

    /// Ends at once.
    pub fn abort(&self) {
        self.shared.orders.store(ABORT, Ordering::Relaxed);
    }

    /// Whether all threads have ended.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// The seconds that are complete since the last call, in order.
    pub fn seconds(&mut self) -> Vec<Interval> {
        // First, since a thread hands over its last second before it ends.
        let ended: Vec<bool> = self.threads.iter().map(JoinHandle::is_finished).collect();
        while let Ok(handed) = self.handed_over.try_recv() {
            self.gathered.add(&handed);
        }
        for (thread, _) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
            self.gathered.end(thread);
        }
        self.gathered.take()
    }

    /// Waits for the end; yields the figures and the seconds that were not taken yet.
    pub fn finish(mut self) -> (Outcome, Vec<Interval>) {
        let plan = &self.shared.plan;
        let mut sum = Recorder::new(plan.shape.is_open(), plan.sources.len().max(1));
        let mut broken = None;
        for (number, thread) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let why = match thread.join() {
                Ok((recorder, ended)) => {
                    if let Some(recorder) = recorder {
                        sum.add(&recorder);
                    }
                    ended.err().map(|error| error.to_string())
                }
                Err(_) => Some("a mistake in Weir; what it had counted is lost".to_owned()),
            };
            broken = broken.or(why);
            self.gathered.end(number);
        }
        let ended_ns = os::clock::nanos();
        let cpu = os::process::cpu_time();
        let cpu = CpuTime {
            user: cpu.user.saturating_sub(self.cpu_before.user),
            system: cpu.system.saturating_sub(self.cpu_before.system),
        };
        let began_ns = self.shared.begins;
        self.shared.orders.fetch_max(WIND_UP, Ordering::Relaxed);
        let timer = self.metronome.take().and_then(|thread| thread.join().ok()?.ok());
        let rest = self.seconds();
        (Outcome { recorder: sum, timer, began_ns, ended_ns, cpu, broken }, rest)
    }
}

impl Outcome {
    /// How long it took from the first start to the last response, in seconds.
    pub fn duration_s(&self) -> f64 {
        let last = self.recorder.last_ns.max(self.began_ns);
        let ended = if last > self.began_ns { last } else { self.ended_ns };
        ended.saturating_sub(self.began_ns) as f64 / 1e9
    }

    /// How late a start may be before it counts as late, in nanoseconds.
    pub const LATE_NS: u64 = recorder::LATE_NS;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::plan::Protocol;

    #[test]
    fn a_thread_that_dies_ends_the_run_and_is_told_of() {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let time = Some(Duration::from_mins(1));
        let shape = Shape::Closed { time, requests: None, ramp: Duration::ZERO };
        let plan = Plan {
            threads: 2,
            connections_max: 3,
            ..Plan::sample(Protocol::Http1, &[address; 2], shape)
        };
        // The second thread alone comes to the second target first: its site is none, which is a
        // mistake that only the load generator itself could make.
        let mut broken = plan.clone();
        broken.targets[1].site = 7;
        let (outcome, _) = start(broken).unwrap().finish();
        let why = outcome.broken.as_deref().unwrap_or_default();
        assert!(why.starts_with("a mistake in Weir"), "{why}");
        assert!(outcome.duration_s() < 30.0, "the minute that was asked for is not waited for");
    }
}
