//! Key sets that are fetched from their issuer (`keys_url`), by one thread for all of them.
//!
//! A set that was fetched is used until another replaces it, however long that takes: an issuer that
//! cannot be reached does not end what its tokens allow.

mod fetch;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use identity::{KeySet, Refetch, RefetchRules};
use model::{HttpPeer, Moment};
use observe::exposition::KeySetGauges;
use rustls::ClientConfig;
use tokio::sync::{Notify, mpsc, watch};

pub(crate) use self::fetch::FETCH_MAX;
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
    source: HttpPeer,
    /// `None`: its URL is not https.
    tls: Option<Arc<ClientConfig>>,
    keys: ArcSwapOption<KeySet>,
    state: Mutex<State>,
    /// The fetch is due earlier, or none is wanted any more.
    rescheduled: Notify,
    /// The number of fetches that have ended.
    ended: watch::Sender<u64>,
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

/// What a request with an unknown key can hope for.
pub(crate) enum Asked {
    /// There are other keys now.
    Changed,
    /// The set is being fetched; resolves at the end.
    Fetching(watch::Receiver<u64>),
    /// One fetch was made shortly before, or has failed; the next is due later.
    Later,
}

impl KeySets {
    pub(super) fn new() -> KeySets {
        KeySets { thread: OnceLock::new() }
    }

    /// Starts to fetch a set. Until it has been fetched, `keys` are in use, if there are any. `None`: it
    /// cannot be fetched, which is logged.
    pub(super) fn follow(&self, source: &HttpPeer, keys: Option<Arc<KeySet>>) -> Option<Fetched> {
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
            keys: ArcSwapOption::new(keys),
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
        });
        let thread = self.thread.get_or_init(|| {
            start().map_err(|error| tracing::error!(%error, "no thread to fetch key sets")).ok()
        });
        // It ends only with the process, or by a panic.
        if let Err(error) = thread.as_ref()?.try_send(Arc::clone(&shared)) {
            tracing::error!(url = %source.url, %error, "the thread that fetches key sets does not take it");
            return None;
        }
        Some(Fetched(shared))
    }
}

impl Fetched {
    /// Returns what it is fetched from.
    pub(super) fn source(&self) -> &HttpPeer {
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

    /// Asks for a fetch, for a token that none of the keys in `seen` verifies.
    pub(crate) fn ask(&self, seen: Option<&Arc<KeySet>>, now: Moment) -> Asked {
        let mut state = self.0.state();
        // Fetches end under the lock, so none is missed.
        if self.keys().as_ref().map(Arc::as_ptr) != seen.map(Arc::as_ptr) {
            return Asked::Changed;
        }
        let before = state.refetch.due_at();
        state.refetch.unknown_key(now);
        let due_at = state.refetch.due_at();
        if due_at != before {
            self.0.rescheduled.notify_one();
        }
        if due_at.is_none_or(|at| at <= now) {
            Asked::Fetching(self.0.ended.subscribe())
        } else {
            Asked::Later
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
            self.log(&fetched);
            self.ended(fetched);
        }
    }

    fn log(&self, fetched: &Result<fetch::Contents, FetchError>) {
        let url = &self.source.url;
        match fetched {
            Ok(fetch::Contents { keys, bytes, .. }) if self.state().contents != *bytes => {
                tracing::info!(%url, keys = keys.len(), "a new key set");
                for skipped in keys.skipped() {
                    tracing::warn!(%url, "{skipped}");
                }
            }
            Ok(_) => {}
            Err(error) => {
                let consequence = if self.keys.load().is_some() {
                    "the keys fetched before stay in use"
                } else {
                    "requests that need it are answered with 503"
                };
                tracing::warn!(%url, %error, "a key set could not be fetched; {consequence}");
            }
        }
    }

    fn ended(&self, fetched: Result<fetch::Contents, FetchError>) {
        let mut state = self.state();
        let now = os::clock::now();
        if let Ok(fetch::Contents { keys, bytes, max_age }) = fetched {
            state.refetch.succeeded(now, max_age);
            state.fetched += 1;
            state.fetched_at = Some(os::clock::wall());
            if state.contents != bytes {
                state.contents = bytes;
                self.keys.store(Some(Arc::new(keys)));
            }
        } else {
            state.refetch.failed(now);
            state.failed += 1;
        }
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
