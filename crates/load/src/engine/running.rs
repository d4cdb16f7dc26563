//! A run under way: its threads, and the seconds that they hand over.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, JoinHandle};

use hdrhistogram::Histogram;
use os::process::CpuTime;

use super::plan::Plan;
use super::recorder::{Interval, Recorder};
use super::worker::{ABORT, RUN, Shared, WIND_UP, Worker, nanos};
use super::{metronome, recorder};

/// From now to the run's beginning, so that every thread is there by then.
const LEAD_NS: u64 = 20_000_000;
/// After a second's end, how long threads are waited for that have not handed it over.
const GRACE_NS: u64 = 300_000_000;
/// Seconds of all threads that wait for somebody to take them.
const INTERVALS_MAX: usize = 4_096;

/// A run under way.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<io::Result<Recorder>>>,
    metronome: Option<JoinHandle<io::Result<Histogram<u64>>>>,
    intervals: Receiver<Interval>,
    /// Seconds that some thread has not handed over yet, with how many have.
    open: VecDeque<(Interval, usize)>,
    /// The first of them.
    next: u64,
    cpu_before: CpuTime,
}

/// What a run has come to.
#[derive(Debug)]
pub struct Outcome {
    /// Of all threads.
    pub recorder: Recorder,
    /// How late an empty timer loop was woken meanwhile, in nanoseconds; open model only.
    pub timer: Option<Histogram<u64>>,
    /// When it began, in nanoseconds of the process's clock.
    pub began_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// CPU time that this process used meanwhile.
    pub cpu: CpuTime,
    /// The first thing that went wrong in a thread, which then ended early.
    pub broken: Option<String>,
}

/// Starts a run.
///
/// # Errors
/// When the threads cannot be made.
pub fn start(plan: Plan) -> io::Result<Running> {
    let begins = os::clock::nanos() + LEAD_NS;
    let cpu_before = os::process::cpu_time();
    let threads = plan.threads;
    let is_open = plan.shape.is_open();
    let ends = begins + plan.shape.time().map_or(0, nanos);
    let shared = Arc::new(Shared { plan, begins, orders: AtomicU8::new(RUN) });
    let (sender, intervals) = sync_channel(INTERVALS_MAX);
    let mut running = Running {
        shared: Arc::clone(&shared),
        threads: Vec::new(),
        metronome: None,
        intervals,
        open: VecDeque::new(),
        next: 0,
        cpu_before,
    };
    for thread in 0..threads {
        let (shared, sender) = (Arc::clone(&shared), sender.clone());
        let body = move || Worker::new(shared, thread, sender)?.run();
        let started = Builder::new().name(format!("weir-load-{thread}")).spawn(body);
        match started {
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
        while let Ok(interval) = self.intervals.try_recv() {
            self.take(&interval);
        }
        let all = self.threads.len();
        let mut complete = Vec::new();
        // A thread that is done hands nothing over any more: after a while nobody is waited for.
        let now = os::clock::nanos();
        let late = |next: u64| now > self.shared.begins + (next + 1) * 1_000_000_000 + GRACE_NS;
        while self.open.front().is_some_and(|(_, threads)| *threads >= all || late(self.next)) {
            complete.extend(self.open.pop_front().map(|(interval, _)| interval));
            self.next += 1;
        }
        complete
    }

    fn take(&mut self, interval: &Interval) {
        let Some(at) = interval.second.checked_sub(self.next) else { return };
        while self.open.len() as u64 <= at {
            let second = self.next + self.open.len() as u64;
            self.open.push_back((Interval::new(second, interval.sources.len()), 0));
        }
        if let Some((sum, threads)) = self.open.get_mut(at as usize) {
            sum.add(interval);
            *threads += 1;
        }
    }

    /// Waits for the end; yields the figures and the seconds that were not taken yet.
    pub fn finish(mut self) -> (Outcome, Vec<Interval>) {
        let plan = &self.shared.plan;
        let mut sum = Recorder::new(plan.shape.is_open(), plan.sources.len().max(1));
        let mut broken = None;
        for thread in std::mem::take(&mut self.threads) {
            match thread.join() {
                Ok(Ok(recorder)) => sum.add(&recorder),
                Ok(Err(error)) => {
                    broken = broken.or(Some(format!("a thread of load ended early: {error}")));
                }
                Err(_) => broken = broken.or(Some("a thread of load ended early".to_owned())),
            }
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
        let mut rest = self.seconds();
        rest.extend(self.open.drain(..).map(|(interval, _)| interval));
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
