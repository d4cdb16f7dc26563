//! Uploads in parts to S3-compatible endpoints: each part's time and retries, and what the whole
//! cost in CPU time and real time, endpoint by endpoint.
//!
//! Signing and the protocol's XML are `rusty-s3`'s (presigned URLs, so that bodies are not hashed);
//! connections are `transport`'s.

mod error;
pub mod figures;
mod parts;
mod s3;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use error::UploadError;
pub use figures::{Endpoint, Figures, Part};
pub use rusty_s3::Credentials;
pub use s3::{Addressing, Store};

use crate::report::run::seconds;

/// The most parts of one object (Amazon S3's limit, which others share).
pub const PARTS_MAX: u64 = 10_000;

/// The longest that aborting may take when everything else has failed or was stopped.
const ABORT_MAX: Duration = Duration::from_secs(15);

/// What is uploaded, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The object's key.
    pub key: String,
    /// Bytes of the object, at least 1.
    pub size_bytes: u64,
    /// Bytes of a part; the last one is what is left. At least 1, and so large that there are at
    /// most [`PARTS_MAX`].
    pub part_bytes: u64,
    /// Parts under way at once, at least 1. Each needs memory of twice its size.
    pub parallel: usize,
    /// How often a part, or another request, is sent again after a failure that may pass.
    pub retries_max: u32,
    /// The longest that one attempt of one request may take.
    pub timeout: Duration,
    /// The longest that connecting may take, TLS included.
    pub connect_timeout: Duration,
    /// Whether the object is left there; otherwise it is deleted in the end.
    pub keep: bool,
}

impl Plan {
    /// How many parts there are.
    pub fn parts(&self) -> u64 {
        self.size_bytes.div_ceil(self.part_bytes.max(1)).max(1)
    }

    /// Where part `number`, from 1, begins, and its size in bytes.
    fn part(&self, number: u64) -> (u64, usize) {
        let begins = (number - 1) * self.part_bytes;
        (begins, self.part_bytes.min(self.size_bytes - begins) as usize)
    }
}

/// Something that happened, for whoever watches.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A part has ended well.
    Part(&'a Part),
    /// An attempt has failed, and there will be another.
    Retry {
        /// The part's number.
        part: u64,
        /// What went wrong.
        error: &'a UploadError,
    },
}

/// Ends when the upload is to be stopped, with the reason.
pub type Stop<'a> = Pin<&'a mut dyn Future<Output = &'static str>>;

/// Uploads one object to one store. What was measured until then is told also when it fails; what
/// was begun is aborted then. Must be called within a runtime and a `LocalSet`.
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
