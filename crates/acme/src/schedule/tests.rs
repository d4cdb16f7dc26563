//! Tests in virtual time: the loop of the manager, with an authority that is a function.

use super::*;

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 24 * HOUR_S;
const START_S: i64 = 1_800_000_000;

fn lifetime(days: i64, at_s: i64) -> Lifetime {
    Lifetime { not_before_s: at_s, not_after_s: at_s + days * DAY_S, stored_s: at_s }
}

/// An authority's reaction to an order.
enum Reaction {
    /// Issues a certificate.
    Issues,
    /// It cannot be reached.
    Down,
    /// It refuses, and wants this many seconds of peace.
    Refuses(Option<i64>),
}

/// Runs the manager's loop, from `START_S` for `days`; returns the times of orders, with the time
/// that was left of the certificate then.
struct Run {
    schedule: Schedule,
    rng: fastrand::Rng,
    lifetime_days: i64,
    lifetimes: Vec<Option<Lifetime>>,
    window: Option<fn(Lifetime) -> Window>,
    orders: Vec<(usize, i64, i64)>,
    asked: usize,
}

impl Run {
    fn new(certificates: usize, lifetime_days: i64) -> Run {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        Run {
            schedule: Schedule::new(AcmeRenewal::default(), certificates),
            rng: fastrand::Rng::with_seed(seed),
            lifetime_days,
            lifetimes: vec![None; certificates],
            window: None,
            orders: Vec::new(),
            asked: 0,
        }
    }

    fn for_days(&mut self, from_s: i64, days: i64, react: impl Fn(usize, i64) -> Reaction) {
        let mut now_s = from_s;
        let mut steps = 0;
        while now_s < from_s + days * DAY_S {
            steps += 1;
            assert!(steps < 100_000, "a tight loop");
            match self.schedule.next(now_s) {
                Next::Wait { until_s } => {
                    assert!(until_s > now_s);
                    now_s = until_s;
                }
                Next::AskRenewalInfo(index) => {
                    self.asked += 1;
                    match (self.window, self.lifetimes[index], react(index, now_s)) {
                        (Some(window), Some(lifetime), Reaction::Issues) => {
                            self.schedule.told(index, window(lifetime), 6 * HOUR_S, now_s);
                        }
                        _ => self.schedule.not_told(index, now_s),
                    }
                }
                Next::Order(index) => {
                    self.order(index, now_s, react(index, now_s));
                    now_s += 5;
                }
            }
        }
    }

    fn order(&mut self, index: usize, now_s: i64, reaction: Reaction) {
        let left_s = self.lifetimes[index].map_or(0, |lifetime| lifetime.not_after_s - now_s);
        self.orders.push((index, now_s, left_s));
        let draw = self.rng.f64();
        match reaction {
            Reaction::Issues => {
                let lifetime = lifetime(self.lifetime_days, now_s);
                self.lifetimes[index] = Some(lifetime);
                self.schedule.authority_works();
                self.schedule.use_certificate(index, lifetime, true, draw);
            }
            Reaction::Down => {
                self.schedule.failed(index, Scope::Authority, now_s, None, draw);
            }
            Reaction::Refuses(after) => {
                self.schedule.failed(index, Scope::Certificate, now_s, after, draw);
            }
        }
    }
}

#[test]
fn certificates_of_any_lifetime_are_renewed_at_two_thirds() {
    for days in [6, 47, 90, 398] {
        let mut run = Run::new(3, days);
        run.for_days(START_S, days * 10, |_, _| Reaction::Issues);
        let lifetime_s = (days * DAY_S) as f64;
        for &(index, at_s, left_s) in run.orders.iter().skip(3) {
            let left = left_s as f64 / lifetime_s;
            assert!((0.33..0.37).contains(&left), "{days} days, {index} at {at_s}: {left}");
        }
        // Three certificates, ten lifetimes, each renewed a bit before two thirds.
        assert!((45..=51).contains(&run.orders.len()), "{days} days: {}", run.orders.len());
    }
}

#[test]
fn the_authority_decides_within_the_lifetime() {
    let mut run = Run::new(1, 90);
    run.window = Some(|lifetime| Window {
        start_s: lifetime.not_before_s + 30 * DAY_S,
        end_s: lifetime.not_before_s + 32 * DAY_S,
    });
    run.for_days(START_S, 365, |_, _| Reaction::Issues);
    for &(_, _, left_s) in run.orders.iter().skip(1) {
        assert!((58 * DAY_S..=60 * DAY_S).contains(&left_s), "{left_s}");
    }
    assert!((11..=13).contains(&run.orders.len()));
    // Every six hours, as it asked for.
    assert!(run.asked <= 365 * 4 + 13, "{}", run.asked);

    // A window after the end does not let the certificate expire.
    let mut run = Run::new(1, 90);
    run.window = Some(|lifetime| Window { start_s: lifetime.not_after_s + DAY_S, end_s: i64::MAX });
    run.for_days(START_S, 365, |_, _| Reaction::Issues);
    for &(_, _, left_s) in run.orders.iter().skip(1) {
        assert!((8 * DAY_S..=9 * DAY_S).contains(&left_s), "{left_s}");
    }
}

#[test]
fn an_authority_that_always_wants_a_renewal_now_gets_one_an_hour() {
    let mut run = Run::new(1, 90);
    run.window = Some(|_| Window { start_s: 0, end_s: 1 });
    run.for_days(START_S, 1, |_, _| Reaction::Issues);
    assert!((23..=25).contains(&run.orders.len()), "{}", run.orders.len());
}

#[test]
fn an_empty_further_counts_for_nothing() {
    let mut schedule = Schedule::new(AcmeRenewal::default(), 1);
    schedule.use_certificate(0, lifetime(90, START_S), true, 0.0);
    assert_eq!(schedule.next(START_S), Next::AskRenewalInfo(0));
    let before = schedule.renew_at_s(0);
    schedule.told(0, Window { start_s: START_S, end_s: START_S }, 60, START_S);
    assert_eq!(schedule.renew_at_s(0), before);
    assert!(!schedule.is_by_authority(0));
    assert_eq!(schedule.next(START_S), Next::Wait { until_s: START_S + 6 * HOUR_S });
}

#[test]
fn questions_are_at_least_a_minute_and_at_most_a_day_apart() {
    for (asked, kept) in [(0, 60), (-5, 60), (300, 300), (i64::MAX, DAY_S)] {
        let mut schedule = Schedule::new(AcmeRenewal::default(), 1);
        schedule.use_certificate(0, lifetime(90, START_S), true, 0.0);
        let window = Window { start_s: START_S + 50 * DAY_S, end_s: START_S + 51 * DAY_S };
        schedule.told(0, window, asked, START_S);
        assert_eq!(schedule.next(START_S), Next::Wait { until_s: START_S + kept });
    }
}

#[test]
fn a_day_without_the_directory_costs_few_attempts_and_no_certificate() {
    for days in [6, 90] {
        let mut run = Run::new(20, days);
        run.for_days(START_S, 1, |_, _| Reaction::Issues);
        assert_eq!(run.orders.len(), 20);
        // The outage begins when the first renewal is due.
        let due_s = (0..20).filter_map(|index| run.schedule.renew_at_s(index)).min().unwrap();
        run.orders.clear();
        let until_s = due_s + DAY_S;
        let react = |_: usize, now_s: i64| {
            if (due_s..until_s).contains(&now_s) { Reaction::Down } else { Reaction::Issues }
        };
        run.for_days(due_s, 2, react);
        let during = run.orders.iter().filter(|(_, at_s, _)| *at_s < until_s).count();
        // 30 s, doubled up to an hour: for all twenty together.
        assert!((25..=45).contains(&during), "{days} days: {during} attempts");
        for &(index, at_s, left_s) in &run.orders {
            assert!(left_s > 0, "{days} days: {index} expired at {at_s}");
        }
        // Afterwards all that were due are renewed within the longest wait.
        let first = run.orders.iter().map(|(_, at_s, _)| *at_s).find(|at_s| *at_s >= until_s);
        assert!(first.unwrap() - until_s <= HOUR_S * 5 / 4);
        assert_eq!(run.schedule.failures(0), 0);
    }
}

#[test]
fn a_name_that_is_refused_stays_below_the_authoritys_limit_and_delays_no_other() {
    let mut run = Run::new(2, 90);
    let react = |index, _| if index == 0 { Reaction::Refuses(None) } else { Reaction::Issues };
    run.for_days(START_S, 2, react);
    let refused: Vec<i64> =
        run.orders.iter().filter(|order| order.0 == 0).map(|order| order.1).collect();
    for at_s in &refused {
        let within = refused.iter().filter(|other| (*at_s..at_s + HOUR_S).contains(other)).count();
        assert!(within <= 5, "{within} in an hour");
    }
    assert!((12..=25).contains(&refused.len()), "{}", refused.len());
    assert_eq!(run.orders.iter().find(|order| order.0 == 1).unwrap().1, START_S + 5);
}

#[test]
fn a_rate_limit_is_respected() {
    let mut run = Run::new(1, 90);
    run.for_days(START_S, 3, |_, _| Reaction::Refuses(Some(10 * HOUR_S)));
    for pair in run.orders.windows(2) {
        assert!(pair[1].1 - pair[0].1 >= 10 * HOUR_S);
    }
}

#[test]
fn a_stored_certificate_is_not_ordered_again_and_an_expired_one_at_once() {
    let mut schedule = Schedule::new(AcmeRenewal { ari: false, after_permille: 667 }, 1);
    schedule.use_certificate(0, lifetime(90, START_S), true, 0.5);
    let Next::Wait { until_s } = schedule.next(START_S + DAY_S) else {
        panic!("nothing is due");
    };
    assert_eq!(schedule.next(until_s), Next::Order(0));
    assert_eq!(schedule.next(START_S + 400 * DAY_S), Next::Order(0));
}

#[test]
fn another_process_is_left_alone_for_seconds() {
    let mut schedule = Schedule::new(AcmeRenewal::default(), 1);
    assert_eq!(schedule.next(START_S), Next::Order(0));
    schedule.held_by_another(0, START_S);
    assert_eq!(schedule.next(START_S), Next::Wait { until_s: START_S + OTHER_PROCESS_S });
    assert_eq!(schedule.next(START_S + OTHER_PROCESS_S), Next::Order(0));
}

#[test]
fn a_clock_that_jumps_stops_nothing() {
    let mut schedule = Schedule::new(AcmeRenewal::default(), 1);
    let future_s = START_S + 3650 * DAY_S;
    schedule.held_by_another(0, future_s);
    schedule.failed(0, Scope::Authority, future_s, None, 0.5);
    schedule.failed(0, Scope::Certificate, future_s, None, 0.5);
    assert_eq!(schedule.next(START_S), Next::Order(0));
}

#[test]
fn nothing_to_do_waits() {
    let schedule = Schedule::new(AcmeRenewal::default(), 0);
    assert_eq!(schedule.next(START_S), Next::Wait { until_s: i64::MAX });
}

#[test]
fn numbers_of_any_size_do_not_overflow() {
    for at_s in [i64::MIN, -1, 0, i64::MAX] {
        for end_s in [i64::MIN, 0, i64::MAX] {
            let mut schedule = Schedule::new(AcmeRenewal::default(), 1);
            let odd = Lifetime { not_before_s: at_s, not_after_s: end_s, stored_s: at_s };
            schedule.use_certificate(0, odd, true, 0.99);
            schedule.told(0, Window { start_s: at_s, end_s }, at_s, end_s);
            schedule.failed(0, Scope::Certificate, end_s, Some(at_s), 1.0);
            schedule.failed(0, Scope::Authority, end_s, Some(at_s), 1.0);
            schedule.next(at_s);
            schedule.next(end_s);
        }
    }
}
