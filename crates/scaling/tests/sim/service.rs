//! A service in virtual time: clients that retry, a queue with an end, servers with slots, and an autoscaler.
//!
//! Arrivals are Poisson. Service times are hyperexponential: nine of ten requests are short, with half the mean, and
//! one is long, with 5.5 times the mean (squared coefficient of variation 5.5). The slots of all servers are one
//! pool. A server that is removed finishes its requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use fastrand::Rng;
use scaling::{Counts, Load};

use crate::scalers::{Scaler, Seen};
use crate::shape::Shape;

/// Seconds between two decisions: the sync period of the Kubernetes autoscaler.
pub(crate) const SYNC: u32 = 15;
/// Seconds between two numbers, as the balancer computes them. A load covers three of these times.
const MEASURE: f64 = 5.0;
const READINGS: usize = 3;
/// When the first number is computed: in the middle between a decision and the number before it.
const MEASURE_FROM: f64 = 2.5;
/// Seconds until a new server takes requests.
pub(crate) const START_UP: u32 = 20;

/// What does not change during a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Slots of a server.
    pub(crate) slots: u32,
    /// Mean service time, seconds.
    pub(crate) service: f64,
    pub(crate) queue_max: usize,
    /// Seconds.
    pub(crate) wait_max: f64,
    /// Times that a client tries again after a 429, after 1 to 3 s.
    pub(crate) retries: u32,
    pub(crate) instances: usize,
    /// From this second on, requests take twice as long.
    pub(crate) slower_from: Option<f64>,
    /// Servers at the start.
    pub(crate) servers: u32,
}

/// Servers of 4 slots, requests of 400 ms: one server serves 10 requests per second at most, and 9 servers are what
/// 50 requests per second need.
pub(crate) const SETTING: Setting = Setting {
    slots: 4,
    service: 0.4,
    queue_max: 50,
    wait_max: 5.0,
    retries: 3,
    instances: 1,
    slower_from: None,
    servers: 9,
};

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// 429s in each second.
    pub(crate) refused: Vec<u32>,
    /// Requests that clients gave up.
    pub(crate) lost: u32,
    pub(crate) requests: u32,
    /// Servers that take requests and servers that start, after each decision.
    pub(crate) replicas: Vec<u32>,
}

impl Log {
    /// How often the number of servers changed.
    pub(crate) fn changes(&self) -> usize {
        self.replicas.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    Retry { attempt: u32 },
    End { instance: usize, held_us: u64 },
    Ready,
    Measure,
    Sync,
}

struct Waiting {
    since: u64,
    attempt: u32,
    instance: usize,
}

pub(crate) struct World {
    setting: Setting,
    shape: Shape,
    rng: Rng,
    /// Microseconds.
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    queue: VecDeque<Waiting>,
    busy: u32,
    ready: u32,
    /// Servers that start, of which some may have been removed before they are ready.
    starting: u32,
    cancelled: u32,
    counts: Vec<Counts>,
    occupied: Vec<(u64, u32)>,
    synced: Vec<Counts>,
    /// The latest readings of the instances, the oldest first.
    readings: VecDeque<Vec<Counts>>,
    pub(crate) log: Log,
}

/// Runs a service for so many seconds.
pub(crate) fn run(
    setting: Setting,
    shape: Shape,
    scaler: &mut dyn Scaler,
    seed: u64,
    seconds: u32,
) -> Log {
    let mut world = World::new(setting, shape, seed);
    let end = u64::from(seconds) * 1_000_000;
    while let Some(Reverse((at, event))) = world.events.pop() {
        if at >= end {
            break;
        }
        world.now = at;
        world.refuse_late();
        world.handle(event, scaler);
    }
    world.log.refused.resize(seconds as usize, 0);
    world.log
}

impl World {
    fn new(setting: Setting, shape: Shape, seed: u64) -> World {
        let mut world = World {
            setting,
            shape,
            rng: Rng::with_seed(seed),
            now: 0,
            events: BinaryHeap::new(),
            queue: VecDeque::new(),
            busy: 0,
            ready: setting.servers,
            starting: 0,
            cancelled: 0,
            counts: vec![Counts::default(); setting.instances],
            occupied: vec![(0, 0); setting.instances],
            synced: vec![Counts::default(); setting.instances],
            readings: VecDeque::new(),
            log: Log::default(),
        };
        world.after(0.0, Event::Arrival);
        world.after(MEASURE_FROM, Event::Measure);
        world.after(f64::from(SYNC), Event::Sync);
        world
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.events.push(Reverse((self.now + (seconds * 1e6) as u64, event)));
    }

    /// A time with this mean, exponentially distributed.
    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.rng.f64()).ln()
    }

    fn handle(&mut self, event: Event, scaler: &mut dyn Scaler) {
        match event {
            Event::Arrival => {
                let most = self.shape.most();
                let next = self.exponential(1.0 / most);
                self.after(next, Event::Arrival);
                if self.rng.f64() * most < self.shape.rate(self.now as f64 / 1e6) {
                    self.log.requests += 1;
                    self.arrive(0);
                }
            }
            Event::Retry { attempt } => self.arrive(attempt),
            Event::End { instance, held_us } => {
                self.busy -= 1;
                self.occupy(instance, -1);
                self.counts[instance].completions += 1;
                self.counts[instance].worked_us += held_us;
                self.serve();
            }
            Event::Ready if self.cancelled > 0 => self.cancelled -= 1,
            Event::Ready => {
                self.starting -= 1;
                self.ready += 1;
                self.serve();
            }
            Event::Measure => self.measure(scaler),
            Event::Sync => self.sync(scaler),
        }
    }

    fn arrive(&mut self, attempt: u32) {
        let instance = self.rng.usize(..self.setting.instances);
        self.counts[instance].arrivals += 1;
        let waiting = Waiting { since: self.now, attempt, instance };
        let full = self.busy >= self.ready * self.setting.slots;
        if full && self.queue.len() >= self.setting.queue_max {
            return self.refuse(&waiting);
        }
        self.queue.push_back(waiting);
        self.serve();
    }

    /// Starts requests while slots are free.
    fn serve(&mut self) {
        while self.busy < self.ready * self.setting.slots {
            let Some(Waiting { instance, .. }) = self.queue.pop_front() else { return };
            let mean = self.setting.service * if self.rng.u8(..10) == 0 { 5.5 } else { 0.5 };
            let slower = self.setting.slower_from.is_some_and(|from| self.now as f64 >= from * 1e6);
            let held = self.exponential(if slower { 2.0 * mean } else { mean });
            self.busy += 1;
            self.occupy(instance, 1);
            self.after(held, Event::End { instance, held_us: (held * 1e6) as u64 });
        }
    }

    fn refuse(&mut self, request: &Waiting) {
        self.counts[request.instance].refusals += 1;
        let second = (self.now / 1_000_000) as usize;
        if self.log.refused.len() <= second {
            self.log.refused.resize(second + 1, 0);
        }
        self.log.refused[second] += 1;
        if request.attempt < self.setting.retries {
            let pause = 1.0 + 2.0 * self.rng.f64();
            self.after(pause, Event::Retry { attempt: request.attempt + 1 });
        } else {
            self.log.lost += 1;
        }
    }

    /// Refuses the requests that have waited too long.
    fn refuse_late(&mut self) {
        let wait_max = (self.setting.wait_max * 1e6) as u64;
        while self.queue.front().is_some_and(|first| first.since + wait_max <= self.now) {
            let first = self.queue.pop_front().unwrap();
            self.refuse(&first);
        }
    }

    /// Changes the requests in flight of an instance, and counts the time until now.
    fn occupy(&mut self, instance: usize, change: i32) {
        let (since, in_flight) = &mut self.occupied[instance];
        self.counts[instance].occupied_us += (self.now - *since) * u64::from(*in_flight);
        *since = self.now;
        *in_flight = in_flight.checked_add_signed(change).unwrap();
    }

    fn measure(&mut self, scaler: &mut dyn Scaler) {
        self.after(MEASURE, Event::Measure);
        self.count();
        let between = std::time::Duration::from_secs_f64(MEASURE * self.readings.len() as f64);
        if let Some(earlier) = self.readings.front() {
            let both = self.counts.iter().zip(earlier);
            let loads: Vec<Load> =
                both.map(|(now, earlier)| now.since(earlier, between).unwrap()).collect();
            let (at, replicas) = (self.now as f64 / 1e6, self.ready + self.starting);
            scaler.measure(&Seen { at, loads: &loads, ready: self.ready, replicas });
        }
        self.readings.push_back(self.counts.clone());
        if self.readings.len() > READINGS {
            self.readings.pop_front();
        }
    }

    fn sync(&mut self, scaler: &mut dyn Scaler) {
        self.after(f64::from(SYNC), Event::Sync);
        let loads = self.loads();
        let replicas = self.ready + self.starting;
        let at = self.now as f64 / 1e6;
        let seen = Seen { at, loads: &loads, ready: self.ready, replicas };
        // The default policy of scale-up in Kubernetes: twice as many, or 4 more.
        let wanted = scaler.decide(&seen).min((2 * replicas).max(replicas + 4));
        for _ in replicas..wanted {
            self.starting += 1;
            self.after(f64::from(START_UP), Event::Ready);
        }
        let fewer = replicas.saturating_sub(wanted);
        let not_ready = fewer.min(self.starting);
        self.starting -= not_ready;
        self.cancelled += not_ready;
        self.ready -= fewer - not_ready;
        self.log.replicas.push(wanted);
    }

    /// The load of each instance since the sync before.
    fn loads(&mut self) -> Vec<Load> {
        self.count();
        let between = std::time::Duration::from_secs(SYNC.into());
        let both = self.counts.iter().zip(&self.synced);
        let loads = both.map(|(now, earlier)| now.since(earlier, between).unwrap()).collect();
        self.synced.clone_from(&self.counts);
        loads
    }

    /// Counts until now.
    fn count(&mut self) {
        for instance in 0..self.setting.instances {
            self.occupy(instance, 0);
            let waiting = self.queue.iter().filter(|request| request.instance == instance).count();
            self.counts[instance].waiting = waiting as u32;
        }
    }
}
