//! What an operator states about a service, and the defaults.

use std::time::Duration;

/// Default share of the slots that should be occupied. The rest is for growth while new servers start: load may
/// rise by 1 / 0.7 − 1 = 43 % before the service is as busy as its slots allow. Common values for CPU targets of the
/// Kubernetes autoscaler are 0.5 to 0.8.
pub const UTILIZATION: f64 = 0.7;
/// Lowest utilization that is used; lower values count as this one.
pub const UTILIZATION_MIN: f64 = 0.05;
/// Default time in which requests that wait should be served.
pub const DRAIN: Duration = Duration::from_secs(30);
/// Default time for which a lower number must hold before it is returned: `stabilizationWindowSeconds` of scale-down
/// in Kubernetes (300 s).
pub const STABILIZATION: Duration = Duration::from_secs(300);
/// Default time without load after which no server is needed, if the minimum is 0.
pub const IDLE: Duration = Duration::from_secs(600);
/// Default bound on the refusals that count, as a multiple of the requests that end at servers, or of what one server
/// can serve at the target utilization if that is more. Clients that retry raise the rate of refusals. With 1,
/// refusals add at most as much load as is served, or as one server can serve if that is more.
pub const REFUSALS_COUNTED_MAX: f64 = 1.0;
/// Default factor by which the number of servers grows in one step: the default of scale-up in Kubernetes (100 % in
/// 15 s).
pub const GROWTH_MAX: f64 = 2.0;
/// Servers that a step may add in any case: the other default policy of scale-up in Kubernetes.
pub const GROWTH_SERVERS_MIN: u32 = 4;
/// Default share by which the need may grow again before fewer servers are too few: the default of
/// `--horizontal-pod-autoscaler-tolerance` in Kubernetes, which applies it in both directions.
pub const TOLERANCE: f64 = 0.1;

/// How much one server can do at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// The concurrency limit of each server: its slots, for all instances together. If each instance has its own
    /// limit, this is their sum, as long as the server can handle that many.
    Limit(u32),
    /// There is no limit; the operator states how many requests each server should have in flight on average.
    InFlightTarget(f64),
    /// Neither is known. There is no answer.
    Unknown,
}

impl Capacity {
    /// Returns the slots of one server. A target is a mean, so the slots are more by the utilization.
    pub(crate) fn slots(self, utilization: f64) -> Option<f64> {
        match self {
            Capacity::Limit(0) | Capacity::Unknown => None,
            Capacity::Limit(slots) => Some(f64::from(slots)),
            Capacity::InFlightTarget(target) => {
                (target.is_finite() && target > 0.0).then(|| target / utilization)
            }
        }
    }
}

/// The terms of a service. Values outside their bounds count as the nearest bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// How much one server can do at once.
    pub capacity: Capacity,
    /// The share of the slots that should be occupied, from 0.05 to 1. Default: [`UTILIZATION`].
    pub utilization: f64,
    /// Minimum number of servers. 0 allows to scale to zero.
    pub servers_min: u32,
    /// Maximum number of servers. It wins over the minimum.
    pub servers_max: u32,
    /// The time in which requests that wait should be served, at least 1 s. Default: [`DRAIN`].
    pub drain: Duration,
    /// The time for which a lower number must hold before it is returned. Default: [`STABILIZATION`].
    pub stabilization: Duration,
    /// The time without load after which no server is needed. Default: [`IDLE`].
    pub idle: Duration,
    /// Refusals that count, as a multiple of completions, or of what one server can serve if that is more. At least
    /// 0. Default: [`REFUSALS_COUNTED_MAX`].
    pub refusals_counted_max: f64,
    /// Factor by which the number of servers grows in one step, at least 1. Default: [`GROWTH_MAX`].
    pub growth_max: f64,
    /// Fewer servers are wanted only if they would also do for a need that is higher by this share, from 0 to 0.5.
    /// Does not apply to more servers: autoscalers have their own tolerance. Default: [`TOLERANCE`].
    pub tolerance: f64,
}

impl Terms {
    /// Returns the default terms for servers of this capacity.
    pub fn new(capacity: Capacity, servers_min: u32, servers_max: u32) -> Terms {
        Terms {
            capacity,
            utilization: UTILIZATION,
            servers_min,
            servers_max,
            drain: DRAIN,
            stabilization: STABILIZATION,
            idle: IDLE,
            refusals_counted_max: REFUSALS_COUNTED_MAX,
            growth_max: GROWTH_MAX,
            tolerance: TOLERANCE,
        }
    }

    /// Returns the same terms with each value within its bounds; the default for a number that is not finite.
    pub(crate) fn bounded(&self) -> Terms {
        let within = |value: f64, default: f64, least: f64, most: f64| {
            if value.is_finite() { value.clamp(least, most) } else { default }
        };
        Terms {
            utilization: within(self.utilization, UTILIZATION, UTILIZATION_MIN, 1.0),
            servers_min: self.servers_min.min(self.servers_max),
            drain: self.drain.max(Duration::from_secs(1)),
            refusals_counted_max: within(
                self.refusals_counted_max,
                REFUSALS_COUNTED_MAX,
                0.0,
                100.0,
            ),
            growth_max: within(self.growth_max, GROWTH_MAX, 1.0, 100.0),
            tolerance: within(self.tolerance, TOLERANCE, 0.0, 0.5),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_their_bounds_count_as_the_nearest() {
        let mut terms = Terms::new(Capacity::Limit(4), 5, 3);
        (terms.utilization, terms.growth_max, terms.tolerance) = (0.0, 0.0, f64::NAN);
        terms.drain = Duration::ZERO;
        let bounded = terms.bounded();
        assert_eq!((bounded.servers_min, bounded.servers_max), (3, 3));
        assert!((bounded.utilization - UTILIZATION_MIN).abs() < 1e-12);
        assert!((bounded.growth_max - 1.0).abs() < 1e-12);
        assert!((bounded.tolerance - TOLERANCE).abs() < 1e-12);
        assert_eq!(bounded.drain, Duration::from_secs(1));
    }

    #[test]
    fn slots_need_a_limit_or_a_target() {
        assert_eq!(Capacity::Limit(4).slots(0.7), Some(4.0));
        assert_eq!(Capacity::Limit(0).slots(0.7), None);
        assert_eq!(Capacity::Unknown.slots(0.7), None);
        assert_eq!(Capacity::InFlightTarget(f64::NAN).slots(0.7), None);
        assert!((Capacity::InFlightTarget(7.0).slots(0.7).unwrap() - 10.0).abs() < 1e-12);
    }
}
