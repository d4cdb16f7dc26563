//! Key sets that are fetched from their issuer (`keys_url`), by one thread for all of them.
//!
//! A set that was fetched is used until another replaces it, however long that takes: an issuer that
//! cannot be reached does not end what its tokens allow.

mod fetch;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use identity::{KeySet, Refetch, RefetchRules};
use model::{IssuerKeys, Moment};
use observe::exposition::KeySetGauges;
use rustls::ClientConfig;
use tokio::sync::{Notify, mpsc, watch};

use self::fetch::{FetchError, fetch};

/// Key sets that the thread has not begun to fetch: it takes each at once.
const ADDED_MAX: usize = 1_024;

/// Starts the fetching of key sets. The thread is started with the first.
pub(crate) struct KeySets {
    /// `None`: the thread could not be started.
    thread: OnceLock<Option<mpsc::Sender<Arc<Shared>>>>,
}

/// A key set that is fetched again and again. Dropping it ends that.
pub(crate) struct Fetched(Arc<Shared>);

/// What requests and the thread share.
struct Shared {
    source: IssuerKeys,
    /// `None`: its URL is not https.
    tls: Option<Arc<ClientConfig>>,
    keys: ArcSwapOption<KeySet>,
    state: Mutex<State>,
    /// The fetch is due earlier, or none is wanted any more.
    rescheduled: Notify,
    /// The number of fetches that have ended.
    ended: watch::Sender<u64>,
    /// The first fetch has ended.
    first_ended: Condvar,
}

struct State {
    refetch: Refetch,
    fetched: u64,
    failed: u64,
    /// The last that succeeded, since 1970-01-01 UTC.
    fetched_at: Option<Duration>,
    /// Of the set in use, so that only a change is logged.
    contents: Vec<u8>,
    is_dropped: bool,
}

impl KeySets {
    pub(super) fn new() -> KeySets {
        KeySets { thread: OnceLock::new() }
    }

    /// Starts to fetch a set.
    pub(super) fn follow(&self, source: &IssuerKeys) -> Option<Fetched> {
        let tls = match fetch::tls(source) {
            Ok(tls) => tls,
            Err(mistake) => {
                tracing::error!(url = %source.url, %mistake, "its authorities were checked and cannot be used; please report this");
                return None;
            }
        };
        let refetch = Refetch::new(RefetchRules::default(), fastrand::u64(..));
        let shared = Arc::new(Shared {
            source: source.clone(),
            tls,
            keys: ArcSwapOption::empty(),
            state: Mutex::new(State {
                refetch,
                fetched: 0,
                failed: 0,
                fetched_at: None,
                contents: Vec::new(),
                is_dropped: false,
            }),
            rescheduled: Notify::new(),
            ended: watch::Sender::new(0),
            first_ended: Condvar::new(),
        });
        let thread = self.thread.get_or_init(|| {
            start().map_err(|error| tracing::error!(%error, "no thread to fetch key sets")).ok()
        });
        // It ends only with the process, or by a panic.
        if let Some(thread) = thread
            && let Err(error) = thread.try_send(Arc::clone(&shared))
        {
            tracing::error!(url = %source.url, %error, "the thread that fetches key sets does not take it");
        }
        Some(Fetched(shared))
    }
}

impl Fetched {
    /// Returns what it is fetched from.
    pub(super) fn source(&self) -> &IssuerKeys {
        &self.0.source
    }

    /// Returns the set fetched last; `None`: none has been.
    pub(crate) fn keys(&self) -> Option<Arc<KeySet>> {
        self.0.keys.load_full()
    }

    /// Returns how it is fetched.
    pub(super) fn gauges(&self, authentication: &str) -> KeySetGauges {
        let keys = self.0.keys.load().as_ref().map_or(0, |keys| keys.len() as u64);
        let State { fetched, failed, fetched_at, .. } = *self.0.state();
        KeySetGauges {
            authentication: authentication.to_owned(),
            keys,
            fetched,
            failed,
            fetched_at,
        }
    }

    /// Asks for a fetch, for a token that no key of the set last seen verifies. Returns what resolves
    /// when it has ended; `None`: there is none now, since one was made shortly before, or failed.
    pub(crate) fn ask(&self, now: Moment) -> Option<watch::Receiver<u64>> {
        // Before the state is looked at, so that no end is missed.
        let ended = self.0.ended.subscribe();
        let mut state = self.0.state();
        state.refetch.unknown_key(now);
        let due_at = state.refetch.due_at();
        drop(state);
        match due_at {
            None => Some(ended),
            Some(at) if at <= now => {
                self.0.rescheduled.notify_one();
                Some(ended)
            }
            Some(_) => None,
        }
    }

    /// Blocks until the first fetch has ended, or until `deadline`.
    pub(super) fn wait_for_first(&self, deadline: Moment) {
        let mut state = self.0.state();
        while state.fetched + state.failed == 0 {
            let left = deadline.since(os::clock::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.first_ended.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Fetched {
    fn drop(&mut self) {
        self.0.state().is_dropped = true;
        self.0.rescheduled.notify_one();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches the set whenever it is due, until it is dropped.
    async fn follow(self: Arc<Shared>) {
        loop {
            let due_at = {
                let state = self.state();
                if state.is_dropped {
                    return;
                }
                state.refetch.due_at().unwrap_or_default()
            };
            let wait = due_at.since(os::clock::now());
            if !wait.is_zero() {
                let _ = tokio::time::timeout(wait, self.rescheduled.notified()).await;
                continue;
            }
            self.state().refetch.started(os::clock::now());
            let fetched = fetch(&self.source, self.tls.as_ref()).await;
            self.ended(fetched);
        }
    }

    fn ended(&self, fetched: Result<fetch::Contents, FetchError>) {
        let url = &self.source.url;
        let mut state = self.state();
        let now = os::clock::now();
        match fetched {
            Ok(fetch::Contents { keys, bytes, max_age }) => {
                state.refetch.succeeded(now, max_age);
                state.fetched += 1;
                state.fetched_at = Some(os::clock::wall());
                if state.contents != bytes {
                    let count = keys.len();
                    tracing::info!(%url, keys = count, "a new key set");
                    for skipped in keys.skipped() {
                        tracing::warn!(%url, "{skipped}");
                    }
                    state.contents = bytes;
                    self.keys.store(Some(Arc::new(keys)));
                }
            }
            Err(error) => {
                state.refetch.failed(now);
                state.failed += 1;
                let again = state.refetch.due_at().unwrap_or_default().since(now);
                let consequence = if self.keys.load().is_some() {
                    "the keys fetched before stay in use"
                } else {
                    "requests that need it are answered with 503"
                };
                tracing::warn!(
                    %url,
                    %error,
                    again_in_s = again.as_secs(),
                    "a key set could not be fetched; {consequence}"
                );
            }
        }
        self.first_ended.notify_all();
        drop(state);
        self.ended.send_modify(|ended| *ended += 1);
    }
}

/// Starts the thread.
fn start() -> std::io::Result<mpsc::Sender<Arc<Shared>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, mut added) = mpsc::channel::<Arc<Shared>>(ADDED_MAX);
    let work = move || {
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, async {
            while let Some(shared) = added.recv().await {
                tokio::task::spawn_local(shared.follow());
            }
        });
        // A lookup in progress cannot be interrupted; it ends by itself.
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name("key-sets".to_owned()).spawn(work)?;
    Ok(sender)
}
