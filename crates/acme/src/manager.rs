//! The loop: asks the schedule what is due, does it, and reports what came of it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use instant_acme::CertificateIdentifier;
use model::{Acme, CertificateId, CertificateOwner};
use tls::rustls::pki_types::CertificateDer;
use tls::rustls::pki_types::pem::PemObject;
use tls::{Challenges, Facts, Issued, SharedCertificates, certificate_id};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::event::{Event, Failure, Source, Status, Update};
use crate::failure::{Failed, Kind};
use crate::http::Http;
use crate::order::{Answers, Job};
use crate::schedule::{Lifetime, Next, Schedule, Window};
use crate::store::{Lock, State, StateError, Stored};
use crate::{Events, account};

/// Maximum time of an attempt. Polling for validation and issuance takes most of it.
const ATTEMPT_MAX: Duration = Duration::from_secs(600);
/// Maximum time to ask about a renewal.
const ASK_MAX: Duration = Duration::from_secs(60);
/// The clock is looked at this often, since it may jump.
const SLEEP_MAX_S: i64 = 60;
/// How often an attempt goes on after the authority refused a nonce. Each time `instant-acme` has
/// tried three nonces.
const BAD_NONCES_MAX: usize = 12;
/// How long other members of the fleet order in place of this one after a failure of its own: of its network, its account
/// or its state directory.
const UNABLE_FOR: Duration = Duration::from_hours(1);
/// After so many failures in a row (about 15 minutes) another member may try: it has another account.
const REFUSALS_MAX: u32 = 3;
/// For so long: each of the members may fail as often.
const REFUSED_FOR: Duration = Duration::from_hours(24);
/// A certificate of another member that becomes valid later than this is not used: it could not be replaced by one that
/// is valid now.
const NOT_YET_VALID_MAX_S: i64 = 24 * 3600;

/// The manager's loop and what it works with.
pub(crate) struct Manager {
    pub(crate) settings: Arc<Acme>,
    pub(crate) state: State,
    pub(crate) challenges: Arc<Challenges>,
    /// The certificates of the fleet.
    pub(crate) shared: Arc<SharedCertificates>,
    pub(crate) http: Http,
    pub(crate) events: Events,
    pub(crate) status: Arc<Mutex<Vec<Status>>>,
    schedule: Schedule,
    /// The certificates in use.
    current: Vec<Option<Stored>>,
    /// The answers to the challenges of each certificate's order under way.
    answers: Vec<Answers>,
}

/// The end of an attempt.
enum Done {
    Issued,
    /// Another process orders certificates now.
    Held,
    /// Another process has stored a certificate.
    Found(Box<Stored>),
}

impl Manager {
    pub(crate) fn new(
        settings: Arc<Acme>,
        state: State,
        (challenges, shared): (Arc<Challenges>, Arc<SharedCertificates>),
        http: Http,
        events: Events,
    ) -> Manager {
        let count = settings.certificates.len();
        let schedule = Schedule::new(settings.renewal, count);
        let status = Arc::default();
        let current = vec![None; count];
        let answers = std::iter::repeat_with(Answers::default).take(count).collect();
        Manager {
            settings,
            state,
            challenges,
            shared,
            http,
            events,
            status,
            schedule,
            current,
            answers,
        }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        for index in 0..self.current.len() {
            match self.state.certificate(self.names(index)) {
                Ok(Some(stored)) => self.use_certificate(index, stored, Source::Stored),
                Ok(None) => {}
                Err(error) => (self.events)(Event::Ignored(error.to_string())),
            }
        }
        self.publish(None);
        self.publish_to_fleet();
        let fleet_changed = Arc::new(Notify::new());
        let waker = Arc::clone(&fleet_changed);
        self.shared.set_acme_waker(move || waker.notify_one());
        loop {
            self.use_received();
            let now_s = now_s();
            match self.schedule.next(now_s) {
                Next::Wait { until_s } => {
                    self.shared.set_ordering(false);
                    let wait_s = until_s.saturating_sub(now_s).clamp(1, SLEEP_MAX_S);
                    let sleep = tokio::time::sleep(Duration::from_secs(wait_s.cast_unsigned()));
                    tokio::select! {
                        () = sleep => {}
                        () = fleet_changed.notified() => self.schedule.release_held(),
                    }
                }
                Next::Order(index) if self.may_order(index, now_s) => {
                    self.shared.set_ordering(true);
                    self.order(index).await;
                }
                Next::Order(index) => self.schedule.held_by_another(index, now_s),
                Next::AskRenewalInfo(index) => self.ask(index).await,
            }
        }
    }

    /// Returns whether this process orders the certificate now: in a fleet another one may. One that is long overdue is
    /// ordered in any case: the clock of the member that should have ordered it may be wrong.
    fn may_order(&self, index: usize, now_s: i64) -> bool {
        self.shared.owner(&self.id(index)) == CertificateOwner::Own
            || self.schedule.is_overdue(index, now_s)
    }

    async fn order(&mut self, index: usize) {
        let mut ignored = Vec::new();
        let mut answers = self.answers.get_mut(index).map(std::mem::take).unwrap_or_default();
        let attempt = timeout(ATTEMPT_MAX, self.attempt(index, &mut answers, &mut ignored)).await;
        if let Some(kept) = self.answers.get_mut(index) {
            *kept = answers;
        }
        for line in ignored {
            (self.events)(Event::Ignored(line));
        }
        let took_too_long =
            || Failed::new(Kind::Slow, "the attempt took too long; the order goes on");
        match attempt.unwrap_or_else(|_| Err(took_too_long())) {
            Ok(Done::Held) => self.schedule.held_by_another(index, now_s()),
            Ok(Done::Found(stored)) => {
                self.use_certificate(index, *stored, Source::AnotherProcess);
            }
            Ok(Done::Issued) => match self.state.certificate(self.names(index)) {
                Ok(Some(stored)) => {
                    self.schedule.authority_works();
                    self.shared.set_unable(None);
                    self.use_certificate(index, stored, Source::Issued);
                }
                Ok(None) => {
                    self.failed(index, &Failed::new(Kind::Local, "the certificate's file is gone"));
                }
                Err(error) => self.failed(index, &error.into()),
            },
            Err(failed) => self.failed(index, &failed),
        }
        self.publish_to_fleet();
    }

    /// Makes one attempt: it continues the order under way, if there is one.
    async fn attempt(
        &self,
        index: usize,
        answers: &mut Answers,
        ignored: &mut Vec<String>,
    ) -> Result<Done, Failed> {
        let Some(lock) = self.state.lock()? else {
            return Ok(Done::Held);
        };
        // Damaged: it was reported at the start, and is replaced.
        if let Ok(Some(stored)) = self.state.certificate(self.names(index))
            && self.is_newer(index, &stored)
        {
            answers.clear();
            return Ok(Done::Found(Box::new(stored)));
        }
        let mut bad_nonces = 0;
        loop {
            match self.obtain(index, &lock, answers, ignored).await {
                Ok(()) => return Ok(Done::Issued),
                Err(failed) if failed.kind == Kind::BadNonce && bad_nonces < BAD_NONCES_MAX => {
                    bad_nonces += 1;
                }
                Err(failed) => {
                    if failed.kind == Kind::AccountUnknown {
                        self.state.set_account_aside(&lock)?;
                        self.state.forget_order(&lock, self.names(index));
                        answers.clear();
                    }
                    let retry_after_s = self.http.retry_after_s();
                    return Err(Failed { retry_after_s, ..failed });
                }
            }
        }
    }

    async fn obtain(
        &self,
        index: usize,
        lock: &Lock,
        answers: &mut Answers,
        ignored: &mut Vec<String>,
    ) -> Result<(), Failed> {
        let account = account::open(&self.settings, &self.state, lock, &self.http, ignored).await?;
        let replaces = match &self.current.get(index) {
            Some(Some(current)) if self.settings.renewal.ari => identify(current),
            _ => None,
        };
        let job = Job {
            settings: &self.settings,
            names: self.names(index),
            state: &self.state,
            lock,
            challenges: &self.challenges,
            shared: &self.shared,
            replaces: replaces.as_ref(),
        };
        job.run(&account, answers).await
    }

    /// Asks the authority when to renew. A failure is not reported: the lifetime decides then.
    async fn ask(&mut self, index: usize) {
        let asked = timeout(ASK_MAX, self.renewal_info(index)).await;
        let told = match asked {
            Ok(Ok(told)) => told,
            Ok(Err(failed)) => {
                tracing::debug!(error = %failed, "the authority did not say when to renew");
                None
            }
            Err(_) => None,
        };
        match told {
            Some((window, after_s)) => self.schedule.told(index, window, after_s, now_s()),
            None => self.schedule.not_told(index, now_s()),
        }
        self.publish(None);
    }

    async fn renewal_info(&self, index: usize) -> Result<Option<(Window, i64)>, Failed> {
        let Some(identifier) = self.current.get(index).and_then(Option::as_ref).and_then(identify)
        else {
            return Ok(None);
        };
        let Some(account) = account::known(&self.state, &self.http).await? else {
            return Ok(None);
        };
        let told = account.renewal_info(&identifier).await;
        let (info, after) = told.map_err(|error| Failed::of("no renewal information", &error))?;
        let window = &info.suggested_window;
        let (start_s, end_s) = (window.start.unix_timestamp(), window.end.unix_timestamp());
        let after_s = i64::try_from(after.as_secs()).unwrap_or(i64::MAX);
        Ok(Some((Window { start_s, end_s }, after_s)))
    }

    /// Publishes the configured certificates to the fleet, with the valid ones that this process has.
    fn publish_to_fleet(&self) {
        let now_s = now_s();
        let valid = |stored: &&Stored| stored.facts.not_after > now_s;
        let wanted =
            self.current.iter().enumerate().map(|(index, current)| {
                (self.id(index), current.as_ref().filter(valid).map(issued))
            });
        self.shared.set_wanted(wanted.collect());
    }

    /// Uses the certificates that were received from other members of the fleet.
    fn use_received(&mut self) {
        let mut is_changed = false;
        for index in 0..self.current.len() {
            let Some(pem) = self.shared.take_received(&self.id(index)) else { continue };
            is_changed = true;
            if let Err(why) = self.use_if_newer(index, &pem) {
                let names = self.names(index).to_vec();
                (self.events)(Event::NotUsed { names, why });
            }
        }
        if is_changed {
            self.publish_to_fleet();
        }
    }

    /// Uses another member's certificate if it is newer than the one in use. Returns what is wrong with it.
    fn use_if_newer(&mut self, index: usize, pem: &Arc<[u8]>) -> Result<(), String> {
        let now_s = now_s();
        let received = self.state.received(self.names(index), pem, now_s)?;
        let facts = &received.facts;
        if facts.not_after <= now_s || facts.not_before > now_s.saturating_add(NOT_YET_VALID_MAX_S)
        {
            return Err("it is not valid at this time; check this machine's clock".to_owned());
        }
        if !self.is_newer(index, &received) {
            return Ok(());
        }
        if let Err(error) = self.store_received(index, pem) {
            let names = self.names(index).to_vec();
            (self.events)(Event::NotStored { names, why: error.to_string() });
        }
        if let Some(answers) = self.answers.get_mut(index) {
            answers.clear();
        }
        self.schedule.authority_works();
        self.use_certificate(index, received, Source::AnotherMember);
        Ok(())
    }

    /// Stores another member's certificate in place of an order under way. Stores nothing while another process holds the
    /// lock: that one stores the certificate that it orders.
    fn store_received(&self, index: usize, pem: &[u8]) -> Result<(), StateError> {
        let Some(lock) = self.state.lock()? else { return Ok(()) };
        self.state.forget_order(&lock, self.names(index));
        self.state.put_certificate(&lock, self.names(index), pem)
    }

    fn use_certificate(&mut self, index: usize, stored: Stored, source: Source) {
        let lifetime = Lifetime {
            not_before_s: stored.facts.not_before,
            not_after_s: stored.facts.not_after,
            stored_s: stored.stored_s,
        };
        let identifiable = identify(&stored).is_some();
        self.schedule.use_certificate(index, lifetime, identifiable, fastrand::f64());
        if let Some(current) = self.current.get_mut(index) {
            *current = Some(stored.clone());
        }
        self.publish(None);
        // Before the event: what is in use is also what other members can fetch.
        self.publish_to_fleet();
        (self.events)(Event::Certificate(Update { index, stored, source }));
    }

    fn failed(&mut self, index: usize, failed: &Failed) {
        let draw = fastrand::f64();
        let retry_at_s =
            self.schedule.failed(index, failed.scope(), now_s(), failed.retry_after_s, draw);
        if failed.may_succeed_elsewhere() {
            self.shared.set_unable(Some(os::clock::now() + UNABLE_FOR));
        } else if self.schedule.failures(index) >= REFUSALS_MAX {
            self.shared.set_unable(Some(os::clock::now() + REFUSED_FOR));
        }
        let current = self.current.get(index).and_then(Option::as_ref);
        let failure = Failure {
            index,
            names: self.names(index).to_vec(),
            what: failed.what.clone(),
            refused: failed.names.clone(),
            retry_at_s,
            failures: self.schedule.failures(index),
            valid_until_s: current.map(|stored| stored.facts.not_after),
        };
        self.publish(Some(failure.clone()));
        (self.events)(Event::Failed(failure));
    }

    /// Publishes the state of all certificates; `failure`: what has just failed.
    fn publish(&mut self, failure: Option<Failure>) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *status);
        let mut failures: Vec<Option<Failure>> = before.into_iter().map(|s| s.failure).collect();
        failures.resize(self.current.len(), None);
        for (index, (current, last)) in self.current.iter().zip(failures).enumerate() {
            let new = failure.as_ref().filter(|failure| failure.index == index).cloned();
            let still = last.filter(|_| self.schedule.failures(index) > 0);
            status.push(Status {
                names: self.settings.certificates[index].names.clone(),
                valid_until_s: current.as_ref().map(|stored| stored.facts.not_after),
                renew_at_s: self.schedule.renew_at_s(index),
                renewal_by_authority: self.schedule.is_by_authority(index),
                failure: new.or(still),
            });
        }
    }

    /// Returns whether a certificate takes the place of the one in use.
    fn is_newer(&self, index: usize, stored: &Stored) -> bool {
        let current = self.current.get(index).and_then(Option::as_ref);
        current.is_none_or(|current| issued(stored).version > issued(current).version)
    }

    fn id(&self, index: usize) -> CertificateId {
        certificate_id(&self.settings.directory, self.names(index))
    }

    fn names(&self, index: usize) -> &[String] {
        self.settings.certificates.get(index).map_or(&[], |certificate| &certificate.names)
    }
}

/// Returns the certificate's identifier for renewal information (RFC 9773 section 4.1); `None`: it
/// names no authority key.
fn identify(stored: &Stored) -> Option<CertificateIdentifier<'static>> {
    let leaf = CertificateDer::from_pem_slice(&stored.certificate.chain.bytes).ok()?;
    CertificateIdentifier::try_from(&leaf).ok().map(CertificateIdentifier::into_owned)
}

fn issued(stored: &Stored) -> Issued {
    let Facts { not_before, not_after, .. } = stored.facts;
    Issued::new((not_before, not_after), Arc::clone(&stored.certificate.chain.bytes))
}

/// Returns the wall clock: certificates are valid by it.
fn now_s() -> i64 {
    os::clock::wall().as_secs().cast_signed()
}
