//! Runs a request through its route's filters.

use std::future::poll_fn;
use std::time::Duration;

use decide::rate;
use model::{Cause, Moment, RateLimit, RequestFilter, Route};

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
