//! The parts: a limited number at once, each timed, each retried if that may help.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use load_report::run::seconds;
use model::Moment;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use transport::client::Connection;
use wire::pattern::pattern;

use crate::error::UploadError;
use crate::figures::Part;
use crate::plan::{Event, Plan};
use crate::retry::{Retries, again};
use crate::s3::{Store, exchange};

/// What a lane tells.
enum News {
    Arrived(Part, String),
    Retry(u64, UploadError),
}

/// Sends every part; yields numbers and entity tags, in no order. The first part that fails for
/// good ends it all.
pub(crate) async fn send_all(
    store: &Arc<Store>,
    plan: &Plan,
    id: &str,
    parts: &mut Vec<Part>,
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<(u64, String)>, UploadError> {
    let next = Rc::new(Cell::new(1));
    let begun = os::clock::now();
    let lanes = plan.parallel.min(plan.parts() as usize).max(1);
    let (tell, mut news) = mpsc::channel(lanes);
    // Dropped with this future, whatever ends it.
    let mut working = JoinSet::new();
    for _ in 0..lanes {
        let lane = Lane {
            store: Arc::clone(store),
            plan: plan.clone(),
            id: id.to_owned(),
            next: Rc::clone(&next),
            begun,
            kept: None,
            tell: tell.clone(),
        };
        working.spawn_local(lane.run());
    }
    drop(tell);
    let mut tags = Vec::new();
    loop {
        // Results are reported before the failure; but the failure waits for no further ones.
        tokio::select! {
            biased;
            Some(news) = news.recv() => match news {
                News::Arrived(part, tag) => {
                    watch(Event::Part(&part));
                    tags.push((part.number, tag));
                    parts.push(part);
                }
                News::Retry(part, error) => watch(Event::Retry { part, error: &error }),
            },
            Some(ended) = working.join_next() => ended.unwrap_or(Ok(()))?,
            else => break,
        }
    }
    if tags.len() as u64 != plan.parts() {
        return Err(UploadError::Unexpected("not every part was sent".to_owned()));
    }
    Ok(tags)
}

/// One of the parts that are under way at once, and the next one after it.
struct Lane {
    store: Arc<Store>,
    plan: Plan,
    id: String,
    /// The next part that no lane has taken.
    next: Rc<Cell<u64>>,
    begun: Moment,
    kept: Option<Connection>,
    tell: mpsc::Sender<News>,
}

impl Lane {
    async fn run(mut self) -> Result<(), UploadError> {
        while self.next.get() <= self.plan.parts() {
            let number = self.next.replace(self.next.get() + 1);
            let (part, tag) = self.part(number).await?;
            // The receiver is gone: another lane has failed.
            if self.tell.send(News::Arrived(part, tag)).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// One part, until it has arrived.
    async fn part(&mut self, number: u64) -> Result<(Part, String), UploadError> {
        let (offset, size) = self.plan.part(number);
        // Made before the clock starts.
        let body = pattern(offset, size);
        let first = os::clock::now();
        let mut retries = Retries::default();
        loop {
            let begun = os::clock::now();
            match self.attempt(number, &body).await {
                Ok((mut part, tag)) => {
                    let now = os::clock::now();
                    part.number = number;
                    part.bytes = size as u64;
                    part.at_s = seconds(first - self.begun);
                    part.took_s = seconds(now - first);
                    part.last_attempt_s = seconds(now - begun);
                    part.retries = retries.0;
                    return Ok((part, tag));
                }
                Err(error) => {
                    let error = again(&self.plan, &mut retries, error).await?;
                    let _ = self.tell.send(News::Retry(number, error)).await;
                }
            }
        }
    }

    async fn attempt(&mut self, number: u64, body: &[u8]) -> Result<(Part, String), UploadError> {
        let mut part = Part::default();
        let kept = self.kept.take().filter(Connection::reusable);
        let mut connection = if let Some(kept) = kept {
            kept
        } else {
            let begun = os::clock::now();
            let fresh = self.store.connect(&self.plan).await?;
            part.connect_s = Some(seconds(os::clock::now() - begun));
            fresh
        };
        let again = |connection: &Connection| Some(connection.tcp_info().ok()?.total_retrans);
        let before = again(&connection);
        let url = self.store.part_url(&self.plan, &self.id, number);
        let (status, _) = exchange(&mut connection, &self.plan, "PUT", &url, body).await?;
        part.status = status;
        part.retransmissions =
            again(&connection).zip(before).map(|(after, before)| after.saturating_sub(before));
        let tag = connection.head().field("etag").map(String::from_utf8_lossy);
        let tag = tag.map(std::borrow::Cow::into_owned).ok_or_else(|| {
            UploadError::Unexpected("the answer to a part has no ETag; is this S3?".to_owned())
        })?;
        self.kept = Some(connection).filter(Connection::reusable);
        Ok((part, tag))
    }
}
