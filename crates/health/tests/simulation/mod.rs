//! Simulation of clients against servers, as passive health checking sees them: a hostile client
//! controls the requests, their timing, and the order in which outcomes become known. Outside a
//! trial it even chooses the server, as a client can that counts turns or keeps servers busy.

use std::time::Duration;

use health::attempt::Attempt;
use health::blame::{Blame, Ended, Outcome, Sent, WaitingFor, judge};
use health::outlier::on_outcome;
use model::{Cause, Moment, PassiveHealth, ServerState, Trial};
use std::sync::atomic::Ordering::Relaxed;

const POLICY: PassiveHealth = PassiveHealth {
    failures: 5,
    count_5xx: true,
    eject: Duration::from_secs(10),
    eject_max: Duration::from_secs(300),
    share_max: 0.5,
};

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client's request; on a working server the outcome depends on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// Answered well.
    Good,
    /// Answered 500 by every server.
    Error,
    /// Every server closes without a response; not retried.
    Crash,
    /// The same, and idempotent: retried on a second server.
    CrashIdempotent,
    /// A method that no server implements.
    Method,
    /// A body that never ends: the server closes after a while.
    SlowBody,
    /// The client's own deadline passes.
    Deadline,
    /// The client leaves.
    Leaves,
}

const REQUESTS: [Request; 8] = [
    Request::Good,
    Request::Error,
    Request::Crash,
    Request::CrashIdempotent,
    Request::Method,
    Request::SlowBody,
    Request::Deadline,
    Request::Leaves,
];

/// An attempt whose outcome is not known yet.
struct Open {
    server: usize,
    request: Request,
    /// An affinity cookie chose the server.
    bound: bool,
    drawn: bool,
    chosen_at: Moment,
}

pub(crate) struct World {
    servers: Vec<ServerState>,
    trial: Trial,
    open: Vec<Open>,
    now: Moment,
    rng: fastrand::Rng,
    /// This server fails every request.
    broken: Option<usize>,
}

impl World {
    fn new(mut rng: fastrand::Rng, broken: bool) -> World {
        let count = rng.usize(2..=6);
        World {
            servers: (0..count).map(|_| ServerState::default()).collect(),
            trial: Trial::default(),
            open: Vec::new(),
            now: Moment::from_millis(1_000),
            broken: broken.then(|| rng.usize(..count)),
            rng,
        }
    }

    fn begin(&mut self, request: Request, wanted: usize, bound: bool) {
        let drawn = self.trial.is_on(self.now) && !bound;
        let server = if drawn { self.rng.usize(..self.servers.len()) } else { wanted };
        self.servers[server].requests.fetch_add(1, Relaxed);
        self.open.push(Open { server, request, bound, drawn, chosen_at: self.now });
    }

    /// Makes the outcome of an open attempt known.
    fn finish(&mut self, index: usize) {
        let Open { server, request, bound, drawn, chosen_at } = self.open.swap_remove(index);
        let blame = self.blame(server, request);
        // A request that fails on two servers counts against neither.
        if request == Request::CrashIdempotent && blame == Blame::Compared {
            let second = (server + 1) % self.servers.len();
            self.servers[second].requests.fetch_add(1, Relaxed);
            let again = self.blame(second, request);
            let first = if again == Blame::Compared { Blame::None } else { blame };
            self.note(server, first, drawn, chosen_at);
            let again = if again == Blame::Compared { Blame::None } else { again };
            return self.note(second, again, false, self.now);
        }
        let blame = if bound && blame == Blame::Compared { Blame::None } else { blame };
        self.note(server, blame, drawn, chosen_at);
    }

    fn blame(&self, server: usize, request: Request) -> Blame {
        let (outcome, waiting_for, sent) = match request {
            Request::Good if self.broken == Some(server) => {
                (Outcome::Answered(500), WaitingFor::Server, Sent::Whole)
            }
            Request::Good => (Outcome::Answered(200), WaitingFor::Server, Sent::Whole),
            Request::Error => (Outcome::Answered(500), WaitingFor::Server, Sent::Whole),
            Request::Method => (Outcome::Answered(501), WaitingFor::Server, Sent::Whole),
            Request::Crash | Request::CrashIdempotent => {
                (Outcome::Failed(Cause::ConnectionTerminated), WaitingFor::Server, Sent::Whole)
            }
            Request::SlowBody => {
                (Outcome::Failed(Cause::ConnectionTerminated), WaitingFor::Client, Sent::Part)
            }
            Request::Deadline => {
                (Outcome::Failed(Cause::ClientDeadlineExceeded), WaitingFor::Server, Sent::Whole)
            }
            Request::Leaves => {
                (Outcome::Failed(Cause::ClientClosed), WaitingFor::Server, Sent::Whole)
            }
        };
        judge(
            Ended { outcome, waiting_for, sent, shared: false, among_others: false, judged: false },
            true,
        )
    }

    fn note(&mut self, server: usize, blame: Blame, drawn: bool, chosen_at: Moment) {
        let attempt = Attempt {
            state: &self.servers[server],
            trial: &self.trial,
            blame,
            drawn,
            chosen_at,
            now: self.now,
            response_timeout: RESPONSE_TIMEOUT,
        };
        on_outcome(&attempt, &POLICY, || self.servers.iter());
    }

    fn ejected(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.ejected_until().is_some())
    }
}

/// Runs one sequence of a hostile client's actions against working servers; fails if one of them is
/// ejected.
pub(crate) fn attack(seed: u64) {
    let mut world = World::new(fastrand::Rng::with_seed(seed), false);
    // Sequences follow a plan, so that they differ in kind and not only in order.
    let target = world.rng.usize(..world.servers.len());
    let kinds: Vec<Request> =
        (0..world.rng.usize(1..=3)).filter_map(|_| world.rng.choice(REQUESTS)).collect();
    let (steers, hoards) = (world.rng.u32(0..=100), world.rng.u32(0..=100));
    let binds = world.rng.u32(0..=100).saturating_sub(50);
    for _ in 0..world.rng.usize(20..200) {
        world.now = world.now + Duration::from_micros(world.rng.u64(..200_000));
        let request = world.rng.choice(&kinds).copied().unwrap_or(Request::Good);
        let bad = !matches!(request, Request::Good);
        let elsewhere = (target + 1) % world.servers.len();
        let steered = world.rng.u32(..100) < steers;
        // The target gets failing requests, the others succeeding ones.
        let wanted = match (steered, bad) {
            (true, true) => target,
            (true, false) => elsewhere,
            (false, _) => world.rng.usize(..world.servers.len()),
        };
        let bound = world.rng.u32(..100) < binds;
        world.begin(request, wanted, bound);
        // Outcomes that make the target look bad become known first.
        let looks_bad = |open: &Open| (open.server == target) == (open.request != Request::Good);
        let finish = if world.rng.u32(..100) < hoards {
            world.open.iter().position(looks_bad)
        } else {
            Some(world.rng.usize(..world.open.len()))
        };
        if let Some(index) = finish {
            world.finish(index);
        }
        assert_eq!(world.ejected(), None, "seed {seed}: a server that works was ejected");
    }
}

/// Returns how many requests, all of them good, it takes until a broken server is ejected; `None`:
/// more than 10,000.
pub(crate) fn requests_until_ejected(seed: u64) -> Option<usize> {
    let mut world = World::new(fastrand::Rng::with_seed(seed), true);
    for n in 0..10_000 {
        world.now = world.now + Duration::from_millis(10);
        world.begin(Request::Good, n % world.servers.len(), false);
        world.finish(0);
        if let Some(ejected) = world.ejected() {
            assert_eq!(Some(ejected), world.broken, "seed {seed}");
            return Some(n);
        }
    }
    None
}
