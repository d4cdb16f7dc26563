//! Runs a request through its route's filters.

use std::future::poll_fn;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use decide::cors;
use decide::rate::{self, PartKey};
use decide::route::RequestView as _;
use identity::Claim;
use model::{Cause, Content, Moment, RateKey, RateLimit, RequestFilter, Route};
use wire::http1::RequestHead;

use super::Exchange;
use crate::answer::Answer;
use crate::client::{Client, client_gone};

impl<'a> Exchange<'a> {
    /// Runs the route's filters in order. A filter may answer the request itself; later filters do
    /// not run then. A filter may wait, within its own time limit.
    pub(super) async fn run_filters(&mut self, route: &'a Route) -> Result<(), Answer> {
        for filter in &route.filters {
            match filter {
                RequestFilter::RateLimits(limits) => self.take_of_rates(route, limits).await?,
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

    /// Counts the request against rate limits, and waits for its turn if they allow delay.
    async fn take_of_rates(
        &mut self,
        route: &Route,
        limits: &'a [RateLimit],
    ) -> Result<(), Answer> {
        let now = os::clock::now();
        let table = self.worker.shared.registry.rate();
        let key_of = |limit: &RateLimit| {
            let part = self.rate_part(table.part_key(limit.scope), &limit.by);
            rate::key(&route.name, limit, part)
        };
        let taken = table.take_all(&route.name, limits, key_of, now);
        if taken.is_err() {
            // Those of an earlier filter count requests that pass, and those that are not authenticated.
            let of_this = |other: &&RateLimit| limits.iter().any(|one| one.name == other.name);
            for earlier in route.rate_limits().take_while(|limit| !of_this(limit)) {
                table.give_back(earlier, key_of(earlier));
            }
        }
        let rates = self.rates.iter().map(|(limit, _)| *limit);
        let announced = rates.chain(limits.iter().filter(|limit| limit.is_announced));
        self.rates =
            announced.map(|limit| (limit, table.left(limit, key_of(limit), now))).collect();
        match taken {
            Ok(Duration::ZERO) => Ok(()),
            Ok(turn) => self.wait_until(now + turn).await,
            Err((limit, wait)) => {
                self.record.exceeded = Some(Arc::clone(&limit.name));
                Err(Answer { retry_after: Some(wait), ..Answer::of(Cause::RateLimited) })
            }
        }
    }

    /// Returns a number for the part of the request by which a limit counts.
    fn rate_part(&self, key: PartKey, by: &RateKey) -> u64 {
        let request: &RequestHead = &self.scratch.request;
        let identity = self.identity.as_deref();
        match by {
            RateKey::Client => key.of_client(self.address.ip()),
            RateKey::Field(name) => key.of_values(request.field_values(name)),
            RateKey::Cookie(name) => key.of_values(request.cookie_values(name)),
            RateKey::User => {
                let user = identity.and_then(|known| known.user.as_deref());
                key.of_value(user.map(str::as_bytes))
            }
            RateKey::Claim(path) => match identity.and_then(|known| known.claim(path)) {
                Some(Claim::Text(text)) => key.of_value(Some(text.as_bytes())),
                Some(Claim::List(items)) => key.of_list(items.iter().map(|item| item.as_bytes())),
                None => key.of_value(None),
            },
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
