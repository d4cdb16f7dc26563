//! Creates the client of the API server and renews its credentials off the thread of the watches: the kubeconfig can name
//! a program that prints credentials (an exec plugin), and kube waits for its end. One runs at a time.

use std::time::Duration;

use kube::Client;
use model::Moment;
use os::clock::now;
use tokio::task::{AbortHandle, JoinHandle, spawn_blocking, spawn_local};
use tokio::time::timeout;

use crate::credentials::{Connected, Field};
use crate::failure::Failure;

/// For this long a request waits for credentials.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// After this time, a plugin that has not ended is no longer waited for, and is started again.
const ABANDON_AFTER: Duration = Duration::from_secs(60);
/// At most this many plugins that do not end are left running: a process cannot be ended through kube.
const ABANDONED_MAX: usize = 3;

/// The client, and what takes as long as the plugin.
#[derive(Default)]
pub(crate) struct Connecting {
    connected: Option<Connected>,
    creation: Option<Running<Connected>>,
    renewal: Option<Running<Field>>,
    /// Those that are no longer waited for.
    abandoned: Vec<AbortHandle>,
    /// Whether the kubeconfig names a plugin.
    uses_plugin: bool,
}

/// What is waited for.
struct Running<T> {
    task: JoinHandle<Result<T, Failure>>,
    began: Moment,
}

/// How a wait ended.
enum Waited<T> {
    Ended(Result<T, Failure>),
    Late,
    Abandoned,
}

impl Connecting {
    /// Returns whether there is a client.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected.is_some()
    }

    /// Forgets the client.
    pub(crate) fn forget(&mut self) {
        self.connected = None;
        // Its credentials are not those of the next client.
        self.renewal = None;
    }

    /// Returns whether the credentials are being renewed.
    pub(crate) fn is_renewing(&self) -> bool {
        self.renewal.is_some()
    }

    /// Returns whether no creation is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.creation.is_none()
    }

    /// Begins to create a client.
    pub(crate) fn begin(
        &mut self,
        uses_plugin: bool,
        create: impl FnOnce() -> Result<Connected, Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        self.abandoned.retain(|one| !one.is_finished());
        if self.abandoned.len() >= ABANDONED_MAX {
            return Err(Failure::connection(format!(
                "{ABANDONED_MAX} processes of the credential plugin in the kubeconfig do not end; \
                 end them and check the plugin"
            )));
        }
        self.uses_plugin = uses_plugin;
        self.creation = Some(Running { task: spawn_blocking(create), began: now() });
        Ok(())
    }

    /// Waits a bounded time for the client. A later call goes on waiting.
    pub(crate) async fn created(&mut self) -> Result<(), Failure> {
        match wait(&mut self.creation, &mut self.abandoned).await {
            Waited::Ended(ended) => {
                self.connected = Some(ended?);
                Ok(())
            }
            Waited::Late | Waited::Abandoned => Err(self.late()),
        }
    }

    /// Returns the client, and the credentials of a request. Waits a bounded time for them. A later call goes on waiting.
    pub(crate) async fn authorized(&mut self) -> Result<(Client, Field), Failure> {
        let Some(connected) = &self.connected else {
            return Err(Failure::connection("there is no client of the API server"));
        };
        let client = connected.client.clone();
        // Credentials that came long ago may have expired.
        let is_old = |one: &mut Running<Field>| {
            one.task.is_finished() && now().since(one.began) >= ABANDON_AFTER
        };
        drop(self.renewal.take_if(is_old));
        if self.renewal.is_none() {
            let Some(asked) = connected.ask() else { return Ok((client, None)) };
            self.renewal = Some(Running { task: spawn_local(asked), began: now() });
        }
        match wait(&mut self.renewal, &mut self.abandoned).await {
            Waited::Ended(field) => Ok((client, field?)),
            Waited::Late => Err(self.late()),
            Waited::Abandoned => {
                // It would wait for the same plugin.
                self.forget();
                Err(self.late())
            }
        }
    }

    fn late(&self) -> Failure {
        Failure::connection(if self.uses_plugin {
            "the credential plugin in the kubeconfig has not printed credentials in time; run it by \
             hand"
        } else {
            "the credentials for the API server could not be read in time; check the file systems of \
             the files that have them"
        })
    }
}

/// Waits a bounded time. What is waited for goes on if this is dropped.
async fn wait<T>(running: &mut Option<Running<T>>, abandoned: &mut Vec<AbortHandle>) -> Waited<T> {
    let Some(Running { task, began }) = running else { return Waited::Late };
    if now().since(*began) >= ABANDON_AFTER && !task.is_finished() {
        abandoned.push(task.abort_handle());
        *running = None;
        return Waited::Abandoned;
    }
    let Ok(ended) = timeout(WAIT_MAX, task).await else { return Waited::Late };
    *running = None;
    Waited::Ended(ended.unwrap_or_else(|error| {
        Err(Failure::connection(format!("the client could not be created: {error}")))
    }))
}
