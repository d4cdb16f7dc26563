//! Reads, takes, renews and releases the Lease. [`crate::lease`] decides.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use os::clock::{now, wall};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::api::{self, Api, WRITE_MAX};
use crate::failure::{Cause, Failure};
use crate::lease::{Election, RETRY_EVERY, Record, Step};
use crate::text::micro_time;

/// After this many requests in a row without an answer, or with credentials that are not accepted, the API server counts
/// as absent.
const UNANSWERED_MAX: u32 = 3;
/// No longer wait that the server asks for is obeyed: a leader must renew the Lease in time.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(4);

/// What the manager sees of the election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) is_leading: bool,
    pub(crate) failure: Option<Failure>,
    /// Whether several requests in a row have shown that the API server cannot be used.
    pub(crate) is_absent: bool,
}

/// Takes part in the election.
pub(crate) struct Elector {
    api: Rc<Api>,
    namespace: Arc<str>,
    name: Arc<str>,
    election: RefCell<Election>,
}

impl Elector {
    pub(crate) fn new(
        api: Rc<Api>,
        namespace: Arc<str>,
        name: Arc<str>,
        identity: Arc<str>,
    ) -> Elector {
        Elector { api, namespace, name, election: RefCell::new(Election::new(identity)) }
    }

    /// Returns whether this instance may write now.
    pub(crate) fn is_leading(&self) -> bool {
        self.election.borrow().is_leading(now())
    }

    /// Takes part until the manager ends.
    pub(crate) async fn run(&self, state: watch::Sender<State>) {
        let mut unanswered: u32 = 0;
        loop {
            // An attempt takes at most as long as a write, so that a leader notices when its time is over.
            let failure = self.attempt().await.err();
            let is_late = failure.as_ref().is_some_and(|one| one.cause == Cause::Timeout);
            let is_unanswered = is_late || failure.as_ref().is_some_and(Failure::is_outage);
            unanswered = if is_unanswered { unanswered.saturating_add(1) } else { 0 };
            let asked = failure.as_ref().and_then(|failure| failure.retry_after);
            // Requests for the Lease are small: an API server that answers none of several is absent.
            let is_absent = unanswered >= UNANSWERED_MAX;
            if is_absent && is_late {
                self.api.absent();
            }
            let seen = State { is_leading: self.is_leading(), failure, is_absent };
            state.send_if_modified(|before| {
                let is_changed = *before != seen;
                *before = seen;
                is_changed
            });
            let wait = RETRY_EVERY.mul_f64(0.9 + fastrand::f64() / 5.0);
            sleep(wait.max(asked.unwrap_or_default().min(RETRY_AFTER_MAX))).await;
        }
    }

    async fn attempt(&self) -> Result<(), Failure> {
        let is_own = matches!(self.step(), Step::Replace(_)) && self.is_leading();
        if !is_own {
            let found = match self.api.json(api::get(&self.path(true))?, WRITE_MAX).await {
                Ok(lease) => Some(Record::read(&lease)),
                Err(failure) if failure.cause == Cause::NotFound => None,
                Err(failure) => return Err(failure),
            };
            self.election.borrow_mut().read(found, now());
        }
        match self.step() {
            Step::Read => Ok(()),
            Step::Create => self.write(Method::POST, None).await,
            Step::Replace(before) => self.write(Method::PUT, Some(before)).await,
        }
    }

    fn step(&self) -> Step {
        self.election.borrow().step(now())
    }

    async fn write(&self, method: Method, before: Option<Record>) -> Result<(), Failure> {
        let began = now();
        let time = micro_time(wall());
        let lease =
            self.election.borrow().lease(&self.name, &self.namespace, before.as_ref(), &time);
        match self.put(method, before.is_some(), &lease).await {
            Ok(lease) => {
                self.election.borrow_mut().written(Record::read(&lease), began);
                Ok(())
            }
            // Another instance was faster, or has deleted the Lease.
            Err(failure)
                if failure.cause == Cause::Conflict
                    || (failure.cause == Cause::NotFound && before.is_some()) =>
            {
                self.election.borrow_mut().conflicted();
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn put(&self, method: Method, has_name: bool, lease: &Value) -> Result<Value, Failure> {
        let request = api::with_json(method, &self.path(has_name), "application/json", lease)?;
        self.api.json(request, WRITE_MAX).await
    }

    fn path(&self, has_name: bool) -> String {
        let root = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        if has_name { format!("{root}/{}", self.name) } else { root }
    }

    /// Gives the Lease up, so that another instance can take it at once.
    pub(crate) async fn release(&self) {
        const RELEASE_MAX: Duration = Duration::from_secs(2);
        // Without an answer, the Lease ends by itself.
        let _ = timeout(RELEASE_MAX, self.try_release()).await;
    }

    async fn try_release(&self) -> Result<(), Failure> {
        let released = || {
            let time = micro_time(wall());
            self.election.borrow().released(&self.name, &self.namespace, &time)
        };
        let read = |lease: &Value| {
            self.election.borrow_mut().read(Some(Record::read(lease)), now());
        };
        let Some(lease) = released() else { return Ok(()) };
        let answer = match self.put(Method::PUT, true, &lease).await {
            // A renewal was under way.
            Err(failure) if failure.cause == Cause::Conflict => {
                read(&self.api.json(api::get(&self.path(true))?, WRITE_MAX).await?);
                let Some(lease) = released() else { return Ok(()) };
                self.put(Method::PUT, true, &lease).await
            }
            answer => answer,
        };
        // It is not released twice.
        answer.map(|lease| read(&lease))
    }
}
