//! Verifies passwords on threads of its own: their hashes are slow by design, and would hold up all
//! other requests of a worker.
//!
//! Requests with the same credentials share one verification: all that arrive before it ends get its
//! verdict. A success is remembered for a minute; if it is used in the last quarter of it, the
//! password is verified again before it is forgotten, so that a busy user does not wait once a
//! minute. Such renewals have a queue of their own, so that guesses shut out no user who is at work.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use identity::users::VERIFICATIONS_MAX;
use identity::{Credentials, Lookup, SuccessCache, Ticket, Users, Verdict};
use model::Moment;
use tokio::sync::oneshot;

use super::queue::{Full, JOBS_MAX, Place, Queue};

#[cfg(test)]
pub(super) mod tests;

/// The most requests that wait for one verification. There are at most as many verifications as
/// places in the queue and threads, so that at most 70,000 requests wait, with some 100 bytes each.
const WAITERS_MAX: usize = 1_024;

/// Verifies a password; replaced in tests.
type Verify = fn(&Users, &Credentials) -> Verdict;

/// The threads that verify passwords, started when the first one comes, and the memory of successes.
pub(crate) struct Passwords {
    pool: Arc<Pool>,
    /// Whether a thread could be started.
    started: OnceLock<bool>,
    threads: usize,
}

/// Why a password is not verified, for the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) &'static str);

/// The state of credentials.
#[derive(Debug)]
pub(crate) enum Checked {
    /// They were verified in the last minute.
    Known,
    /// They are being verified.
    Waiting(Waiting),
}

/// Receives the verdict, or that the job gave way to one of another client. Dropping it before a
/// thread has begun saves the work. It fails if the verification ended without a verdict.
pub(crate) type Waiting = oneshot::Receiver<Result<Verdict, Refused>>;

/// What the threads share.
struct Pool {
    successes: SuccessCache,
    verify: Verify,
    state: Mutex<State>,
    /// A job was added, or the threads are to end.
    changed: Condvar,
}

struct State {
    queue: Queue<Job>,
    /// Passwords that were right a minute ago; at most [`JOBS_MAX`].
    renewals: VecDeque<Job>,
    /// The next job is one of `renewals`, if there is one.
    is_turn_of_renewals: bool,
    /// Every verification that waits or runs.
    pending: HashMap<Ticket, Pending>,
    is_closed: bool,
}

struct Job {
    ticket: Ticket,
    users: Arc<Users>,
    credentials: Credentials,
}

/// Who waits for a verification.
#[derive(Default)]
struct Pending {
    waiters: Vec<oneshot::Sender<Result<Verdict, Refused>>>,
    /// It renews a success, which is still remembered: it is of use without waiters, too.
    renews: bool,
}

impl Passwords {
    pub(super) fn new(successes: SuccessCache) -> Passwords {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        // The rest of the machine is for requests.
        let threads = cores.div_ceil(2).min(VERIFICATIONS_MAX);
        Passwords::with(successes, threads, |users, credentials| {
            #[cfg(test)]
            tests::hold(credentials.user());
            users.verify(credentials.user(), credentials.password())
        })
    }

    fn with(successes: SuccessCache, threads: usize, verify: Verify) -> Passwords {
        let state = State {
            queue: Queue::new(),
            renewals: VecDeque::new(),
            is_turn_of_renewals: true,
            pending: HashMap::new(),
            is_closed: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let pool = Arc::new(Pool { successes, verify, state, changed });
        Passwords { pool, started: OnceLock::new(), threads }
    }

    /// Returns at once whether credentials were just verified; otherwise starts to verify them, in
    /// the turn of `place`.
    ///
    /// # Errors
    /// Too many wait.
    pub(crate) fn check(
        &self,
        users: &Arc<Users>,
        credentials: Credentials,
        place: Place,
        now: Moment,
    ) -> Result<Checked, Refused> {
        let ticket = self.pool.successes.ticket(users, &credentials);
        let renews = match self.pool.successes.consult(&ticket, now) {
            Lookup::Known => return Ok(Checked::Known),
            Lookup::EndsSoon => true,
            Lookup::Unknown => false,
        };
        let job = Job { ticket, users: Arc::clone(users), credentials };
        if renews {
            // Without a place, the password is verified when its success has ended.
            if self.start().is_ok() {
                self.pool.renew(job);
            }
            return Ok(Checked::Known);
        }
        self.start()?;
        self.pool.wait(place, job).map(Checked::Waiting)
    }

    /// Starts the threads if they have not been started yet.
    fn start(&self) -> Result<(), Refused> {
        let has_threads = *self.started.get_or_init(|| {
            let started = (0..self.threads).filter(|_| {
                let pool = Arc::clone(&self.pool);
                let thread = std::thread::Builder::new().name("passwords".to_owned());
                let started = thread.spawn(move || pool.work());
                if let Err(error) = &started {
                    tracing::error!(%error, "cannot start a thread to verify passwords");
                }
                started.is_ok()
            });
            started.count() > 0
        });
        if has_threads { Ok(()) } else { Err(Refused("no thread can verify passwords")) }
    }
}

impl Drop for Passwords {
    fn drop(&mut self) {
        self.pool.lock().is_closed = true;
        self.pool.changed.notify_all();
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked; if it did, each step leaves the state usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the verification of these credentials, which is added unless there is one.
    fn wait(&self, place: Place, job: Job) -> Result<Waiting, Refused> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if let Some(Pending { waiters, .. }) = state.pending.get_mut(&job.ticket) {
            if waiters.len() >= WAITERS_MAX {
                waiters.retain(|waiter| !waiter.is_closed());
            }
            if waiters.len() >= WAITERS_MAX {
                return Err(Refused("too many requests wait for this password"));
            }
            waiters.push(sender);
            return Ok(receiver);
        }
        self.add(state, place, job, Pending { waiters: vec![sender], renews: false })?;
        Ok(receiver)
    }

    /// Verifies known credentials again, if that is not under way and not too many wait.
    fn renew(&self, job: Job) {
        let mut state = self.lock();
        if state.renewals.len() >= JOBS_MAX || state.pending.contains_key(&job.ticket) {
            return;
        }
        state.pending.insert(job.ticket, Pending { waiters: Vec::new(), renews: true });
        state.renewals.push_back(job);
        drop(state);
        self.changed.notify_one();
    }

    fn add(
        &self,
        mut state: MutexGuard<'_, State>,
        place: Place,
        job: Job,
        pending: Pending,
    ) -> Result<(), Refused> {
        if state.queue.is_full_for(place.client) {
            state.forget_unwanted();
        }
        let ticket = job.ticket;
        let displaced = state.queue.push(place, job).map_err(|full| {
            Refused(match full {
                Full::Client => "too many passwords of this client wait",
                Full::Queue => "too many passwords wait",
            })
        })?;
        let displaced = displaced.and_then(|job| state.pending.remove(&job.ticket));
        state.pending.insert(ticket, pending);
        drop(state);
        self.changed.notify_one();
        for waiter in displaced.into_iter().flat_map(|pending| pending.waiters) {
            let _ = waiter.send(Err(Refused("gave way to the password of another client")));
        }
        Ok(())
    }

    /// Verifies passwords until the threads are to end.
    fn work(&self) {
        while let Some((job, renews)) = self.next() {
            let Job { ticket, users, credentials } = job;
            let is_known = || self.successes.lookup(&ticket, os::clock::now());
            let verdict = if !renews && is_known() {
                // The verification before this one ended just after the request had looked.
                Ok(Verdict::Accepted)
            } else {
                catch_unwind(AssertUnwindSafe(|| (self.verify)(&users, &credentials)))
            };
            if verdict.as_ref().is_ok_and(|verdict| verdict.is_accepted()) {
                // Before the waiters are taken: from then on, requests find the success.
                self.successes.insert(&ticket, os::clock::now());
            }
            let pending = self.lock().pending.remove(&ticket);
            let waiters = pending.into_iter().flat_map(|pending| pending.waiters);
            let Ok(verdict) = verdict else {
                // This drops the waiters, which tells them.
                tracing::error!(
                    waiting = waiters.count(),
                    "the verification of a password panicked; its requests are refused; please report this"
                );
                continue;
            };
            for waiter in waiters {
                // The client may have gone.
                let _ = waiter.send(Ok(verdict));
            }
        }
    }

    /// Waits for the next job that is still wanted, and whether it renews a success. `None`: the
    /// threads are to end.
    fn next(&self) -> Option<(Job, bool)> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            match state.take() {
                Some(job) => match state.pending.get(&job.ticket) {
                    Some(pending) if pending.is_wanted() => return Some((job, pending.renews)),
                    _ => drop(state.pending.remove(&job.ticket)),
                },
                None => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl State {
    /// Takes the next job: one from the queue and one renewal in turn.
    fn take(&mut self) -> Option<Job> {
        let State { queue, renewals, is_turn_of_renewals, .. } = self;
        let job = if *is_turn_of_renewals {
            renewals.pop_front().or_else(|| queue.take())
        } else {
            queue.take().or_else(|| renewals.pop_front())
        };
        *is_turn_of_renewals = !*is_turn_of_renewals;
        job
    }

    /// Removes waiting jobs whose clients have all gone.
    fn forget_unwanted(&mut self) {
        let pending = &mut self.pending;
        self.queue.retain(|job| {
            let is_wanted = pending.get(&job.ticket).is_some_and(Pending::is_wanted);
            if !is_wanted {
                pending.remove(&job.ticket);
            }
            is_wanted
        });
    }
}

impl Pending {
    fn is_wanted(&self) -> bool {
        self.renews || self.waiters.iter().any(|waiter| !waiter.is_closed())
    }
}
