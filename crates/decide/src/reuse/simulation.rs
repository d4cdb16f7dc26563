//! Simulation: a server with a certain behaviour, a network with a delay, and workers whose pools
//! follow the learner. Counts how many non-idempotent requests are sent on a connection that the
//! server has closed by the time they arrive, and how many reuse one at all.
//!
//! Every run is determined by its seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use model::Moment;

use super::{Busy, Idle, Learner, Promise};

const SWEEP_US: u64 = 100_000;
/// Delay until a busy worker sees what the kernel knows.
const LAG_MAX_US: u64 = 2_000;
const MS: u64 = 1_000;
const S: u64 = 1_000_000;

/// How the server treats idle connections.
#[derive(Clone, Copy, Debug)]
enum Closes {
    Never,
    /// After a time between the two.
    Between(u64, u64),
    /// After the first time; from the moment of the second on, after the third.
    Until(u64, u64, u64),
    /// Right after this many responses.
    Worn(u32),
    /// Only to make room: closes the longest-idle connection when there are more than this many.
    Oldest(usize),
}

/// The pattern of requests.
#[derive(Clone, Copy, Debug)]
enum Traffic {
    /// Independent requests, as many per second.
    Rate(f64),
    /// One after the other, with a pause in between.
    Paced(u64, u64),
    /// A rate that is five times as high in every tenth second.
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
    /// Whether connections are refused while the server restarts.
    refuses: bool,
    /// Reuses any connection, as a naive pool does.
    blind: bool,
    until: u64,
}

const SCENE: Scene = Scene {
    closes: Closes::Never,
    traffic: Traffic::Rate(100.0),
    posts_percent: 50,
    workers: 2,
    keep_alive: Duration::from_mins(1),
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
    /// The request arrives at the server.
    Arrive(usize),
    /// The server has sent its response.
    Respond(usize),
    /// The response has arrived.
    Done(usize),
    /// The server's timer for the idle time with this number.
    Timer(usize, u32),
    /// The close has arrived and was noticed.
    Fin(usize),
    /// The reset that answers a request to a closed connection has arrived.
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
    /// Non-idempotent requests sent on a pooled connection that the server had closed when they
    /// arrived.
    posts_lost: u64,
    gets_replayed: u64,
    /// What the learner reported.
    reported: Vec<String>,
}

impl Tally {
    fn reused(&self) -> f64 {
        share(self.posts_reused + self.gets_reused, self.posts + self.gets)
    }

    fn posts_reused(&self) -> f64 {
        share(self.posts_reused, self.posts)
    }
}

struct World {
    scene: Scene,
    rng: fastrand::Rng,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    connections: Vec<Connection>,
    /// The open ones among them, where needed.
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

    // Weir.

    fn ask(&mut self) {
        let worker = self.rng.usize(0..self.scene.workers);
        let post = self.rng.u64(0..100) < self.scene.posts_percent;
        self.send(worker, post);
        let rate = match self.scene.traffic {
            Traffic::Paced(from, to) => {
                let pause = self.rng.u64(from..to);
                return self.at(pause, Event::Ask);
            }
            Traffic::Bursts(rate) if (self.now / S).is_multiple_of(10) => 5.0 * rate,
            Traffic::Rate(rate) | Traffic::Bursts(rate) => rate,
        };
        // Exponential: independent of each other.
        let pause = -(1.0 - self.rng.f64()).ln() / rate * 1e6;
        self.at(pause as u64, Event::Ask);
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
            self.tally.reported.push(view.to_string());
        }
        self.at(SWEEP_US, Event::Sweep(worker));
    }

    /// Weir closes.
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
            Closes::Worn(max) => (idle_times >= max).then_some(200),
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
                // Not a habit: a request in progress on it is lost to the restart.
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

/// Runs the scene with some seeds. Nothing may be lost; naive reuse must lose at least that much
/// over all of them, which shows that there is something to lose.
fn play(name: &str, scene: Scene, lost_blindly_min: u64, check: impl Fn(&Tally)) {
    let mut lost_blindly = 0;
    for seed in 0..5 {
        let tally = run(scene, seed);
        println!("{name}, seed {seed}: {tally:?}");
        assert_eq!(tally.posts_lost, 0, "{name}, seed {seed}");
        check(&tally);
        lost_blindly += run(Scene { blind: true, ..scene }, seed).posts_lost;
    }
    println!("{name}: blind reuse loses {lost_blindly}");
    assert!(lost_blindly >= lost_blindly_min, "{name}: blind reuse loses only {lost_blindly}");
}

fn share(part: u64, of: u64) -> f64 {
    part as f64 / of as f64
}

#[test]
fn a_server_that_closes_nothing_is_reused_by_all() {
    play("never", SCENE, 0, |tally| {
        assert!(tally.posts_reused() > 0.99 && tally.reused() > 0.99);
        assert!(tally.reported.is_empty());
    });
}

#[test]
fn a_fixed_timeout_is_learned_and_kept_below() {
    let five = Scene { closes: Closes::Between(5 * S, 5 * S), ..SCENE };
    play("5 s, busy", five, 0, |tally| {
        assert!(tally.posts_reused() > 0.95 && tally.reused() > 0.95);
        assert_eq!(tally.reported, ["closes idle connections at 5.0 s; pool kept to 4.0 s"]);
    });
    // Idle ages straddle the close, so that it is always near.
    let traffic = Traffic::Paced(1_500 * MS, 2_500 * MS);
    let closes = Closes::Between(2 * S, 2 * S);
    let (posts_percent, workers, until) = (100, 1, 20_000 * S);
    let two = Scene { closes, traffic, posts_percent, workers, until, ..SCENE };
    play("2 s, paced", two, 50, |tally| {
        // Of pauses up to 1.6 s.
        assert!((0.08..0.12).contains(&tally.posts_reused()));
        assert_eq!(tally.reported, ["closes idle connections at 2.0 s; pool kept to 1.6 s"]);
    });
    let traffic = Traffic::Rate(5.0);
    let until = 3_000 * S;
    let far = Scene { delay_us: 40 * MS, traffic, until, ..five };
    play("5 s, 80 to 160 ms away", far, 10, |tally| assert!(tally.posts_reused() > 0.85));
}

#[test]
fn a_timer_of_whole_seconds_is_kept_below_too() {
    let closes = Closes::Between(2 * S, 3 * S);
    let (traffic, until) = (Traffic::Rate(3.0), 3_000 * S);
    let busy = Scene { closes, traffic, workers: 1, until, ..SCENE };
    play("2 to 3 s, busy", busy, 0, |tally| assert!(tally.posts_reused() > 0.8));
    let (traffic, until) = (Traffic::Paced(1_500 * MS, 3_500 * MS), 20_000 * S);
    play("2 to 3 s, paced", Scene { traffic, until, ..busy }, 10, |_| {});
}

#[test]
fn random_timeouts_leave_kept_connections_to_what_may_be_repeated() {
    let closes = Closes::Between(S, 5 * S);
    let (traffic, until) = (Traffic::Rate(5.0), 3_000 * S);
    let scene = Scene { closes, traffic, until, ..SCENE };
    let check = |tally: &Tally| {
        assert!(tally.posts_reused() < 0.05);
        assert!(share(tally.gets_reused, tally.gets) > 0.5);
        assert!(share(tally.gets_replayed, tally.gets) < 0.005);
        assert!(tally.reported.iter().any(|reported| reported.contains("at any age")));
    };
    play("1 to 5 s", scene, 1, check);
    play("1 to 5 s, 80 to 160 ms away", Scene { delay_us: 40 * MS, ..scene }, 100, check);
}

#[test]
fn a_server_that_closes_after_every_response_keeps_nothing() {
    for closes in [Closes::Between(0, 0), Closes::Between(0, MS), Closes::Between(0, 20 * MS)] {
        play("at once", Scene { closes, ..SCENE }, 1_000, |tally| {
            assert!(tally.posts_reused() < 0.001 && tally.reused() < 0.01);
            let reported =
                "closes connections after its responses without announcing it; none are kept";
            assert_eq!(tally.reported, [reported]);
        });
    }
}

#[test]
fn a_server_that_makes_room_by_closing_the_oldest_gets_fresh_connections() {
    for (rate, reused_max, lost_blindly_min) in [(10.0, 1.0, 0), (50.0, 0.1, 20)] {
        let (closes, traffic) = (Closes::Oldest(8), Traffic::Bursts(rate));
        play("oldest of 8", Scene { closes, traffic, ..SCENE }, lost_blindly_min, |tally| {
            assert!(tally.posts_reused() < reused_max);
        });
    }
}

#[test]
fn a_silent_limit_of_requests_loses_nothing() {
    let (closes, traffic, until) = (Closes::Worn(100), Traffic::Rate(300.0), 60 * S);
    play("100 requests", Scene { closes, traffic, until, ..SCENE }, 20, |_| {});
}

#[test]
fn a_restart_is_no_timeout() {
    let (restart_every, until) = (Some(701 * S), 3_000 * S);
    let scene = Scene { restart_every, until, ..SCENE };
    let check = |tally: &Tally| {
        assert!(tally.posts_reused() > 0.99);
        assert!(tally.reported.is_empty());
    };
    play("restarts without a sign", scene, 0, check);
    let scene = Scene { restart_every: Some(61 * S), refuses: true, ..scene };
    play("restarts that refuse", scene, 0, check);
    // Learned again after each: that is the server's timeout, not an effect of its restarts.
    play("of a 5 s server", Scene { closes: Closes::Between(5 * S, 5 * S), ..scene }, 0, |tally| {
        assert!(tally.posts_reused() > 0.9);
        assert!(
            tally
                .reported
                .iter()
                .all(|reported| reported.starts_with("closes idle connections at 5.0 s"))
        );
    });
}

#[test]
fn a_promise_serves_from_the_first_connection_on_until_it_is_broken() {
    let (closes, promise) = (Closes::Between(5 * S, 5 * S), Some(5 * S));
    let (traffic, until) = (Traffic::Rate(2.0), 3_000 * S);
    let scene = Scene { closes, traffic, promise, until, ..SCENE };
    play("5 s promised", scene, 0, |tally| {
        assert!(tally.posts_reused() > 0.95);
        assert_eq!(tally.reported.len(), 1);
    });
    let (closes, traffic) = (Closes::Between(2 * S, 2 * S), Traffic::Paced(1_500 * MS, 2_500 * MS));
    play("5 s promised, 2 s kept", Scene { closes, traffic, workers: 1, ..scene }, 5, |tally| {
        let last = tally.reported.last().map(String::as_str);
        assert_eq!(last, Some("closes idle connections at 2.0 s; pool kept to 1.6 s"));
    });
}

#[test]
fn a_changed_habit_is_noticed_without_a_restart() {
    let change = 300 * S;
    let (traffic, until) = (Traffic::Rate(5.0), 1_800 * S);
    let scene = |closes| Scene { closes, traffic, until, ..SCENE };
    // A request sent at the very moment of the first change can be lost: one in 60 seeds.
    play("5 s, then 2 s", scene(Closes::Until(5 * S, change, 2 * S)), 0, |tally| {
        let last = tally.reported.last().map(String::as_str);
        assert_eq!(last, Some("closes idle connections at 2.0 s; pool kept to 1.6 s"));
    });
    play("at once, then 90 s", scene(Closes::Until(200, change, 90 * S)), 5, |tally| {
        // None in the first sixth, and some minutes until it is trusted.
        assert!((0.5..0.84).contains(&tally.posts_reused()));
    });
    play("90 s, then at once", scene(Closes::Until(90 * S, change, 200)), 5, |tally| {
        assert!(tally.reused() < 0.2);
    });
}
