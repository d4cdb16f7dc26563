//! The Pods of Services in Kubernetes. They are watched elsewhere, for all services together.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use discovery::{Answer, Readiness, Row};
use gateway::objects::Key;
use gateway::pods::{Pod, PodSets};
use model::{ServerSpec, ServerTarget};
use tokio::sync::watch;

use super::report::Sink;

/// The Pods that are known.
pub(crate) type Pods = watch::Receiver<Arc<PodSets>>;

/// Reports the Pods of a Service's port, now and when they change. `port` replaces that of each Pod.
pub(super) async fn watch(
    mut pods: Pods,
    of: (Key, Option<Arc<str>>),
    port: Option<u16>,
    sink: Sink,
) {
    let mut last: Option<Arc<[Pod]>> = None;
    loop {
        let now = pods.borrow_and_update().get(&of).cloned();
        // A Service that was there and is gone has no Pods. One that was not there may not have been read yet.
        let now = now.or_else(|| last.as_ref().map(|_| Arc::from([])));
        // Those of other Services change, too.
        let is_same = |last: &Arc<[Pod]>, now: &Arc<[Pod]>| Arc::ptr_eq(last, now) || last == now;
        let changed = now.filter(|now| last.as_ref().is_none_or(|last| !is_same(last, now)));
        if let Some(now) = changed {
            sink.send(os::clock::now(), answer(&now, port).map(|answer| (answer, None))).await;
            last = Some(now);
        }
        if pods.changed().await.is_err() {
            // They are not watched any more: the process ends.
            pending::<()>().await;
        }
    }
}

fn answer(pods: &[Pod], port: Option<u16>) -> Result<Answer, String> {
    let mut answer = Answer::default();
    answer.add(Answer {
        rows: pods.iter().map(|pod| row(pod, port)).collect(),
        ..Answer::default()
    })?;
    Ok(answer)
}

fn row(pod: &Pod, port: Option<u16>) -> Row {
    let address = SocketAddr::new(pod.address.ip(), port.unwrap_or(pod.address.port()));
    Row {
        server: ServerSpec {
            target: ServerTarget::Address(address.into()),
            zone: pod.zone.clone(),
            weight: 1,
            backup: pod.is_backup,
            in_flight_max: pod.in_flight_max,
            version: None,
        },
        // One that is ending finishes its requests, and receives no new ones.
        readiness: if pod.takes_requests { Readiness::Ready } else { Readiness::Maintenance },
        object: Arc::clone(&pod.name),
    }
}
