//! A server with a habit, a network with a delay, and workers whose pools obey the learner: how
//! many requests that may not be repeated are sent on a connection that the server has closed by
//! the time they arrive, and how many reuse one at all.
//!
//! Every run is made from its seed alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use model::Moment;

use super::{Busy, Idle, Learner, Promise};

const SWEEP_US: u64 = 100_000;
/// Until a worker that is busy with something else sees what the kernel knows.
const LAG_MAX_US: u64 = 2_000;
const MS: u64 = 1_000;
const S: u64 = 1_000_000;

/// How the server treats idle connections.
#[derive(Clone, Copy, Debug)]
enum Closes {
    Never,
    /// After a time between the two.
    Between(u64, u64),
    /// As `Between` at first; from the third number on after the fourth.
    Until(u64, u64, u64),
    /// Only to make room: the one that has been idle longest, when there are more than these.
    Oldest(usize),
}

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
enum Traffic {
    /// Independent requests, as many per second.
    Rate(f64),
    /// One after the other, with a pause between the two.
    Paced(u64, u64),
    /// A rate that is five times as high in every tenth minute second.
    Bursts(f64),
}

#[derive(Clone, Copy, Debug)]
struct Scene {
    closes: Closes,
    traffic: Traffic,
    posts_percent: u64,
    workers: usize,
    keep_alive: Duration,
    /// One way, in microseconds; each trip takes up to twice as long.
    delay_us: u64,
    promise: Option<u64>,
    restart_every: Option<u64>,
    /// Whether somebody is refused while the server restarts.
    refuses: bool,
    /// Reuses whatever it has, as the naive do.
    blind: bool,
    until: u64,
}

const SCENE: Scene = Scene {
    closes: Closes::Never,
    traffic: Traffic::Rate(100.0),
    posts_percent: 50,
    workers: 2,
    keep_alive: Duration::from_secs(60),
    delay_us: 300,
    promise: None,
    restart_every: None,
    refuses: false,
    blind: false,
    until: 600 * S,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ask,
    Sweep(usize),
    Restart,
    /// The request is at the server.
    Arrive(usize),
    /// The server has sent its response.
    Respond(usize),
    /// The response is here.
    Done(usize),
    /// The server's timer for the idle time of this number.
    Timer(usize, u32),
    /// The close is here and noticed.
    Fin(usize),
    /// The reset that answers a request to a closed connection is here.
    Reset(usize),
}

#[derive(Debug)]
struct Connection {
    worker: usize,
    busy: Option<Busy>,
    post: bool,
    /// At the server: since when it is idle, and how often it was.
    idle_since: Option<u64>,
    idle_times: u32,
    closed: bool,
    /// Closed while it was in use, by a restart.
    cut: bool,
    fin_seen: bool,
}

#[derive(Debug, Default)]
struct Tally {
    posts: u64,
    posts_reused: u64,
    gets: u64,
    gets_reused: u64,
    /// Posts sent on a kept connection that the server had closed when they arrived.
    posts_lost: u64,
    gets_replayed: u64,
    /// What the learner had to say.
    told: Vec<String>,
}

impl Tally {
    fn reused(&self) -> f64 {
        (self.posts_reused + self.gets_reused) as f64 / (self.posts + self.gets) as f64
    }

    fn posts_reused(&self) -> f64 {
        self.posts_reused as f64 / self.posts as f64
    }
}

struct World {
    scene: Scene,
    rng: fastrand::Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    connections: Vec<Connection>,
    /// Of those, the open ones, where somebody needs to know.
    open: Vec<usize>,
    /// By worker, newest last.
    pools: Vec<Vec<(usize, Idle)>>,
    learner: Learner,
    tally: Tally,
}

fn run(scene: Scene, seed: u64) -> Tally {
    let mut world = World {
        scene,
        rng: fastrand::Rng::with_seed(seed),
        now: 0,
        events: BinaryHeap::new(),
        sequence: 0,
        connections: Vec::new(),
        open: Vec::new(),
        pools: (0..scene.workers).map(|_| Vec::new()).collect(),
        learner: Learner::new(),
        tally: Tally::default(),
    };
    world.at(S, Event::Ask);
    for worker in 0..scene.workers {
        let phase = world.rng.u64(0..SWEEP_US);
        world.at(phase, Event::Sweep(worker));
    }
    if let Some(every) = scene.restart_every {
        world.at(every, Event::Restart);
    }
    while let Some(Reverse((at, _, event))) = world.events.pop() {
        if at > scene.until {
            break;
        }
        world.now = at;
        world.step(event);
    }
    world.tally
}

impl World {
    fn at(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now + after, self.sequence, event)));
    }

    fn moment(&self) -> Moment {
        Moment::from_micros(self.now)
    }

    fn trip(&mut self) -> u64 {
        self.rng.u64(self.scene.delay_us..=2 * self.scene.delay_us)
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Ask => self.ask(),
            Event::Sweep(worker) => self.sweep(worker),
            Event::Restart => self.restart(),
            Event::Arrive(id) => self.arrive(id),
            Event::Respond(id) => self.respond(id),
            Event::Done(id) => self.done(id),
            Event::Timer(id, idle_times) => {
                let connection = &self.connections[id];
                if connection.idle_since.is_some() && connection.idle_times == idle_times {
                    self.close(id);
                }
            }
            Event::Fin(id) => self.connections[id].fin_seen = true,
            Event::Reset(id) => {
                let now = self.moment();
                if let Some(busy) = self.connections[id].busy.take()
                    && !self.scene.blind
                {
                    self.learner.failed(&busy, now);
                }
            }
        }
    }

    // The balancer.

    fn ask(&mut self) {
        let worker = self.rng.usize(0..self.scene.workers);
        let post = self.rng.u64(0..100) < self.scene.posts_percent;
        self.send(worker, post);
        let gap = |rng: &mut fastrand::Rng, rate: f64| (-rng.f64().ln_1p() / rate * 1e6).abs();
        let pause = match self.scene.traffic {
            // Of ln(1 - u): exponential gaps.
            Traffic::Rate(rate) => (-(1.0 - self.rng.f64()).ln() / rate * 1e6) as u64,
            Traffic::Paced(from, to) => self.rng.u64(from..to),
            Traffic::Bursts(rate) => {
                let high = self.now / S % 10 == 0;
                gap(&mut self.rng, if high { 5.0 * rate } else { rate }) as u64
            }
        };
        self.at(pause, Event::Ask);
    }

    fn send(&mut self, worker: usize, post: bool) {
        let id = match self.take(worker, post) {
            Some(id) => id,
            None => self.connect(worker),
        };
        let connection = &mut self.connections[id];
        connection.post = post;
        let reused = connection.busy.is_some_and(|busy| busy.reused());
        let (sent, on_kept) = if post {
            (&mut self.tally.posts, &mut self.tally.posts_reused)
        } else {
            (&mut self.tally.gets, &mut self.tally.gets_reused)
        };
        *sent += 1;
        *on_kept += u64::from(reused);
        let trip = self.trip();
        self.at(trip, Event::Arrive(id));
    }

    fn take(&mut self, worker: usize, post: bool) -> Option<usize> {
        let now = self.moment();
        let pool = &mut self.pools[worker];
        let mut at = pool.len();
        while at > 0 {
            at -= 1;
            let (id, idle) = &pool[at];
            if self.connections[*id].fin_seen {
                let (_, idle) = pool.remove(at);
                if !self.scene.blind {
                    self.learner.saw_closed(idle, now);
                }
            } else if self.scene.blind
                || self.learner.may_reuse(idle, !post, self.scene.keep_alive, now)
            {
                let (id, idle) = pool.remove(at);
                self.connections[id].busy = Some(self.learner.take(idle, now));
                return Some(id);
            } else if !idle.is_observer() {
                break;
            }
        }
        None
    }

    fn connect(&mut self, worker: usize) -> usize {
        let took = Duration::from_micros(self.trip() + self.trip());
        self.connections.push(Connection {
            worker,
            busy: Some(self.learner.connected(took)),
            post: false,
            idle_since: None,
            idle_times: 0,
            closed: false,
            cut: false,
            fin_seen: false,
        });
        if let Closes::Oldest(max) = self.scene.closes {
            let connections = &self.connections;
            self.open.retain(|&id| !connections[id].closed);
            self.open.push(self.connections.len() - 1);
            if self.open.len() > max {
                let idle = self.open.iter().copied();
                let idle = idle.filter_map(|id| Some((self.connections[id].idle_since?, id)));
                if let Some((_, oldest)) = idle.min() {
                    self.close(oldest);
                }
            }
        }
        self.connections.len() - 1
    }

    fn sweep(&mut self, worker: usize) {
        let now = self.moment();
        let pool = std::mem::take(&mut self.pools[worker]);
        for (id, mut idle) in pool {
            if self.connections[id].fin_seen {
                if !self.scene.blind {
                    self.learner.saw_closed(idle, now);
                }
            } else if self.learner.saw_open(&mut idle, self.scene.keep_alive, now) {
                self.pools[worker].push((id, idle));
            } else {
                self.hang_up(id);
            }
        }
        if let Some(view) = self.learner.news(self.scene.keep_alive, now) {
            self.tally.told.push(view.to_string());
        }
        self.at(SWEEP_US, Event::Sweep(worker));
    }

    /// The balancer closes.
    fn hang_up(&mut self, id: usize) {
        self.connections[id].closed = true;
        self.connections[id].idle_since = None;
    }

    fn done(&mut self, id: usize) {
        let now = self.moment();
        let Some(busy) = self.connections[id].busy.take() else { return };
        self.learner.answered(&busy, now);
        let timeout = self.scene.promise.map(Duration::from_micros);
        let promise = Promise { timeout, requests_left: None };
        match self.learner.rest(busy, promise, self.scene.keep_alive, now) {
            Some(idle) => {
                let worker = self.connections[id].worker;
                self.pools[worker].push((id, idle));
            }
            None => self.hang_up(id),
        }
    }

    // The server.

    fn arrive(&mut self, id: usize) {
        let connection = &mut self.connections[id];
        if connection.closed {
            let stale = connection.busy.is_some_and(|busy| busy.reused()) && !connection.cut;
            let (post, worker) = (connection.post, connection.worker);
            let trip = self.trip();
            self.at(trip, Event::Reset(id));
            if stale && post {
                self.tally.posts_lost += 1;
            } else if stale {
                self.tally.gets_replayed += 1;
                let fresh = self.connect(worker);
                self.at(3 * trip, Event::Arrive(fresh));
            }
            return;
        }
        connection.idle_since = None;
        let takes = self.rng.u64(MS..30 * MS);
        self.at(takes, Event::Respond(id));
    }

    fn respond(&mut self, id: usize) {
        let trip = self.trip();
        let connection = &mut self.connections[id];
        if connection.closed {
            return;
        }
        connection.idle_since = Some(self.now);
        connection.idle_times += 1;
        let idle_times = connection.idle_times;
        self.at(trip, Event::Done(id));
        let timer = match self.scene.closes {
            Closes::Never | Closes::Oldest(_) => None,
            Closes::Between(from, to) => Some(self.rng.u64(from..=to)),
            Closes::Until(first, change, then) => {
                Some(if self.now < change { first } else { then })
            }
        };
        if let Some(after) = timer {
            self.at(after, Event::Timer(id, idle_times));
        }
    }

    /// The server closes an idle connection. Its FIN does not overtake its response.
    fn close(&mut self, id: usize) {
        self.connections[id].closed = true;
        self.connections[id].idle_since = None;
        let until_seen = 2 * self.scene.delay_us + self.rng.u64(0..LAG_MAX_US);
        self.at(until_seen, Event::Fin(id));
    }

    fn restart(&mut self) {
        for id in 0..self.connections.len() {
            let connection = &mut self.connections[id];
            if connection.closed {
                continue;
            }
            if connection.idle_since.is_some() {
                // Not a habit: a request under way to it is lost to the restart.
                connection.cut = true;
                self.close(id);
            } else {
                connection.closed = true;
                connection.cut = true;
                self.at(self.scene.delay_us, Event::Reset(id));
            }
        }
        if self.scene.refuses {
            self.learner.restarted(self.moment());
        }
        if let Some(every) = self.scene.restart_every {
            self.at(every, Event::Restart);
        }
    }
}

/// Runs the scene with some seeds; blind reuse must lose something in it if `is_real`.
fn play(name: &str, scene: Scene, is_real: bool, check: impl Fn(&Tally, u64)) {
    let mut lost_blindly = 0;
    for seed in 0..8 {
        let tally = run(scene, seed);
        println!("{name}, seed {seed}: {tally:?}");
        assert_eq!(tally.posts_lost, 0, "{name}, seed {seed}");
        check(&tally, seed);
        lost_blindly += run(Scene { blind: true, ..scene }, seed).posts_lost;
    }
    println!("{name}: blind reuse lost {lost_blindly}");
    assert!(lost_blindly > 0 || !is_real, "{name}: nothing to lose in it");
}

#[test]
fn explore() {
    for (name, scene) in [
        ("never", SCENE),
        ("5s busy", Scene { closes: Closes::Between(5 * S, 5 * S), ..SCENE }),
        (
            "2s paced",
            Scene {
                closes: Closes::Between(2 * S, 2 * S),
                traffic: Traffic::Paced(1_500 * MS, 2_500 * MS),
                posts_percent: 100,
                workers: 1,
                until: 20_000 * S,
                ..SCENE
            },
        ),
        (
            "1-5 s random",
            Scene {
                closes: Closes::Between(S, 5 * S),
                traffic: Traffic::Rate(2.0),
                until: 6_000 * S,
                ..SCENE
            },
        ),
        (
            "1-2 s random",
            Scene {
                closes: Closes::Between(S, 2 * S),
                traffic: Traffic::Rate(2.0),
                until: 6_000 * S,
                ..SCENE
            },
        ),
        ("at once", Scene { closes: Closes::Between(0, MS), ..SCENE }),
        ("at once +20ms", Scene { closes: Closes::Between(0, 20 * MS), ..SCENE }),
        (
            "oldest of 8",
            Scene { closes: Closes::Oldest(8), traffic: Traffic::Bursts(50.0), ..SCENE },
        ),
        (
            "oldest of 8, 10/s",
            Scene { closes: Closes::Oldest(8), traffic: Traffic::Bursts(10.0), ..SCENE },
        ),
        ("restarts", Scene { restart_every: Some(61 * S), ..SCENE }),
        ("graceful restarts", Scene { restart_every: Some(701 * S), until: 6_000 * S, ..SCENE }),
        ("refusing restarts", Scene { restart_every: Some(61 * S), refuses: true, until: 6_000 * S, ..SCENE }),
        ("far 5s", Scene { closes: Closes::Between(5 * S, 5 * S), delay_us: 40 * MS, traffic: Traffic::Rate(5.0), until: 6000*S, ..SCENE }),
        ("far 1s paced", Scene { closes: Closes::Between(1 * S, 1 * S), delay_us: 60 * MS, traffic: Traffic::Paced(300*MS, 1500*MS), workers: 1, until: 6000*S, ..SCENE }),
        ("far random", Scene { closes: Closes::Between(1 * S, 5 * S), delay_us: 40 * MS, traffic: Traffic::Rate(5.0), until: 6000*S, ..SCENE }),
    ] {
        let started = std::time::Instant::now();
        let mut lost = 0;
        let mut posts = 0;
        let mut reused = 0;
        let mut blind = 0;
        let mut bad = vec![];
        for seed in 0..30 {
            let tally = run(scene, seed);
            if seed < 2 {
                println!(
                    "  {name} {seed}: reused {:.3} posts {:.3} lost {} of {} replayed {} told {:#?}",
                    tally.reused(),
                    tally.posts_reused(),
                    tally.posts_lost,
                    tally.posts,
                    tally.gets_replayed,
                    tally.told
                );
            }
            lost += tally.posts_lost;
            posts += tally.posts;
            reused += tally.posts_reused;
            if tally.posts_lost > 0 {
                bad.push(seed);
            }
            blind += run(Scene { blind: true, ..scene }, seed).posts_lost;
        }
        println!(
            "{name} posts {posts} reused {:.3} lost {lost} {bad:?} blind lost {blind} in {:?}",
            reused as f64 / posts as f64,
            started.elapsed()
        );
    }
}
