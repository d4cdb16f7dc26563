//! The retry settings of a request, and the pause before each attempt.

use std::time::Duration;

use model::{Retries, RouteRetries, StatusSet};

/// The longest pause, in multiples of the shortest one, before the random part is added; as Envoy's
/// default (`retry_back_off.max_interval`).
const PAUSE_FACTOR_MAX: u32 = 10;

/// The settings of a service, and in their place those of a route.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// Further attempts after the first.
    pub attempts_max: u32,
    /// Statuses of responses that fail an attempt.
    pub statuses: &'a StatusSet,
    /// Shortest pause before another attempt; zero: none.
    pub backoff: Duration,
}

impl<'a> Policy<'a> {
    /// Returns the settings of the route, or where it has none those of the service.
    pub fn new(service: &'a Retries, route: &'a RouteRetries) -> Policy<'a> {
        let RouteRetries { attempts_max, statuses, backoff } = route;
        Policy {
            attempts_max: attempts_max.unwrap_or(service.attempts_max),
            statuses: statuses.as_ref().unwrap_or(&service.statuses),
            backoff: backoff.unwrap_or(service.backoff),
        }
    }

    /// Returns the pause before the attempt that follows `retried` further ones: twice as long as the
    /// one before it, and up to a quarter more, so that requests that failed at the same time do not
    /// come back at the same time.
    pub fn pause(&self, retried: u32, rng: &mut fastrand::Rng) -> Duration {
        if self.backoff.is_zero() {
            return Duration::ZERO;
        }
        let factor = 1_u32.checked_shl(retried).unwrap_or(PAUSE_FACTOR_MAX).min(PAUSE_FACTOR_MAX);
        self.backoff.min(Retries::BACKOFF_MAX).saturating_mul(factor).mul_f64(1.0 + rng.f64() / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_replaces_what_it_names() {
        let (of_service, of_route) = (StatusSet(vec![(503, 503)]), StatusSet::default());
        let service = Retries {
            attempts_max: 1,
            statuses: of_service.clone(),
            backoff: Duration::from_millis(5),
            ..Retries::default()
        };
        let own = Policy::new(&service, &RouteRetries::OF_SERVICE);
        assert_eq!((own.attempts_max, own.statuses), (1, &of_service));
        assert_eq!(own.backoff, Duration::from_millis(5));
        let route = RouteRetries {
            attempts_max: Some(0),
            statuses: Some(of_route.clone()),
            backoff: Some(Duration::ZERO),
        };
        let policy = Policy::new(&service, &route);
        assert_eq!((policy.attempts_max, policy.statuses), (0, &of_route));
        assert_eq!(policy.backoff, Duration::ZERO);
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_are_never_shorter_than_configured() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let service = Retries { backoff: Duration::from_millis(100), ..Retries::default() };
        let policy = Policy::new(&service, &RouteRetries::OF_SERVICE);
        for (retried, shortest_ms) in
            [(0, 100), (1, 200), (2, 400), (3, 800), (4, 1000), (40, 1000)]
        {
            for _ in 0..100 {
                let pause = policy.pause(retried, &mut rng);
                let shortest = Duration::from_millis(shortest_ms);
                assert!(pause >= shortest && pause <= shortest * 5 / 4, "{retried}: {pause:?}");
            }
        }
        let none = Retries::default();
        let policy = Policy::new(&none, &RouteRetries::OF_SERVICE);
        assert_eq!(policy.pause(3, &mut rng), Duration::ZERO);
    }
}
