//! Slow start: the share of a server that came back grows from a tenth to the whole.
//!
//! Only the factor is computed here; [`crate::LiveService::refresh_due`] schedules the updates
//! while it grows.

use std::time::Duration;

use model::Moment;

/// The initial share of a server that has just come back.
pub const SHARE_FIRST: f64 = 0.1;

/// Number of steps in which the share grows; each step costs one refresh of the service.
pub const STEPS: u32 = 20;

/// Returns the share, from [`SHARE_FIRST`] to 1.0, of a server that came back at `up_since`,
/// growing linearly over `over`.
pub fn share(up_since: Option<Moment>, over: Option<Duration>, now: Moment) -> f64 {
    let (Some(up_since), Some(over)) = (up_since, over) else {
        return 1.0;
    };
    let elapsed = now.since(up_since);
    if elapsed >= over {
        return 1.0;
    }
    SHARE_FIRST + (1.0 - SHARE_FIRST) * (elapsed.as_secs_f64() / over.as_secs_f64())
}

/// Returns when the share changes next; `None` once it is whole.
pub fn next_step(up_since: Option<Moment>, over: Option<Duration>, now: Moment) -> Option<Moment> {
    let (Some(up_since), Some(over)) = (up_since, over) else {
        return None;
    };
    let end = up_since + over;
    if now >= end {
        return None;
    }
    let step = (over / STEPS).max(Duration::from_millis(10));
    Some((now + step).min(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_from_a_tenth_to_the_whole_and_stays_there() {
        let (up, over) = (Some(Moment::from_millis(1_000)), Some(Duration::from_secs(10)));
        for (at_ms, expected) in
            [(0, 0.1), (1_000, 0.1), (6_000, 0.55), (11_000, 1.0), (99_000, 1.0)]
        {
            let share = share(up, over, Moment::from_millis(at_ms));
            assert!((share - expected).abs() < 1e-9, "at {at_ms} ms: {share}");
        }
    }

    #[test]
    fn a_server_that_was_never_away_or_a_service_without_slow_start_is_whole_at_once() {
        let now = Moment::from_millis(5);
        for (up, over) in [
            (None, Some(Duration::from_secs(1))),
            (Some(now), None),
            (Some(now), Some(Duration::ZERO)),
        ] {
            assert!(share(up, over, now) >= 1.0);
        }
        assert_eq!(next_step(None, Some(Duration::from_secs(1)), now), None);
    }

    #[test]
    fn steps_end_exactly_when_the_share_is_whole() {
        let (up, over) = (Some(Moment::from_millis(1_000)), Some(Duration::from_secs(10)));
        let mut now = Moment::from_millis(1_000);
        let mut steps = 0;
        while let Some(next) = next_step(up, over, now) {
            assert!(next > now);
            now = next;
            steps += 1;
        }
        assert_eq!((now, steps), (Moment::from_millis(11_000), STEPS));
        assert!(share(up, over, now) >= 1.0);
    }
}
