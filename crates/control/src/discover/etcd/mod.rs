//! Keys below a prefix in etcd: listed once, then watched. The API is version 3's, through its JSON gateway. Each
//! watch has a connection of its own.

mod client;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use discovery::etcd::{self, Keys, Lines, Reading, Step};
use model::Moment;
use tokio::time::timeout;

pub(super) use client::Client;
use client::{ANSWER_MAX, Failed, Request};

use super::backoff::Backoff;
use super::report::Sink;

/// How long a watch lasts until it is made again from where it ended. A member that has lost its power or its network
/// says nothing, and is noticed then. Times a random factor between 1 and 1.2.
const WATCH_MAX: Duration = Duration::from_mins(1);
/// After this time the keys are listed again, in case an event was missed; times the same factor.
const LISTED_EVERY: Duration = Duration::from_mins(15);
/// A watch that ends sooner, for another reason, counts as a failure when the next pause is chosen.
const WORKED_MIN: Duration = Duration::from_secs(5);
/// Shortest time between two reports of one watch, so that keys that change all the time cost a bounded number of
/// them. The first change is reported at once.
const REPORTED_EVERY_MIN: Duration = Duration::from_millis(50);
/// Making answers takes at most one part in this of a watch's time, however many keys there are.
const REPORTING_SHARE: u32 = 20;
/// Longer messages are read on a thread for that, so that other services do not wait.
const SHORT_MAX_BYTES: usize = 64 * 1024;

/// Reports the servers below `prefix`, now and when they change.
pub(super) async fn watch(client: Rc<Client>, prefix: Arc<str>, reading: Reading, sink: Sink) {
    let mut backoff = Backoff::new();
    // Watches in a row that did not begin.
    let mut not_begun = 0;
    loop {
        let ended = match client.list(&prefix, reading).await {
            Ok(listed) => {
                let mut following = Following::new(&client, &prefix, listed, &sink);
                following.is_quiet = not_begun >= client.members();
                following.report().await;
                let why = following.follow().await;
                not_begun = if following.works_since.is_some() { 0 } else { not_begun + 1 };
                // Another member may be able to begin a watch.
                if not_begun < client.members() { Ok(following.worked()) } else { Err(why) }
            }
            Err(why) => Err(why),
        };
        let pause = match ended {
            Ok(worked) if worked >= WORKED_MIN => {
                backoff.reset();
                REPORTED_EVERY_MIN
            }
            Ok(_) => backoff.next(),
            Err(why) => {
                sink.send(os::clock::now(), Err(why)).await;
                backoff.next()
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// The keys of a prefix, and what of them has been reported.
struct Following<'a> {
    client: &'a Client,
    prefix: &'a str,
    /// The member that listed the keys, by its number.
    member: usize,
    keys: Keys,
    sink: &'a Sink,
    /// When the oldest change arrived that is not reported.
    changed: Option<Moment>,
    reported: Moment,
    reported_every: Duration,
    /// Nothing is reported before a watch begins: the last ones did not, so the source counts as failing.
    is_quiet: bool,
    /// When the first watch began.
    works_since: Option<Moment>,
}

impl<'a> Following<'a> {
    fn new(
        client: &'a Client,
        prefix: &'a str,
        (keys, member, arrived): (Keys, usize, Moment),
        sink: &'a Sink,
    ) -> Self {
        Following {
            client,
            prefix,
            member,
            keys,
            sink,
            changed: Some(arrived),
            reported: arrived,
            reported_every: REPORTED_EVERY_MIN,
            is_quiet: false,
            works_since: None,
        }
    }

    /// Returns how long ago the first watch began.
    fn worked(&self) -> Duration {
        self.works_since.map_or(Duration::ZERO, |since| os::clock::now().since(since))
    }

    /// Reports the keys if they have changed.
    async fn report(&mut self) {
        if self.is_quiet {
            return;
        }
        if let Some(arrived) = self.changed.take() {
            let begun = os::clock::now();
            let revision = u64::try_from(self.keys.revision()).ok();
            let answer = self.keys.answer();
            let took = os::clock::now().since(begun);
            self.sink.send(arrived, Ok((answer, revision))).await;
            self.reported = os::clock::now();
            self.reported_every = REPORTED_EVERY_MIN.max(took * REPORTING_SHARE);
        }
    }

    /// Watches the keys until they have to be listed again, and returns why.
    async fn follow(&mut self) -> String {
        let begun = os::clock::now();
        let factor = 1.0 + 0.2 * fastrand::f64();
        while os::clock::now().since(begun) < LISTED_EVERY.mul_f64(factor) {
            let until = os::clock::now() + WATCH_MAX.mul_f64(factor);
            let watched = self.watch_as_user(until).await;
            self.report().await;
            let why = match watched {
                Ok(()) => continue,
                // The member is in order, unless it is one that lags.
                Err(Ended::ListAgain(why)) if self.works_since.is_some() => why.to_owned(),
                Err(Ended::ListAgain(why)) => {
                    self.client.avoid(self.member);
                    why.to_owned()
                }
                Err(Ended::Failed(failed)) => {
                    self.client.avoid(self.member);
                    failed.why
                }
            };
            tracing::debug!(prefix = self.prefix, why, "keys of etcd are listed again");
            return why;
        }
        "it is time to list the keys again".to_owned()
    }

    /// Watches the keys for as long as one watch lasts. With a new token if etcd asks for one.
    async fn watch_as_user(&mut self, until: Moment) -> Result<(), Ended> {
        let token = self.client.token();
        match self.watch(token.clone(), until).await {
            Err(Ended::Failed(failed)) if failed.needs_token => {
                let token = self.client.authenticate(self.member, token, failed).await?;
                self.watch(Some(token), until).await
            }
            watched => watched,
        }
    }

    async fn watch(&mut self, token: Option<Rc<str>>, until: Moment) -> Result<(), Ended> {
        let (client, member) = (self.client, self.member);
        let body = etcd::watch_body(self.prefix, self.keys.revision().saturating_add(1));
        let mut connection = client.connect(member).await?;
        let request = Request { path: "/v3/watch", body: &body, token };
        let created_max = os::clock::now() + ANSWER_MAX;
        let mut incoming = client.begin(member, &mut connection, &request).await?;
        let failed = |why: &str| client.failed(member, &request, why);
        let mut lines = Lines::default();
        let mut is_created = false;
        loop {
            let due = self.changed.map(|_| self.reported + self.reported_every);
            let limit = if is_created { until } else { created_max };
            let wait = due.filter(|_| is_created).map_or(limit, |due| due.min(limit));
            let read = incoming.read(|piece| lines.push(piece));
            let read = timeout(wait.since(os::clock::now()), read).await;
            let arrived = os::clock::now();
            match read {
                Ok(Ok(false)) => return Err(failed("the watch has ended").into()),
                Ok(Err(error)) => return Err(failed(&error.to_string()).into()),
                Err(_) if !is_created && arrived >= limit => {
                    return Err(failed("the watch does not begin in time").into());
                }
                Err(_) if is_created && arrived >= until => return Ok(()),
                Ok(Ok(true)) | Err(_) => {}
            }
            while let Some(line) = lines.next_line().map_err(|why| failed(&why))? {
                match self.take_in(line).await? {
                    Step::Created => {
                        is_created = true;
                        self.works(arrived);
                    }
                    Step::Changed => _ = self.changed.get_or_insert(arrived),
                    Step::Same => {}
                    Step::Compacted => return Err(Ended::ListAgain("changes are missing")),
                    Step::Ended(why) => return Err(failed(&why).into()),
                }
            }
            if arrived.since(self.reported) >= self.reported_every {
                self.report().await;
            }
        }
    }

    /// A watch works: what is known is up to date.
    fn works(&mut self, now: Moment) {
        self.is_quiet = false;
        if self.works_since.is_some() {
            self.changed.get_or_insert(now);
        }
        self.works_since.get_or_insert(now);
    }

    /// Applies a message. If it cannot be read, perhaps only a part of it was applied, so nothing is reported until
    /// the keys are listed again.
    async fn take_in(&mut self, line: &[u8]) -> Result<Step, Ended> {
        let step = if line.len() <= SHORT_MAX_BYTES {
            self.keys.on_message(line)
        } else {
            let (mut keys, line) = (self.keys.clone(), line.to_vec());
            let read = tokio::task::spawn_blocking(move || {
                let step = keys.on_message(&line);
                (keys, step)
            });
            match read.await {
                Ok((keys, step)) => {
                    self.keys = keys;
                    step
                }
                Err(_) => Err("a message could not be read: a bug".to_owned()),
            }
        };
        if step.is_err() || step == Ok(Step::Compacted) {
            self.changed = None;
        }
        step.map_err(|why| Ended::Failed(why.into()))
    }
}

/// Why a watch is over before its time.
enum Ended {
    /// The keys have to be listed again. No failure.
    ListAgain(&'static str),
    Failed(Failed),
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Ended {
        Ended::Failed(failed)
    }
}
