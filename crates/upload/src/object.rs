//! One object, from start to end: create, all parts, complete; or abort.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use load_report::run::seconds;

use crate::error::UploadError;
use crate::figures::{Endpoint, Part};
use crate::parts;
use crate::plan::{Event, Plan};
use crate::s3::Store;

/// The longest that aborting may take when everything else has failed or was stopped.
const ABORT_MAX: Duration = Duration::from_secs(15);

/// Ends when the upload is to be stopped, with the reason.
pub type Stop<'a> = Pin<&'a mut dyn Future<Output = &'static str>>;

/// Uploads one object to one store. What was measured until then is returned also when it fails;
/// what was begun is aborted then. Must be called within a runtime and a `LocalSet`.
pub async fn upload(
    store: Arc<Store>,
    plan: &Plan,
    stop: Stop<'_>,
    watch: &mut dyn FnMut(Event<'_>),
) -> Endpoint {
    let mut endpoint = Endpoint {
        name: store.name.clone(),
        url: store.shown_url(),
        bucket: store.bucket_name().to_owned(),
        key: plan.key.clone(),
        bytes: plan.size_bytes,
        ..Endpoint::default()
    };
    let begun = os::clock::now();
    let cpu = os::process::cpu_time();
    let mut id = None;
    let sending = send(&store, plan, &mut id, &mut endpoint.parts, watch);
    let ended = tokio::select! {
        biased;
        why = stop => Err(UploadError::Stopped(why)),
        ended = sending => ended,
    };
    let used = os::process::cpu_time();
    endpoint.real_s = seconds(os::clock::now() - begun);
    endpoint.user_s = seconds(used.user.saturating_sub(cpu.user));
    endpoint.system_s = seconds(used.system.saturating_sub(cpu.system));
    endpoint.total_s = endpoint.user_s + endpoint.system_s;
    endpoint.parts.sort_by_key(|part| part.number);
    endpoint.sum_up();
    let after = match (&ended, id) {
        (Ok(()), _) if plan.keep => Ok(()),
        (Ok(()), _) => store.delete(plan).await,
        (Err(_), Some(id)) => {
            let abort = tokio::time::timeout(ABORT_MAX, store.abort(plan, &id));
            abort.await.unwrap_or(Err(UploadError::Late(ABORT_MAX)))
        }
        (Err(_), None) => Ok(()),
    };
    endpoint.error = ended.as_ref().err().map(ToString::to_string);
    endpoint.left_behind = after.err().map(|error| match ended {
        Ok(()) => format!("the object could not be deleted: {error}"),
        Err(_) => format!("the parts could not be removed: {error}"),
    });
    endpoint
}

/// Create, all parts, complete.
async fn send(
    store: &Arc<Store>,
    plan: &Plan,
    id: &mut Option<String>,
    parts: &mut Vec<Part>,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<(), UploadError> {
    let upload_id = id.insert(store.create(plan).await?).clone();
    let mut tags = parts::send_all(store, plan, &upload_id, parts, watch).await?;
    tags.sort_by_key(|(number, _)| *number);
    let tags: Vec<&str> = tags.iter().map(|(_, tag)| tag.as_str()).collect();
    store.complete(plan, &upload_id, &tags).await
}
