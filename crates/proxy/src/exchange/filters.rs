//! Runs a request through its route's filters.

use std::future::poll_fn;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use decide::{cors, rate};
use model::{Cause, Content, Moment, RateLimit, RequestFilter, Route};
use wire::http1::RequestHead;

use super::Exchange;
use crate::answer::Answer;
use crate::client::{Client, client_gone};

impl Exchange<'_> {
    /// Runs the route's filters in order. A filter may answer the request itself; later filters do
    /// not run then. A filter may wait, within its own time limit.
    pub(super) async fn run_filters(&mut self, route: &Route) -> Result<(), Answer> {
        for filter in &route.filters {
            match filter {
                RequestFilter::RateLimit(limit) => self.take_of_rate(route, limit).await?,
                RequestFilter::Cors(rules) => {
                    let request: &RequestHead = &self.scratch.request;
                    if cors::verdict(rules, request).is_preflight() {
                        return Err(preflight());
                    }
                }
                RequestFilter::Authenticate(id) => {
                    // Boxed, so that exchanges without it stay small.
                    Box::pin(self.authenticate(*id)).await?;
                }
            }
        }
        Ok(())
    }

    /// Counts the request against a rate limit, and waits for its turn if the limit allows delay.
    async fn take_of_rate(&mut self, route: &Route, limit: &RateLimit) -> Result<(), Answer> {
        let request = &*self.scratch.request;
        let key = rate::rate_key(&limit.by, self.address.ip(), request);
        let table = self.worker.shared.registry.rate();
        let id = decide::hash_key(route.name.as_bytes());
        match table.take(id, limit, key, self.record.started) {
            Ok(Duration::ZERO) => Ok(()),
            Ok(turn) => self.wait_until(self.record.started + turn).await,
            Err(wait) => Err(Answer { retry_after: Some(wait), ..Answer::of(Cause::RateLimited) }),
        }
    }

    /// Waits until `moment`, or until the client has gone.
    async fn wait_until(&mut self, moment: Moment) -> Result<(), Answer> {
        let Client { stream, buffer, watchdog, .. } = &mut *self.client;
        let leaving = poll_fn(|cx| client_gone(stream, buffer, false, cx));
        match watchdog.until(moment, leaving).await {
            None => Ok(()),
            Some(cause) => Err(Answer::of(cause)),
        }
    }
}

/// Returns the answer to a preflight. Its status is the same if nothing is allowed: browsers read the
/// fields, which all responses of the route get.
fn preflight() -> Answer {
    static EMPTY: LazyLock<Arc<Content>> = LazyLock::new(|| {
        Arc::new(Content { media_type: None, fields: Vec::new(), body: Arc::default() })
    });
    let content = Some(Arc::clone(&EMPTY));
    Answer { status: 204, detail: "preflight", content, ..Answer::of(Cause::Responded) }
}
