//! Detects connect times caused by a lost SYN: the kernel retransmits it after fixed intervals, so
//! such connections take one of these intervals longer than others. Pure.

use hdrhistogram::Histogram;

/// How much earlier than its step a connection may seem to have been made: the kernel's timers keep
/// to ticks.
const EARLY_NS: u64 = 20_000_000;
/// How much later, besides what connecting takes otherwise: ticks again, and timers that are put
/// together in wheels (an eighth of their length).
const LATE_NS: u64 = 200_000_000;

/// When this kernel sends a SYN again, in seconds after the first: since 6.5 the first four times
/// at a distance of a second (`tcp_syn_linear_timeouts`), since 3.1 after 1 s and doubling (RFC
/// 6298), before that after 3 s and doubling.
pub fn schedule(release: &str) -> &'static [u64] {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut number = || numbers.next().and_then(Result::ok).unwrap_or(0);
    match (number(), number()) {
        // Nothing is known of it: today's.
        (0, _) => &[1, 2, 3, 4, 5, 7, 11],
        version if version >= (6, 5) => &[1, 2, 3, 4, 5, 7, 11],
        version if version >= (3, 1) => &[1, 3, 7],
        _ => &[3, 9],
    }
}

/// Connections that were made by a repeated SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which: so many seconds after the first.
    pub after_s: u64,
    /// How many connections.
    pub count: u64,
    /// How many SYNs of each were lost.
    pub lost: usize,
}

/// The steps among connect times in nanoseconds; those that nothing shows are left out.
pub fn recognise(times: &Histogram<u64>, schedule: &[u64]) -> Vec<Step> {
    let usual = times.value_at_quantile(0.5).min(LATE_NS);
    let step = |(index, &after_s): (usize, &u64)| {
        let at = after_s * 1_000_000_000;
        let next = schedule.get(index + 1).map_or(u64::MAX, |next| next * 1_000_000_000 - EARLY_NS);
        let until = (at + LATE_NS + usual).min(next - 1);
        let count = times.count_between(at - EARLY_NS, until);
        Step { after_s, count, lost: index + 1 }
    };
    schedule.iter().enumerate().map(step).filter(|step| step.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_their_schedules() {
        for (release, wanted) in [
            ("6.18.44-fc", &[1, 2, 3, 4, 5, 7, 11][..]),
            ("6.5.0", &[1, 2, 3, 4, 5, 7, 11]),
            ("6.4.16-generic", &[1, 3, 7]),
            ("3.1", &[1, 3, 7]),
            ("3.0.101", &[3, 9]),
            ("2.6.32-5-amd64", &[3, 9]),
            ("", &[1, 2, 3, 4, 5, 7, 11]),
        ] {
            assert_eq!(schedule(release), wanted, "{release}");
        }
    }

    #[test]
    fn steps_are_counted_and_nothing_else_is() {
        let mut times = Histogram::<u64>::new(3).unwrap();
        times.record_n(300_000, 1_000).unwrap();
        times.record_n(1_012_000_000, 7).unwrap();
        times.record_n(2_040_000_000, 3).unwrap();
        times.record_n(1_600_000_000, 5).unwrap();
        let found = recognise(&times, schedule("6.18"));
        let wanted =
            [Step { after_s: 1, count: 7, lost: 1 }, Step { after_s: 2, count: 3, lost: 2 }];
        assert_eq!(found, wanted);
        assert_eq!(recognise(&times, schedule("5.10")), wanted[..1], "2 s is no step there");
        assert!(recognise(&Histogram::new(3).unwrap(), schedule("6.18")).is_empty());
    }
}
