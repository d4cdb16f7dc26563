//! Keeps one entry: registers it, reports the state with every heartbeat and when it changes, registers again when the
//! agent has lost it, and removes it in the end.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use discovery::consul::register::{self, Ask, CheckStatus, HEARTBEAT, Heard, Metadata, Owner};
use model::Moment;
use tokio::sync::watch;

use super::agent::Answered;
use super::bounded::{Ended, bounded, grace};
use super::losses::Losses;
use super::ownership::{Next, Ownership};
use super::state::{RegistrationState, Registrations};
use super::wanted::{Details, Wanted};
use crate::discover::Backoff;

/// Maximum time for the requests of one report; three in a row may be lost before the check expires.
const REPORT_MAX: Duration = Duration::from_secs(15);
/// An entry that is gone is removed within this; else Consul sets its check to critical, and removes it an hour later.
const REMOVE_MAX: Duration = Duration::from_mins(1);
/// How long an entry stays while those that replace it are being registered.
const REPLACED_MAX: Duration = Duration::from_secs(5);
/// How long a removal waits for the answer about whose entry it is.
const READ_MAX: Duration = Duration::from_millis(500);

/// The task of one entry.
pub(super) struct Kept {
    shown: Arc<Registrations>,
    metadata: Metadata,
    /// The last ones that were wanted.
    details: Rc<Details>,
    /// What the agent has, as far as is known.
    registered: Option<Rc<Details>>,
    /// Whether the agent has accepted an entry, for those that this entry replaces.
    is_registered: watch::Sender<bool>,
    /// The agent may have an entry, though it has not accepted it.
    is_sent: bool,
    /// The status that was wanted last.
    status: Option<CheckStatus>,
    check: Option<CheckStatus>,
    ownership: Ownership,
    losses: Losses,
    backoff: Backoff,
    registered_since: Option<Moment>,
    failing_since: Option<Moment>,
    error: Option<String>,
}

impl Kept {
    pub(super) fn new(
        details: Rc<Details>,
        metadata: Metadata,
        shown: Arc<Registrations>,
        is_registered: watch::Sender<bool>,
    ) -> Kept {
        Kept {
            shown,
            metadata,
            details,
            registered: None,
            is_registered,
            is_sent: false,
            status: None,
            check: None,
            ownership: Ownership::default(),
            losses: Losses::default(),
            backoff: Backoff::new(),
            registered_since: None,
            failing_since: None,
            error: None,
        }
    }

    /// Runs until the entry is removed, or another process keeps it.
    pub(super) async fn keep(mut self, mut wanted: watch::Receiver<Wanted>) {
        let mut gone_since: Option<Moment> = None;
        loop {
            let now_wanted = wanted.borrow_and_update().clone();
            let pause = match now_wanted {
                Wanted::Listed(details, status) => {
                    gone_since = None;
                    self.take(details, status);
                    self.list(status, &mut wanted).await
                }
                Wanted::Gone(replaced_by) => {
                    let since = *gone_since.get_or_insert_with(os::clock::now);
                    self.unlist(&replaced_by, since, &mut wanted).await
                }
                Wanted::HandedOver => return,
            };
            let Some(pause) = pause else {
                // It may be wanted again since the removal began.
                if wanted.has_changed().is_ok_and(|has_changed| has_changed) {
                    continue;
                }
                return;
            };
            tokio::select! {
                biased;
                changed = wanted.changed() => {
                    if changed.is_err() {
                        // The control loop has ended: nothing more is to be done.
                        return;
                    }
                    self.backoff.reset();
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn take(&mut self, details: Rc<Details>, status: CheckStatus) {
        let registered = self.registered.as_ref();
        if !registered.is_some_and(|registered| registered.is_registered_as(&details)) {
            (self.registered_since, self.check) = (None, None);
        }
        self.details = details;
        if self.status.replace(status) != Some(status) {
            // A report that this process stops must not hit the entry of another one.
            self.ownership.doubt();
        }
    }

    /// Reports once; returns how long to wait then.
    async fn list(
        &mut self,
        status: CheckStatus,
        wanted: &mut watch::Receiver<Wanted>,
    ) -> Option<Duration> {
        let reported = match bounded(self.report(status), REPORT_MAX, grace, wanted).await {
            Ended::Done(reported) => reported,
            Ended::Late => Err(format!("no answer in {} s", REPORT_MAX.as_secs())),
            Ended::Dropped => return Some(Duration::ZERO),
        };
        let is_taken = reported.is_ok();
        self.note(reported.err());
        if is_taken {
            self.backoff.reset();
        }
        Some(if is_taken { HEARTBEAT } else { self.backoff.next() })
    }

    /// Reports the state, and registers if the agent does not have the entry as it should be.
    async fn report(&mut self, status: CheckStatus) -> Result<(), String> {
        let details = Rc::clone(&self.details);
        let had = self.registered.clone();
        let is_there = had.as_ref().is_some_and(|had| had.is_registered_as(&details));
        if (is_there || self.ownership.is_lost()) && self.ownership.is_due(os::clock::now()) {
            match self.read(&details, status == CheckStatus::Passing).await? {
                Next::Report => {}
                Next::Register => self.registered = None,
                Next::Leave => {
                    (self.registered_since, self.check) = (None, None);
                    return self.as_owner();
                }
            }
        } else if self.ownership.is_lost() {
            return self.as_owner();
        }
        if is_there && self.registered.is_some() {
            match self.send(&details, &register::report(&details.entry, status)).await? {
                Heard::Done => {
                    self.check = Some(status);
                    return self.as_owner();
                }
                Heard::Unknown => self.on_lost(),
                Heard::Refused(why) => return Err(why),
            }
        }
        // A process that stops needs no entry, and must not replace another one's.
        if status == CheckStatus::Critical && self.registered.is_none() {
            return self.as_owner();
        }
        let Err(why) = self.register(status).await else { return self.as_owner() };
        // The agent may still have the earlier entry, whose check must not expire.
        if let Some(had) = had.filter(|_| self.registered.is_some())
            && self.send(&had, &register::report(&had.entry, status)).await == Ok(Heard::Unknown)
        {
            self.on_lost();
        }
        Err(why)
    }

    /// Fails while another process registers the same entry.
    fn as_owner(&self) -> Result<(), String> {
        self.ownership.conflict().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    async fn register(&mut self, status: CheckStatus) -> Result<(), String> {
        let details = Rc::clone(&self.details);
        let entry = &details.entry;
        self.is_sent = true;
        let ask = register::register(entry, status, &self.metadata);
        match self.send(&details, &ask).await? {
            Heard::Done => {}
            Heard::Refused(why) => return Err(why),
            Heard::Unknown => return Err("Consul answers 404 to a registration".to_owned()),
        }
        let now = os::clock::now();
        self.registered = Some(Rc::clone(&details));
        (self.registered_since, self.check) = (Some(now), Some(status));
        self.ownership.on_registered(now);
        // Those that wait for it may be gone.
        let _ = self.is_registered.send_replace(true);
        let (listener, id, service) = (&details.listener, &entry.id, &entry.service);
        if self.losses.are_many() {
            tracing::debug!(%listener, id, %service, "registered in Consul");
        } else {
            tracing::info!(%listener, id, %service, "registered in Consul");
        }
        Ok(())
    }

    /// Reads whose entry the agent has; returns what to do then.
    async fn read(&mut self, details: &Details, may_register: bool) -> Result<Next, String> {
        let entry = &details.entry;
        let Answered { heard, said } =
            details.agent.ask(&register::read(entry), &entry.service).await?;
        let now = os::clock::now();
        let owner = match heard {
            Heard::Done => register::owner(&said, &self.metadata),
            // The report will show that it is unknown.
            Heard::Unknown => Ok(Owner::Own),
            Heard::Refused(why) => Err(why),
        };
        match owner {
            Ok(owner) => Ok(self.ownership.on_read(owner, entry, may_register, now)),
            Err(error) => {
                tracing::debug!(id = entry.id, error, "cannot read an entry in Consul");
                self.ownership.on_unreadable(now);
                Ok(if self.ownership.is_lost() { Next::Leave } else { Next::Report })
            }
        }
    }

    async fn send(&self, details: &Details, ask: &Ask) -> Result<Heard, String> {
        Ok(details.agent.ask(ask, &details.entry.service).await?.heard)
    }

    /// Notes that the agent does not know the entry, though it had accepted it.
    fn on_lost(&mut self) {
        let now = os::clock::now();
        let id = &self.details.entry.id;
        if let Some(since) = self.registered_since.take()
            && self.losses.on_lost(since, now)
        {
            tracing::warn!(
                id,
                "the agent forgets the entry; is there a load balancer in between? `[consul]` needs the \
                 address of one agent"
            );
        }
        (self.registered, self.check) = (None, None);
    }

    /// Notes how a report ended, for status and log.
    fn note(&mut self, failed: Option<String>) {
        let listener = &self.details.listener;
        match &failed {
            Some(error) if self.failing_since.is_none() => {
                self.failing_since = Some(os::clock::now());
                tracing::warn!(
                    %listener, error,
                    "cannot keep the entry in Consul; requests are not affected, and Weir tries again"
                );
            }
            None if self.failing_since.take().is_some() => {
                tracing::info!(%listener, "Consul accepts check updates again");
            }
            _ => {}
        }
        self.error = failed;
        self.show();
    }

    fn show(&self) {
        let details = &self.details;
        let state = RegistrationState {
            listener: Arc::clone(&details.listener),
            entry: Arc::clone(&details.entry),
            check: self.check,
            registered_since: self.registered_since,
            failing_since: self.failing_since,
            error: self.error.clone(),
        };
        self.shown.update(details, state);
    }

    /// Removes the entry, or tries to; returns how long to wait then, or `None` at the end.
    async fn unlist(
        &mut self,
        replaced_by: &[watch::Receiver<bool>],
        since: Moment,
        wanted: &mut watch::Receiver<Wanted>,
    ) -> Option<Duration> {
        let waited = os::clock::now().since(since);
        let replaced = async {
            for one in replaced_by {
                // A task that has ended will not register.
                let _ = one.clone().wait_for(|is_registered| *is_registered).await;
            }
        };
        let left = REPLACED_MAX.saturating_sub(waited);
        if matches!(bounded(replaced, left, |_| Duration::ZERO, wanted).await, Ended::Dropped) {
            return Some(Duration::ZERO);
        }
        if !self.is_sent {
            return None;
        }
        // Were the request dropped, it could remove an entry that is registered again in the meantime.
        let removed = match bounded(self.remove(), REPORT_MAX, |_| REPORT_MAX, wanted).await {
            Ended::Done(removed) => removed,
            Ended::Late => Err(format!("no answer in {} s", REPORT_MAX.as_secs())),
            Ended::Dropped => return Some(Duration::ZERO),
        };
        let error = removed.err()?;
        if os::clock::now().since(since) >= REMOVE_MAX {
            let id = &self.details.entry.id;
            tracing::warn!(
                id,
                error,
                "could not deregister an entry; Consul removes it after an hour"
            );
            return None;
        }
        Some(self.backoff.next())
    }

    /// Removes the entry unless it is another process's.
    async fn remove(&mut self) -> Result<(), String> {
        let details = self.registered.as_ref().unwrap_or(&self.details);
        let details = Rc::clone(details);
        let id = &details.entry.id;
        let read = tokio::time::timeout(READ_MAX, self.read(&details, false)).await;
        if let Ok(Ok(Next::Leave)) = read {
            tracing::warn!(id, "another process has registered the entry in Consul; it stays");
            return Ok(());
        }
        // From here on the entry may be gone.
        self.registered = None;
        (self.registered_since, self.check) = (None, None);
        match self.send(&details, &register::deregister(&details.entry)).await? {
            Heard::Done | Heard::Unknown => tracing::info!(id, "deregistered in Consul"),
            Heard::Refused(why) => return Err(why),
        }
        self.is_sent = false;
        Ok(())
    }
}
