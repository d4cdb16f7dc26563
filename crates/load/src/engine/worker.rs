//! One thread of load: starts what is due, moves bytes, notices what takes too long.
//!
//! A loop around one poller, without tasks and without allocation per request: closed, a request
//! costs a write and a read. Connections are [`super::carry`]'s.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use os::poll::Poller;
use wire::http1::ResponseHead;

use super::connection::Table;
use super::exchange::Exchange;
use super::plan::{Plan, Protocol, Shape};
use super::recorder::{Interval, Moments, Recorder};
use super::turn::Turn;
use crate::schedule::Arrivals;

/// How often what takes too long is looked for.
const SCAN_NS: u64 = 20_000_000;
/// How long a connection of a closed loop rests after it could not be opened, so that a server
/// that is gone is not hammered.
const REST_NS: u64 = 50_000_000;
/// Starts in one go, before what has come is looked at again: after a pause of this machine
/// thousands may be due at once, and responses that wait meanwhile would look slow.
const STARTS_MAX: usize = 64;
/// The requests of so long a time have their connections opened before the run begins: a machine that
/// stands still for no longer needs no further ones.
pub(crate) const AHEAD: Duration = Duration::from_millis(20);
/// What is read at once.
const READ_BYTES: usize = 64 * 1024;

/// Runs on.
pub(crate) const RUN: u8 = 0;
/// Begins no more requests.
pub(crate) const WIND_UP: u8 = 1;
/// Ends at once.
pub(crate) const ABORT: u8 = 2;

/// What all threads of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    /// When the run begins, in nanoseconds of the process's clock.
    pub(crate) begins: u64,
    /// [`RUN`], [`WIND_UP`] or [`ABORT`].
    pub(crate) orders: AtomicU8,
}

impl Shared {
    /// Which second of the run it is, from 0.
    pub(crate) fn second(&self, now: u64) -> u64 {
        now.saturating_sub(self.begins) / 1_000_000_000
    }
}

/// When this thread's requests begin.
#[derive(Debug)]
enum Starts {
    /// By the clock, in nanoseconds from the run's beginning.
    Open(Arrivals),
    /// When one ends.
    Closed { left: u64, until: u64, ramp: u64 },
}

/// A thread of load.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) poller: Poller,
    pub(crate) table: Table,
    /// By site: connections that can take a request, the one used last on top.
    pub(crate) spare: Vec<Vec<usize>>,
    pub(crate) recorder: Recorder,
    pub(crate) scratch: Vec<u8>,
    pub(crate) head: ResponseHead,
    pub(crate) in_flight: usize,
    pub(crate) next_source: usize,
    pub(crate) connections_max: usize,
    /// By site: connections opened ahead of requests that are not up yet.
    pub(crate) ahead: Vec<Vec<usize>>,
    /// When a connection was opened last.
    pub(crate) opened_ns: u64,
    /// Whether one was closed since, which the next one replaces.
    pub(crate) has_closed: bool,
    /// Slots of a closed loop that rest, by when they are ready again.
    pub(crate) resting: VecDeque<u64>,
    /// Requests under way that have no connection: a server gave them back, or there was no room.
    pub(crate) put_back: VecDeque<Exchange>,
    in_flight_max: usize,
    starts: Starts,
    turn: Turn,
    /// The target whose turn it is, kept until it can begin.
    next_target: Option<usize>,
    cpu_ns: u64,
    thread: usize,
    seconds: SyncSender<HandedOver>,
}

/// A second of one thread's, which has ended.
#[derive(Debug)]
pub(crate) struct HandedOver {
    pub(crate) thread: usize,
    /// The first second of which nothing was handed over yet.
    pub(crate) next: u64,
    pub(crate) interval: Interval,
}

impl Worker {
    /// Thread `thread` of the plan's.
    pub(crate) fn new(
        shared: Arc<Shared>,
        thread: usize,
        seconds: SyncSender<HandedOver>,
    ) -> io::Result<Worker> {
        let plan = &shared.plan;
        let share = |whole: u64| {
            let (whole, threads, thread) = (whole, plan.threads as u64, thread as u64);
            whole / threads + u64::from(thread < whole % threads)
        };
        let starts = match &plan.shape {
            Shape::Open { profile, spacing } => {
                Starts::Open(Arrivals::new(Arc::clone(profile), *spacing, thread, plan.threads))
            }
            Shape::Closed { time, requests, ramp } => Starts::Closed {
                left: requests.map_or(u64::MAX, share),
                until: time.map_or(u64::MAX, nanos),
                ramp: nanos(*ramp),
            },
        };
        let connections_max = share(plan.connections_max as u64).max(1) as usize;
        let streams = if plan.protocol == Protocol::Http2 { plan.streams_max } else { 1 };
        Ok(Worker {
            poller: Poller::new()?,
            table: Table::default(),
            spare: vec![Vec::new(); plan.sites.len()],
            recorder: Recorder::new(plan.shape.is_open(), plan.sources.len().max(1)),
            scratch: vec![0; READ_BYTES],
            head: ResponseHead::default(),
            in_flight: 0,
            next_source: thread,
            connections_max,
            ahead: vec![Vec::new(); plan.sites.len()],
            opened_ns: 0,
            has_closed: false,
            in_flight_max: connections_max * streams,
            resting: VecDeque::new(),
            put_back: VecDeque::new(),
            starts,
            turn: Turn::new(plan.targets.iter().map(|target| target.weight)),
            next_target: None,
            cpu_ns: 0,
            thread,
            seconds,
            shared,
        })
    }

    /// Runs to the end; yields the figures, and what ended it early: the poller, which does not fail
    /// in the ordinary course.
    pub(crate) fn run(mut self) -> (Recorder, io::Result<()>) {
        let ended = self.work();
        self.end();
        (self.recorder, ended)
    }

    fn work(&mut self) -> io::Result<()> {
        // Only starts come less precisely without it.
        let _ = os::threads::wake_precisely();
        self.open_ahead(os::clock::nanos());
        let mut scan_at = self.shared.begins + SCAN_NS;
        let mut give_up_at = u64::MAX;
        loop {
            let now = os::clock::nanos();
            self.roll(now);
            let orders = self.shared.orders.load(Ordering::Relaxed);
            if orders != RUN && self.recorder.ordered_end_ns.is_none() {
                self.end_starts(now);
            }
            if orders == ABORT || now >= give_up_at {
                return Ok(());
            }
            self.begin_put_back(now);
            if orders == RUN {
                self.begin_due(now);
            }
            if (orders != RUN || self.has_begun_all(now)) && give_up_at == u64::MAX {
                // What is under way is waited for: it counts, and the server counts it, too.
                let longest = self.shared.plan.timeout + self.shared.plan.connect_timeout;
                give_up_at = now + nanos(longest) + SCAN_NS;
            }
            if give_up_at != u64::MAX && self.in_flight == 0 {
                return Ok(());
            }
            if now >= scan_at {
                self.scan(now);
                scan_at = now + SCAN_NS;
                continue;
            }
            self.poller.wait(self.wait_from(now, scan_at))?;
            for index in 0..self.poller.len() {
                // What is due does not wait for the rest of the events.
                let now = os::clock::nanos();
                if orders == RUN && self.is_due(now) {
                    self.begin_due(now);
                }
                self.carry(self.poller.ready(index), now);
                self.begin_put_back(now);
                // In a closed loop what just ended makes room for the next.
                if orders == RUN && self.is_closed_loop() {
                    self.begin_due(now);
                }
            }
        }
    }

    /// Opens the connections that the first requests need: to open one costs several times what a
    /// request does, and a server that gets hundreds at once is slow for as long, which makes the load
    /// open more.
    fn open_ahead(&mut self, now: u64) {
        let plan = &self.shared.plan;
        let Starts::Open(arrivals) = &self.starts else { return };
        if !plan.keeps_connections() {
            return;
        }
        let mut arrivals = arrivals.clone();
        let mut turn = self.turn.clone();
        let mut requests = vec![0_usize; plan.sites.len()];
        while arrivals.next_ns().is_some_and(|next| next <= nanos(AHEAD)) {
            requests[plan.targets[turn.next()].site] += 1;
            arrivals.advance();
        }
        let streams = self.in_flight_max / self.connections_max;
        for (site, requests) in requests.into_iter().enumerate() {
            for _ in 0..requests.div_ceil(streams) {
                if self.has_room() {
                    self.open(None, site, now);
                }
            }
        }
    }

    fn is_closed_loop(&self) -> bool {
        matches!(self.starts, Starts::Closed { .. })
    }

    /// Whether the clock has a request begin.
    fn is_due(&self, now: u64) -> bool {
        let Starts::Open(arrivals) = &self.starts else { return false };
        arrivals.next_ns().is_some_and(|next| self.shared.begins + next <= now)
    }

    /// Begins what is due and can begin, [`STARTS_MAX`] at most.
    fn begin_due(&mut self, now: u64) {
        let begins = self.shared.begins;
        for _ in 0..STARTS_MAX {
            let intended = match &self.starts {
                Starts::Open(arrivals) => match arrivals.next_ns() {
                    Some(next) if begins + next <= now => begins + next,
                    _ => return,
                },
                Starts::Closed { left, until, ramp } => {
                    let since = now.saturating_sub(begins);
                    if *left == 0 || now < begins || since >= *until {
                        return;
                    }
                    let slots = ramped(self.in_flight_max, since, *ramp);
                    while self.resting.front().is_some_and(|&ready| ready <= now) {
                        self.resting.pop_front();
                    }
                    if self.in_flight + self.resting.len() >= slots {
                        return;
                    }
                    now
                }
            };
            let target = self.next_target.take().unwrap_or_else(|| self.turn.next());
            if !self.can_begin(target) {
                self.next_target = Some(target);
                self.recorder.all_in_use += 1;
                self.drop_overdue(now);
                return;
            }
            if self.is_behind(target, intended, now) {
                self.next_target = Some(target);
                self.drop_overdue(now);
                return;
            }
            match &mut self.starts {
                Starts::Open(arrivals) => arrivals.advance(),
                Starts::Closed { left, .. } => *left -= 1,
            }
            let started = if self.shared.plan.shape.is_open() { os::clock::nanos() } else { now };
            let moments = Moments { intended, started, sent: 0, first_byte: 0 };
            self.recorder.started(&moments);
            self.in_flight += 1;
            self.begin(Exchange { target, moments, sent: 0, sent_again: 0 }, started);
        }
    }

    /// Starts that have waited for longer than a request may take will not come any more.
    fn drop_overdue(&mut self, now: u64) {
        let Starts::Open(arrivals) = &mut self.starts else { return };
        let too_old = now.saturating_sub(nanos(self.shared.plan.timeout));
        while arrivals.next_ns().is_some_and(|next| self.shared.begins + next < too_old) {
            arrivals.advance();
            self.recorder.dropped();
        }
    }

    /// Nothing begins any more, by order: what was due until now and had not begun is dropped, what
    /// would have come later was never intended.
    fn end_starts(&mut self, now: u64) {
        self.recorder.ordered_end_ns = Some(now);
        match &mut self.starts {
            Starts::Closed { left, .. } => *left = 0,
            Starts::Open(arrivals) => {
                while arrivals.next_ns().is_some_and(|next| self.shared.begins + next <= now) {
                    arrivals.advance();
                    self.recorder.dropped();
                }
                arrivals.end();
            }
        }
    }

    /// Whether nothing will begin any more.
    fn has_begun_all(&mut self, now: u64) -> bool {
        let since = now.saturating_sub(self.shared.begins);
        let lacks_connection = self.next_target.is_some_and(|target| !self.can_begin(target));
        match &mut self.starts {
            Starts::Closed { left, until, .. } => *left == 0 || since >= *until,
            Starts::Open(arrivals) => {
                let over = self.shared.plan.shape.time().is_some_and(|time| since >= nanos(time));
                // What did not find a connection before the end does not begin afterwards; what only
                // waits for its turn, after a pause of this machine, does.
                while over && lacks_connection && arrivals.next_ns().is_some() {
                    arrivals.advance();
                    self.recorder.dropped();
                }
                over && arrivals.next_ns().is_none()
            }
        }
    }

    /// How long nothing is to be done but what events bring.
    fn wait_from(&self, now: u64, scan_at: u64) -> Duration {
        if self.has_put_back() {
            return Duration::ZERO;
        }
        let mut until = scan_at;
        let begins = self.shared.begins;
        match &self.starts {
            Starts::Open(arrivals) => {
                // What finds no connection waits for events.
                let due = arrivals.next_ns().map_or(u64::MAX, |next| begins + next);
                until = match self.next_target {
                    None => until.min(due),
                    Some(target) if self.can_begin(target) => {
                        until.min(due.max(self.next_opening_ns()))
                    }
                    Some(_) => until,
                };
            }
            Starts::Closed { .. } if now < begins => until = until.min(begins),
            Starts::Closed { .. } => {}
        }
        Duration::from_nanos(until.saturating_sub(now))
    }

    /// A slot of a closed loop rests.
    pub(crate) fn rest(&mut self, now: u64) {
        if matches!(self.starts, Starts::Closed { .. }) {
            self.resting.push_back(now + REST_NS);
        }
    }

    /// Hands over the second that has ended.
    fn roll(&mut self, now: u64) {
        let second = self.shared.second(now);
        if second > self.recorder.interval.second {
            self.hand_over(second);
        }
    }

    fn hand_over(&mut self, next: u64) {
        let mut ended = self.recorder.roll(next);
        ended.connections_open = self.table.len() as u64;
        ended.in_flight = self.in_flight as u64;
        let cpu_ns = nanos(os::clock::thread_cpu());
        ended.busiest_cpu_ns = cpu_ns - self.cpu_ns;
        self.cpu_ns = cpu_ns;
        let handed = HandedOver { thread: self.thread, next, interval: ended };
        if let Err(TrySendError::Full(back)) = self.seconds.try_send(handed) {
            // The reader is far behind: counted a second later, rather than lost.
            self.recorder.interval.add(&back.interval);
        }
    }

    /// The last second, and what is still under way.
    fn end(&mut self) {
        self.recorder.cut_off += self.in_flight as u64;
        self.hand_over(self.recorder.interval.second + 1);
    }
}

/// Slots of a closed loop that are in use so long after its beginning.
fn ramped(slots: usize, since_ns: u64, ramp_ns: u64) -> usize {
    if since_ns >= ramp_ns {
        return slots;
    }
    ((slots as f64 * since_ns as f64 / ramp_ns as f64).ceil() as usize).clamp(1, slots)
}

/// Whole nanoseconds.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_one_by_one_while_a_closed_loop_ramps_up() {
        assert_eq!(ramped(10, 0, 0), 10);
        assert_eq!(ramped(10, 0, 1_000), 1);
        assert_eq!(ramped(10, 450, 1_000), 5);
        assert_eq!(ramped(10, 1_000, 1_000), 10);
    }
}
