//! Creates the client of the API server off the thread of the watches: the kubeconfig can name a program that prints
//! credentials (an exec plugin), and kube waits for its end.

use std::time::Duration;

use kube::Client;
use model::Moment;
use os::clock::now;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::failure::Failure;

/// For this long a request waits for credentials.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// After this time, a plugin that has not ended is no longer waited for, and is started again.
const ABANDON_AFTER: Duration = Duration::from_secs(60);
/// At most this many plugins that do not end are left running: a process cannot be ended through kube.
const ABANDONED_MAX: usize = 3;

type Created = JoinHandle<Result<Client, Failure>>;

/// The creation of a client, which takes as long as the plugin.
#[derive(Default)]
pub(crate) struct Connecting {
    running: Option<(Created, Moment)>,
    abandoned: Vec<Created>,
}

impl Connecting {
    /// Returns whether no creation is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Begins one.
    pub(crate) fn begin(
        &mut self,
        create: impl FnOnce() -> Result<Client, Failure> + Send + 'static,
    ) -> Result<(), Failure> {
        self.abandoned.retain(|one| !one.is_finished());
        if self.abandoned.len() >= ABANDONED_MAX {
            return Err(Failure::connection(format!(
                "{ABANDONED_MAX} processes of the credential plugin in the kubeconfig do not end; \
                 end them and check the plugin"
            )));
        }
        self.running = Some((spawn_blocking(create), now()));
        Ok(())
    }

    /// Waits a bounded time for the one under way. A later call goes on waiting.
    pub(crate) async fn wait(&mut self) -> Result<Client, Failure> {
        let Some((created, began)) = self.running.take() else {
            return Err(Failure::connection("no client is being created"));
        };
        if now().since(began) >= ABANDON_AFTER && !created.is_finished() {
            self.abandoned.push(created);
            return Err(late());
        }
        // This wait may be dropped.
        let (created, _) = self.running.insert((created, began));
        let Ok(ended) = timeout(WAIT_MAX, created).await else { return Err(late()) };
        self.running = None;
        ended.unwrap_or_else(|error| {
            Err(Failure::connection(format!("the client could not be created: {error}")))
        })
    }
}

fn late() -> Failure {
    Failure::connection(
        "the credential plugin in the kubeconfig has not printed credentials in time; run it by hand",
    )
}
