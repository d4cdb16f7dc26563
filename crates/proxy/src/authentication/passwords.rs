//! Verifies passwords on threads of its own: their hashes are slow by design, and would hold up all
//! other requests of a worker.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use identity::{Credentials, SuccessCache, Users, Verdict};
use model::Moment;
use tokio::sync::oneshot;

/// Passwords that wait for a thread. With hashes of 100 ms (bcrypt at cost 10) and two threads the last
/// one waits for three seconds.
const WAITING_MAX: usize = 64;
/// At most this many threads: the rest of the machine is for requests.
const THREADS_MAX: usize = 4;

/// The threads that verify passwords, started when the first one comes, and the memory of successes.
pub(crate) struct Passwords {
    successes: Arc<SuccessCache>,
    jobs: OnceLock<Option<SyncSender<Job>>>,
}

/// Too many passwords wait, or no thread could be started.
#[derive(Debug)]
pub(crate) struct Refused;

struct Job {
    users: Arc<Users>,
    credentials: Credentials,
    verdict: oneshot::Sender<Verdict>,
}

impl Passwords {
    pub(super) fn new(successes: SuccessCache) -> Passwords {
        Passwords { successes: Arc::new(successes), jobs: OnceLock::new() }
    }

    /// Returns whether these credentials were verified just before.
    pub(crate) fn are_known(&self, users: &Users, credentials: &Credentials, now: Moment) -> bool {
        self.successes.lookup(&self.successes.ticket(users, credentials), now)
    }

    /// Starts to verify credentials. The receiver gets the verdict; dropping it before a thread has begun
    /// saves the work.
    ///
    /// # Errors
    /// Too many wait.
    pub(crate) fn verify(
        &self,
        users: &Arc<Users>,
        credentials: Credentials,
    ) -> Result<oneshot::Receiver<Verdict>, Refused> {
        let jobs = self.jobs.get_or_init(|| start(&self.successes)).as_ref().ok_or(Refused)?;
        let (verdict, receiver) = oneshot::channel();
        match jobs.try_send(Job { users: Arc::clone(users), credentials, verdict }) {
            Ok(()) => Ok(receiver),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Refused),
        }
    }
}

/// Starts the threads; they end when the sender is dropped.
fn start(successes: &Arc<SuccessCache>) -> Option<SyncSender<Job>> {
    let (sender, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut started = 0;
    for _ in 0..cores.div_ceil(2).min(THREADS_MAX) {
        let (receiver, successes) = (Arc::clone(&receiver), Arc::clone(successes));
        let thread = std::thread::Builder::new().name("passwords".to_owned());
        match thread.spawn(move || work(&receiver, &successes)) {
            Ok(_) => started += 1,
            Err(error) => tracing::error!(%error, "cannot start a thread to verify passwords"),
        }
    }
    (started > 0).then_some(sender)
}

fn work(jobs: &Mutex<Receiver<Job>>, successes: &SuccessCache) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { users, credentials, verdict }) = job else { return };
        if verdict.is_closed() {
            continue;
        }
        let ticket = successes.ticket(&users, &credentials);
        // A client that has just logged in often sends several requests at once.
        let answer = if successes.lookup(&ticket, os::clock::now()) {
            Verdict::Accepted
        } else {
            users.verify(credentials.user(), credentials.password())
        };
        if answer.is_accepted() {
            successes.insert(&ticket, os::clock::now());
        }
        // The client may have gone.
        let _ = verdict.send(answer);
    }
}
