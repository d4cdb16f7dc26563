//! Asks the balancer for its state once a second, and for changes, each on a thread.

use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use admin_api::history::History;
use admin_api::maintenance::MaintenanceRequest;
use admin_api::services::{Service, Services, StateRequest};
use model::{Maintained, Moment};
use serde::de::DeserializeOwned;

use super::super::{maintenance, server_state};
use super::{Message, start};
use crate::api_client::{Client, ClientError, segment};
use crate::top::{Change, Event, Needs, Part, Picture, Proposal};

/// Time between the beginnings of two rounds.
const EVERY: Duration = Duration::from_secs(1);

/// The shortest pause between two rounds. It is at least as long as the round before: a balancer that answers
/// slowly has at least half of the time for others.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// An answer of a round that takes longer is not waited for.
const ANSWER_MAX: Duration = Duration::from_secs(3);

/// The rest of a round that takes longer is left out.
const ROUND_MAX: Duration = Duration::from_secs(4);

/// The services' last minute, for sparklines, of as many services as an answer can have.
const PAST: &str = "/api/v1/history?kind=service&columns=requests&span_s=60&limit=1000";

/// How requests ended in the last minute, with those that reached no service.
const ENDINGS: &str = "/api/v1/history?kind=listener&columns=failed,causes&span_s=60";

/// Requests in flight that are listed, the oldest.
const REQUESTS: &str = "/api/v1/requests?limit=1000";

/// Asks the balancer for pictures and changes.
pub(super) struct Asker {
    client: Client,
    events: SyncSender<Message>,
    needs: Arc<Shared>,
}

/// What to fetch, and who waits for it to change.
#[derive(Default)]
struct Shared {
    needs: Mutex<Needs>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Needs> {
        // It is replaced as a whole, so that it is valid even after a panic.
        self.needs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asker {
    /// Begins to ask, every second.
    pub(super) fn start(client: Client, events: SyncSender<Message>) -> io::Result<Asker> {
        let needs = Arc::new(Shared::default());
        let asker = Asker { client, events, needs: needs.clone() };
        let client = asker.client.clone().patient(ANSWER_MAX);
        start("balancer", &asker.events, move |events| poll(&client, events, &needs))?;
        Ok(asker)
    }

    /// Fetches this from now on; at once, if it is something else than before.
    pub(super) fn need(&self, needs: Needs) {
        let mut known = self.needs.lock();
        if *known != needs {
            *known = needs;
            self.needs.changed.notify_one();
        }
    }

    /// Asks for a change; the answer is an event.
    pub(super) fn change(&self, change: Change) -> io::Result<()> {
        let client = self.client.clone();
        start("change", &self.events, move |events| {
            let changed = make(&client, change).map_err(|error| error.to_string());
            let _ = events.send(Message::Event(Event::Changed(changed)));
        })
    }
}

/// Fetches pictures until the program ends.
fn poll(client: &Client, events: &SyncSender<Message>, shared: &Shared) {
    loop {
        let began = os::clock::now();
        let needs = shared.lock().clone();
        let fetched = Round { client, began }.fetch(&needs);
        let fetched = fetched.map(Box::new).map_err(|error| error.to_string());
        if events.send(Message::Event(Event::Fetched(fetched, began))).is_err() {
            return;
        }
        let ended = os::clock::now();
        let pause = (began + EVERY).since(ended).max(ended.since(began)).max(PAUSE_MIN);
        let is_same = |now: &mut Needs| *now == needs;
        drop(shared.changed.wait_timeout_while(shared.lock(), pause, is_same));
    }
}

/// One round of requests.
struct Round<'a> {
    client: &'a Client,
    began: Moment,
}

impl Round<'_> {
    /// Fetches a picture. It needs the status and the services; any other answer may be missing.
    fn fetch(&self, needs: &Needs) -> Result<Picture, ClientError> {
        let Services { services } = self.client.get("/api/v1/services")?;
        let status = self.client.get("/api/v1/status")?;
        let past: Part<History> = self.part(PAST);
        let has_history = past.known().is_none_or(|past| past.enabled);
        let (server_past, service_endings) = match &needs.server {
            Some((service, address)) => self.of_server(service, address),
            None => (Part::NotFetched, Part::NotFetched),
        };
        Ok(Picture {
            status,
            services,
            traffic: if has_history {
                self.part("/api/v1/traffic")
            } else {
                Part::Unknown("history_memory_max is 0 in the configuration".to_owned())
            },
            past,
            findings: self.part("/api/v1/findings"),
            causes: self.needed(needs.causes, "/api/v1/causes"),
            endings: self.needed(needs.causes, ENDINGS),
            requests: self.needed(needs.requests, REQUESTS),
            checks: self.needed(needs.checks, "/api/v1/checks"),
            server_past,
            service_endings,
            preview: needs.proposal.clone().map(|proposal| {
                let after = self.after(&proposal);
                (proposal, after)
            }),
        })
    }

    /// The last minute of a server, and how the requests of its service ended.
    fn of_server(&self, service: &str, address: &str) -> (Part<History>, Part<History>) {
        let (service, address) = (segment(service), segment(address));
        let path = "/api/v1/history?span_s=60&service=";
        (
            self.part(&format!(
                "{path}{service}&kind=server&server={address}&columns=requests,first_byte_p50_us"
            )),
            self.part(&format!("{path}{service}&kind=service&columns=failed,causes")),
        )
    }

    /// A service as it would be after a change.
    fn after(&self, proposal: &Proposal) -> Part<Service> {
        let Proposal { service, address, state } = proposal;
        let wanted = StateRequest { state: *state, dry_run: true, fleet: false };
        let after = server_state::ask(self.client, service, address, wanted);
        // One of an earlier version refuses a dry run.
        after.map_or_else(
            |error| Part::Unknown(error.to_string()),
            |after| Part::Known(after.service),
        )
    }

    fn needed<T: DeserializeOwned>(&self, is_needed: bool, path: &str) -> Part<T> {
        if is_needed { self.part(path) } else { Part::NotFetched }
    }

    fn part<T: DeserializeOwned>(&self, path: &str) -> Part<T> {
        if os::clock::now().since(self.began) >= ROUND_MAX {
            return Part::Unknown("the answers before it took too long".to_owned());
        }
        self.client.get(path).map_or_else(|error| Part::Unknown(error.to_string()), Part::Known)
    }
}

/// Makes a change; returns what is in force then, in one line.
fn make(client: &Client, change: Change) -> Result<String, ClientError> {
    let summary = match change {
        Change::Server { service, address, state } => {
            let wanted = StateRequest { state, dry_run: false, fleet: false };
            let changed = server_state::ask(client, &service, &address, wanted)?;
            server_state::summary(&changed.service, &service, &address)
        }
        Change::Service { service, on } => {
            let wanted = MaintenanceRequest { on, retry_after_ms: None };
            let changed = maintenance::ask(client, Maintained::Service, &service, wanted)?;
            maintenance::summary(&changed)
        }
    };
    Ok(summary.trim_end().replace('\n', "; "))
}
