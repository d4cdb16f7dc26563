//! In place of the connection to Kubernetes in a program that is built without it: there never is one.

use std::sync::Arc;

use admin::Source;
use admin::external_metrics::Delegate;
use gateway::pods::PodSets;
use gateway::served::{InForce, Served};
use model::Snapshot;
use tokio::sync::watch;

pub(crate) enum Cluster {}

impl Cluster {
    /// # Errors
    /// There is `[kubernetes]`.
    pub(crate) fn start(snapshot: &Snapshot) -> Result<Option<Cluster>, String> {
        match &snapshot.kubernetes {
            None => Ok(None),
            Some(_) => {
                Err("kubernetes: this program was built without it; build it with `--features kubernetes`, or remove [kubernetes]".to_owned())
            }
        }
    }

    pub(crate) fn served(&self) -> watch::Receiver<Arc<Served>> {
        match *self {}
    }

    pub(crate) fn pods(&self) -> watch::Receiver<Arc<PodSets>> {
        match *self {}
    }

    pub(crate) fn status(&self) -> Source<admin_api::status::Kubernetes> {
        match *self {}
    }

    pub(crate) fn delegate(&self) -> Option<Delegate> {
        match *self {}
    }

    pub(crate) fn in_force(&self, _in_force: InForce) {
        match *self {}
    }

    pub(crate) fn leave(&mut self) {
        match *self {}
    }

    pub(crate) fn stop(self) {
        match self {}
    }
}
